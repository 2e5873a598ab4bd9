package run

import (
	"bytes"
	"sync"
	"time"

	"ndnpop/fw"
	"ndnpop/ndn"
)

// unit is a shard with its lock, and the shard's way out (fw.Sender).
type unit struct {
	f     *Forwarder
	timer *alarm

	mu      sync.Mutex
	shard   *fw.Shard
	now     ndn.Time // of the call in progress
	faces   map[ndn.FaceID]*netFace
	touched []*netFace // got something during the call in progress
	sent    int        // bytes of packets given to faces during it
	load    ShardLoad
	recent  recentLoad
	// announced during the call in progress; observers are told after it
	announced []Announcement
}

// maxAnnounced bounds the prefix announcements that one call may bring.
const maxAnnounced = 64

// learn takes a prefix announcement from the shard (fw.Config).
func (u *unit) learn(_ ndn.Time, from ndn.FaceID, data ndn.Name, wire []byte) {
	if len(u.announced) < maxAnnounced {
		u.announced = append(u.announced, Announcement{from, data.Clone(), bytes.Clone(wire)})
	}
}

// takeAnnounced returns what learn has collected; the lock is held.
func (u *unit) takeAnnounced() []Announcement {
	as := u.announced
	u.announced = nil
	return as
}

// tell tells observers of prefix announcements; no lock is held.
func (f *Forwarder) tell(as []Announcement) {
	for i := range as {
		f.emit(Event{Kind: PrefixAnnounced, Announcement: as[i]})
	}
}

// ShardLoad is how much a shard works.
type ShardLoad struct {
	Busy    time.Duration // its lock was held for; what one processor could do at most is the time that passed
	Recent  float64       // the share of one processor that it was of late, 0 to 1
	Packets uint64        // received
	Batches uint64        // of packets, for each of which it was locked once

	PitEntries       int
	CSHits, CSMisses uint64
}

// Loads lists the shards' loads, by the number of the shard.
func (f *Forwarder) Loads() []ShardLoad {
	loads := make([]ShardLoad, len(f.units))
	for i, u := range f.units {
		u.mu.Lock()
		l := &loads[i]
		*l = u.load
		l.Recent = u.recent.share(f.clock.now())
		cs := u.shard.CSInfo()
		l.PitEntries, l.CSHits, l.CSMisses = u.shard.Counters().PitEntries, cs.Hits, cs.Misses
		u.mu.Unlock()
	}
	return loads
}

// worked notes that the shard worked from begin to end; the lock is held.
func (u *unit) worked(begin, end ndn.Time) {
	d := end.Sub(begin)
	u.load.Busy += d
	u.recent.add(end, d)
}

// recentLoad is the share of the time in which something was busy: that of
// the last whole window of a second, or of a longer one when nothing happened.
type recentLoad struct {
	from ndn.Time // begin of the window
	busy time.Duration
	last float64 // of the window before
}

const loadWindow = time.Second

func (r *recentLoad) add(now ndn.Time, busy time.Duration) {
	r.busy += busy
	r.roll(now)
}

func (r *recentLoad) roll(now ndn.Time) {
	if long := now.Sub(r.from); long >= loadWindow {
		r.last = min(float64(r.busy)/float64(long), 1)
		r.from, r.busy = now, 0
	}
}

func (r *recentLoad) share(now ndn.Time) float64 {
	r.roll(now)
	return r.last
}

// Send implements fw.Sender. The shard calls it, so the lock is held.
func (u *unit) Send(id ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	fc := u.faces[id]
	if fc == nil {
		return false
	}
	u.sent += len(wire)
	return fc.enqueue(u.now, wire, f, u)
}

// process hands the first n packets of b, which came in by fc, to their
// shards, each locked once. What is to be flushed is added to b.touched.
func (f *Forwarder) process(now ndn.Time, fc *netFace, b *batch, n int) {
	for _, u := range f.units {
		u.mu.Lock()
		begin := f.clock.now()
		u.now, u.sent = now, 0
		if u.shard.Deadline() <= now {
			u.shard.Tick(now)
		}
		// A face that has been destroyed in the meantime is nobody's.
		if u.faces[fc.id] == fc {
			if len(f.units) == 1 {
				u.shard.ReceiveBatch(now, fc.id, b.packets[:n])
			} else {
				for i := range n {
					if p := &b.packets[i]; f.unitOf(p) == u {
						u.shard.Receive(now, fc.id, p)
					}
				}
			}
		}
		deadline := u.shard.Deadline()
		b.touched = append(b.touched, u.touched...)
		u.touched = u.touched[:0]
		b.sent += u.sent
		announced := u.takeAnnounced()
		u.load.Batches++
		u.load.Packets += uint64(n)
		u.worked(begin, f.clock.now())
		u.mu.Unlock()
		f.alarms.arm(u.timer, deadline)
		f.tell(announced)
	}
}

// unitOf is the shard boundary: which shard a packet belongs to. With one
// shard everything belongs to it.
func (f *Forwarder) unitOf(*ndn.Packet) *unit { return f.units[0] }

// call runs fn with the lock of each shard in turn, and flushes what it
// caused.
func (f *Forwarder) call(fn func(now ndn.Time, s *fw.Shard)) {
	for _, u := range f.units {
		u.call(func(now ndn.Time) { fn(now, u.shard) })
	}
}

func (u *unit) call(fn func(now ndn.Time)) {
	var touched []*netFace
	u.mu.Lock()
	u.now = u.f.clock.now()
	begin := u.now
	fn(u.now)
	deadline := u.shard.Deadline()
	if len(u.touched) > 0 {
		touched = append(touched, u.touched...)
		u.touched = u.touched[:0]
	}
	u.worked(begin, u.f.clock.now())
	u.mu.Unlock()
	u.f.alarms.arm(u.timer, deadline)
	for _, fc := range touched {
		fc.flush()
	}
}

// due is the shard's timer.
func (u *unit) due(now ndn.Time) ndn.Time {
	u.call(func(ndn.Time) { u.shard.Tick(now) })
	return ndn.Never // call has armed the alarm
}

// gaveUp tells the shard of Interests that fc's link service gave up on.
func (f *Forwarder) gaveUp(fc *netFace, wires [][]byte) {
	if len(wires) == 0 {
		return
	}
	f.call(func(now ndn.Time, s *fw.Shard) {
		for _, w := range wires {
			s.GaveUp(now, fc.id, w)
		}
	})
}
