package consumer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/ndn"
)

// Replica is a further place that the content lies at: besides the one, or
// those, that the network finds by the content's name.
type Replica struct {
	// Hint is the delegation that leads there, as a forwarding hint.
	Hint []ndn.Name
	// Rate in bytes per second that it is known to give, 0 if unknown.
	Rate float64
}

// ReplicaStats is what one replica did for a fetch.
type ReplicaStats struct {
	Segments uint64
	Bytes    uint64 // of Data on the wire
	RTTMin   time.Duration
}

// ReplicaSwitch is one change of the replica. Replicas are numbered as in
// TraceEvent.
type ReplicaSwitch struct {
	At       ndn.Time // when the first Interest for the new one left
	From, To int
	// Network: the network chose the new one, on request, and the number stays.
	Network bool
	Why     replica.Level
	// Silent is the time from the latest Data until then.
	Silent time.Duration
}

// maxSwitchLog bounds the log of switches.
const maxSwitchLog = 64

// Replicas is what each replica did so far, by number: first what came without
// a hint.
func (f *Fetch) Replicas() []ReplicaStats { return slices.Clone(f.sources) }

// Replica is the number of the one that is used now, of several the one that
// told of the object.
func (f *Fetch) Replica() int { return f.cur.replica }

// Switches are the first changes of the replica.
func (f *Fetch) Switches() []ReplicaSwitch { return slices.Clone(f.switches) }

// addReplicas prepares for the replicas of the configuration.
func (f *Fetch) addReplicas(now ndn.Time) error {
	n := 1 + len(f.cfg.Replicas)
	if n > min(maxLanes, replica.Max) {
		return fmt.Errorf("consumer: %d replicas: want %d at most", n-1, min(maxLanes, replica.Max)-1)
	}
	if f.cfg.First < 0 || f.cfg.First >= n {
		return fmt.Errorf("consumer: First is %d: there are %d replicas", f.cfg.First, n-1)
	}
	f.sources = make([]ReplicaStats, n)
	switch {
	case f.cfg.MultiSource && n > 1:
		if f.cfg.NewController == nil {
			return errors.New("consumer: MultiSource needs NewController")
		}
		f.multi = true
		for i := range f.cfg.Replicas {
			ctrl, err := f.cfg.NewController()
			if err != nil {
				return err
			}
			f.newLane(i+1, ctrl)
		}
	case f.cfg.TwoLevel != nil:
		// Requests of several consumers may come over one face to where they are
		// taken: equal counters would look like repetitions.
		f.level = &twoLevel{sw: replica.New(*f.cfg.TwoLevel, n, now), counter: uint64(f.rng.Uint32())}
		for i, r := range f.cfg.Replicas {
			if r.Rate > 0 {
				f.level.sw.Know(now, replica.ID{Number: i + 1}, r.Rate, 0)
			}
		}
		f.level.sw.Begin(f.cfg.First)
	}
	if f.multi {
		f.cur = f.lanes[f.cfg.First]
	} else {
		f.cur.use(f, f.cfg.First, f.cur.ctrl)
	}
	return nil
}

// twoLevel is the upper level of 2LCCM in a fetch: it leaves a replica for
// another, first by asking the network for one (the ReplicaSelect header) and,
// when nobody there listens, by forwarding hint. Each choice has a lane of its
// own, so that what is still in flight to the old replica neither gets lost nor
// is taken for the new one's.
type twoLevel struct {
	sw     *replica.Switch
	sample replica.Sample
	look   ndn.Time // no interruption is judged before
	// lead is how much sooner a silence is judged because the network would be
	// asked first, and might not answer.
	lead time.Duration

	// A request to the network, carried by all Interests until it is
	// acknowledged or time is up, for one of them may get lost.
	asking   bool
	why      replica.Level
	quiet    ndn.Time // latest Data when that was decided
	counter  uint64
	askTx    uint64 // first transmission that carried it, 0: none yet
	askedAt  ndn.Time
	until    ndn.Time
	heard    bool // it was acknowledged
	answered bool // Data came for Interests that carried it
}

