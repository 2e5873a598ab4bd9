package consumer

import (
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
)

// ErrWrong is what Sink.Metadata and Fetch.Verified are given, wrapped, for a
// packet that is wrong itself, so that another copy of it may be right.
var ErrWrong = errors.New("not the packet that was asked for")

// A packet that is wrong is asked for so many times more before the fetch
// ends: somebody may have answered faster than who has the content, or a cache
// may hold what such a one has sent. The pauses before, doubling, are for the
// race to end and for the driver to have the wrong packet removed from the
// caches that it may tell.
const (
	maxWrong   = 3
	wrongPause = 100 * time.Millisecond
)

// Rejected returns, once, the name of the packet that was rejected in the last
// call and is going to be asked for again. It is valid until the next call.
func (f *Fetch) Rejected() (ndn.Name, bool) {
	n := f.rejected
	f.rejected = nil
	return n, n != nil
}

// reject notes the packet that Rejected is to return.
func (f *Fetch) reject(name ndn.Name) {
	f.stats.Rejected++
	f.rejected = append(f.rejectedBuf[:0], name...)
	f.rejectedBuf = f.rejected
}

// wrong takes a Data that cannot be the segment of slot i. It reports whether
// the segment is asked for again; otherwise that is left to the caller.
func (f *Fetch) wrong(now ndn.Time, i int32, name ndn.Name) bool {
	s := &f.ring.slots[i]
	if s.state == slotFailed || s.state == slotWaiting && s.wrong > 0 {
		return true // it was given up, or has its turn already
	}
	if s.wrong >= maxWrong {
		return false
	}
	if s.state == slotOutstanding {
		f.ring.unlink(i)
		f.lane(s).inflight--
	}
	f.ring.disarm(i)
	if !s.lost {
		s.lost = true
		f.unrep++
	}
	s.state = slotWaiting
	f.ring.arm(i, now.Add(wrongPause<<s.wrong))
	s.wrong++
	f.reject(name)
	return true
}

// contradicts takes a Data for slot i that does not agree with what is known of
// the object: either it is wrong, or the object has changed.
// Where there are other replicas, the one that sent it is left, if that is
// certain, for theirs may agree.
func (f *Fetch) contradicts(now ndn.Time, i int32, d *ndn.Data, format string, args ...any) {
	s := &f.ring.slots[i]
	if l := f.lane(s); s.retx == 0 && s.raced == 0 && f.mayLeave(l) {
		f.reject(d.Name)
		f.leave(now, l)
		return
	}
	if f.wrong(now, i, d.Name) {
		return
	}
	f.Fail(now, fmt.Errorf("%w: %s (and so in %d copies of it)", ErrChanged, fmt.Sprintf(format, args...), maxWrong+1))
}

// oneWrong takes a single packet, with that name, that must not be believed.
func (f *Fetch) oneWrong(now ndn.Time, name ndn.Name, why error) {
	r := &f.one
	if !errors.Is(why, ErrWrong) && !errors.Is(why, ErrMetadata) || r.wrong >= maxWrong {
		f.Fail(now, why)
		return
	}
	r.out = false
	f.cur.holdUntil = now.Add(wrongPause << r.wrong)
	f.wake = f.cur.holdUntil
	r.wrong++
	f.reject(name)
}
