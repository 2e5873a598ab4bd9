package consumer

import (
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// maxLanes bounds the lanes of a fetch.
const maxLanes = 8

// lane is one way to the content: through the forwarding hint of a replica or
// without one, with what is in flight that way and what is known of it. A fetch
// from one source has one lane. Transmission numbers are a lane's own.
type lane struct {
	index int8 // in Fetch.lanes
	// replica is the place in Config.Replicas plus one; 0: without a hint.
	replica int
	hint    []ndn.Name
	ctrl    cc.Controller
	pc      cc.PathChanger // ctrl, when it is one
	undo    cc.Undoer      // likewise
	// retired: another lane goes on in its place. What is in flight may still
	// arrive, but tells the controller nothing.
	retired  bool
	compared bool // its path with those of others

	paths    pathSet
	tx       uint64
	recPoint uint64 // transmissions up to here belong to an event reacted to
	inflight int
	lossNew  int  // losses since the last Sample
	limited  bool // the window stopped the last burst
	early    ndn.Time
	headAt   ndn.Time // latest answer to the earliest transmission in flight
	headSent ndn.Time // when the earliest after that one had left
	nextSend ndn.Time // pacing
	// The tolerance of reordering grows with needless repetitions: reorder
	// times ρ more, for reorderLeft more loss events.
	reorder     int
	reorderLeft int
	reorderAt   ndn.Time
	lossEvent   lossEvent

	holdUntil ndn.Time // no route: pause
	noRoutes  int      // Nacks NoRoute in a row, one per pause
	timeouts  int      // since the latest Data
}

// newLane adds a lane for a replica.
func (f *Fetch) newLane(replica int, ctrl cc.Controller) *lane {
	l := &lane{index: int8(len(f.lanes)), paths: newPathSet(f.cfg.RTT)}
	f.lanes = append(f.lanes, l)
	l.use(f, replica, ctrl)
	return l
}

// use prepares a lane, new or with nothing in flight, for a replica.
func (l *lane) use(f *Fetch, replica int, ctrl cc.Controller) {
	*l = lane{index: l.index, replica: replica, ctrl: ctrl, paths: newPathSet(f.cfg.RTT), early: ndn.Never}
	l.pc, _ = ctrl.(cc.PathChanger)
	l.undo, _ = ctrl.(cc.Undoer)
	if replica > 0 {
		l.hint = f.cfg.Replicas[replica-1].Hint
	}
}

// lane of a segment's latest transmission.
func (f *Fetch) lane(s *slot) *lane { return f.lanes[s.lane] }

// timed is from when the timeout of a transmission counts: from when it left or, if
// the earliest in flight was answered since, from then on, and as much later as it
// had left after the next one, a round trip at most. Without this distance all that
// a path swallows would time out at once, and burst into the path's queues.
func (l *lane) timed(s *slot) ndn.Time {
	later := min(max(0, s.sentAt.Sub(l.headSent)), l.paths.controlled().est.SRTT())
	return max(s.sentAt, l.headAt.Add(later))
}

// inflight is what is in flight on all lanes.
func (f *Fetch) inflight() (n int) {
	for _, l := range f.lanes {
		n += l.inflight
	}
	return n
}

// rate is the pacing rate in bytes per second, 0 for unpaced.
func (f *Fetch) rate(l *lane) float64 {
	r := f.cfg.Pacing
	if r <= 0 {
		// Data of other paths than the controlled one, hits of caches, are
		// asked for on top of the rate that suits the controlled path.
		r = l.ctrl.PacingRate() / (1 - min(l.paths.foreign, 0.98))
	}
	if m := f.cfg.MaxRate; m > 0 && (r <= 0 || r > m) {
		r = m
	}
	return r
}

// sampleRTT takes a round-trip time measured on path i of a lane.
func (f *Fetch) sampleRTT(l *lane, i int8, r time.Duration, inflight int) {
	if r <= 0 {
		return
	}
	l.paths.all[i].est.Sample(r, inflight)
	if f.rtts == 0 {
		f.stats.RTTMin, f.stats.RTTMax = r, r
	}
	f.stats.RTTMin, f.stats.RTTMax = min(f.stats.RTTMin, r), max(f.stats.RTTMax, r)
	f.rttSum += r
	f.rtts++
}

// pace sets the time of the next Interest after one that leaves now.
func (l *lane) pace(now ndn.Time, rate, size float64) {
	const burst = time.Millisecond
	if rate > 0 {
		l.nextSend = max(l.nextSend, now.Add(-burst)).Add(time.Duration(size / rate * float64(time.Second)))
	}
}