// leastAsk is the least time that an acknowledgement is waited for: two round
// trips of hosts that are close take less than their schedulers.
const leastAsk = 50 * time.Millisecond

// lookAgain is the interval at which an interruption is judged again.
const lookAgain = 200 * time.Millisecond

func (f *Fetch) levelDeadline() ndn.Time {
	t := f.level
	if f.stage != stageFetch {
		return ndn.Never
	}
	if t.asking {
		return t.until
	}
	if f.cur.inflight == 0 {
		return ndn.Never
	}
	return max(t.look, t.sw.InterruptAt(f.cur.paths.controlled().est.Base(), t.lead))
}

// levelSend sees to the link header of an Interest that leaves on the present
// lane.
func (f *Fetch) levelSend(now ndn.Time, l *lane) {
	t := f.level
	if l.inflight == 1 && f.unrep == 0 {
		t.sw.Sent(now) // after a pause of our own
	}
	f.lp.HasReplicaSelect = t.asking
	if t.asking {
		f.lp.ReplicaSelect = t.counter
		if t.askTx == 0 {
			t.askTx, t.askedAt = l.tx, now
			t.until = now.Add(f.askFor())
		}
	}
}

// askFor is how long an acknowledgement is waited for: two round trips.
func (f *Fetch) askFor() time.Duration {
	e := &f.cur.paths.controlled().est
	return max(leastAsk, 2*max(e.SRTT(), e.Last()))
}

// levelData tells the upper level of a Data on the controlled path.
func (f *Fetch) levelData(e *cc.Sample) {
	t := f.level
	t.sample = replica.Sample{Now: e.Now, RTT: e.RTT, Size: e.Size, RoundStart: e.RoundStart}
	t.sw.Data(&t.sample, e.Tag)
}

// levelAnswer returns the lane that a Data for slot i belongs to, which is a
// new one when the Data tells that a request to the network was followed.
func (f *Fetch) levelAnswer(now ndn.Time, i int32, p *ndn.Packet) *lane {
	t, s := f.level, &f.ring.slots[i]
	l := f.lane(s)
	if !t.asking || l != f.cur || t.askTx == 0 || s.tx < t.askTx {
		return l
	}
	t.answered = true
	if p.HasReplicaSelect && p.ReplicaSelect == t.counter {
		t.heard = true
	}
	switch {
	case !t.heard:
	case !p.HasPathTag || f.newSource(l, &p.PathTag):
		f.goOn(now, replica.ID{Number: l.replica, Tag: p.PathTag.Tag}, true)
		return f.lane(s)
	case p.HasReplicaSelect && s.retx == 0 && p.PathTag.Tag == l.paths.controlled().tag:
		// Acknowledged, and from where it came before: no other one.
		f.unask(now)
	}
	return l
}

// newSource reports whether a path tag is one that the lane has not met, and
// not that of a cache on the way to any replica.
func (f *Fetch) newSource(l *lane, tag *ndn.PathTag) bool {
	if tag.Flags&ndn.PathFromCache != 0 && tag.Hops <= 1 {
		return false
	}
	for i := range l.paths.n {
		if p := &l.paths.all[i]; p.used && p.tag == tag.Tag {
			return false
		}
	}
	return true
}

// unask ends a request that led nowhere.
func (f *Fetch) unask(now ndn.Time) {
	t := f.level
	t.sw.Refused(now, t.answered && !t.heard)
	t.asking = false
}

// judge looks at the present replica and leaves it if that is decided.
func (f *Fetch) judge(now ndn.Time) {
	t := f.level
	if f.stage != stageFetch {
		return
	}
	if t.asking {
		if now < t.until {
			return
		}
		f.unask(now)
	}
	if t.lead = 0; t.sw.AsksFirst(now) {
		t.lead = f.askFor()
	}
	level := t.sw.Level(now, f.cur.paths.controlled().est.Base(), t.lead, f.cur.inflight > 0)
	if level == replica.Interrupted {
		t.look = now.Add(lookAgain)
	}
	to, ok := t.sw.Decide(now, level, f.remaining())
	if !ok {
		return
	}
	t.why, t.quiet = level, f.lastData
	if level == replica.Interrupted {
		f.abandon(now, f.cur)
	}
	if to != replica.Network {
		f.goOn(now, replica.ID{Number: to}, false)
		return
	}
	t.asking, t.askTx, t.heard, t.answered = true, 0, false, false
	t.counter++
	t.until = now.Add(f.askFor())
	f.wake = now
}

// remaining is the number of content bytes that are still to come, a large one
// if that is not known.
func (f *Fetch) remaining() uint64 {
	switch {
	case f.left != noLimit:
		return f.left
	case f.plan.ends:
		return (f.plan.last + 1 - min(f.plan.last+1, f.base)) * uint64(f.size())
	}
	return maxObjectSize
}

// abandon takes back what is in flight on a lane, to be asked for again.
func (f *Fetch) abandon(now ndn.Time, l *lane) {
	for i := f.ring.lists[l.index].head; i != none; i = f.ring.lists[l.index].head {
		s := &f.ring.slots[i]
		f.ring.unlink(i)
		f.ring.disarm(i)
		l.inflight--
		if !s.lost {
			s.lost = true
			f.unrep++
		}
		s.state = slotQueued
		f.retx.push(s.seg)
	}
	f.wake = now
}

// goOn goes on with another replica: one that the network chose or one by its
// number.
func (f *Fetch) goOn(now ndn.Time, to replica.ID, network bool) {
	t, old := f.level, f.cur
	rate, rtt := t.sw.Switched(now, to)
	ctrl := old.ctrl
	l := f.spareLane(now)
	l.use(f, to.Number, ctrl)
	l.tx, l.recPoint = old.tx, old.tx
	old.retired, f.cur = true, l
	if network {
		f.moveSince(old, l, t.askTx, t.askedAt)
	}
	t.asking = false

	f.stats.ReplicaSwitches++
	if len(f.switches) < maxSwitchLog {
		sw := ReplicaSwitch{At: now, From: old.replica, To: l.replica, Network: network, Why: t.why}
		if network {
			sw.At = t.askedAt
		}
		sw.Silent = sw.At.Sub(t.quiet)
		f.switches = append(f.switches, sw)
	}
	if l.pc != nil {
		l.pc.OnPathChange(&cc.PathChange{
			Now: now, Tag: to.Tag, Rate: rate, RTT: rtt,
			Replica: true, Window: rate * rtt.Seconds() / f.size(),
		})
	}
	if f.trace != nil {
		f.emit(now, l, TraceSwitch, 0, 0, 0, to.Tag)
	}
	f.wake = now
}

// spareLane finds a lane with nothing in flight, or makes one.
func (f *Fetch) spareLane(now ndn.Time) *lane {
	for _, l := range f.lanes {
		if l.retired && l.inflight == 0 {
			return l
		}
	}
	if len(f.lanes) < maxLanes {
		return f.newLane(0, f.cur.ctrl)
	}
	for _, l := range f.lanes {
		if l.retired {
			f.abandon(now, l)
			return l
		}
	}
	return f.cur // maxLanes is more than one
}

// moveSince moves the transmissions from number tx on, which left from the time
// at on, to another lane: they are the new replica's.
func (f *Fetch) moveSince(from, to *lane, tx uint64, at ndn.Time) {
	i := f.ring.lists[from.index].tail
	for i != none && f.ring.slots[i].prev != none && f.ring.slots[f.ring.slots[i].prev].tx >= tx {
		i = f.ring.slots[i].prev
	}
	for i != none && f.ring.slots[i].tx >= tx {
		s := &f.ring.slots[i]
		next := s.next
		f.ring.unlink(i)
		s.lane, s.path = to.index, to.paths.ctl
		s.delivered, s.deliveredTime, s.firstSent, s.appLimited = 0, at, at, false
		f.ring.link(i)
		from.inflight--
		to.inflight++
		i = next
	}
	p := to.paths.controlled()
	p.firstSent, p.deliveredAt = at, at
	to.recPoint = tx - 1
}
