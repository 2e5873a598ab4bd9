package strategy

import (
	"time"

	"ndnpop/ndn"
)

// MaxHops is how many next hops of one prefix a Hops keeps.
const MaxHops = 64

// Hops keeps a T per next hop, usually within a PrefixState. The zero Hops is
// empty. Of more than MaxHops next hops the one asked for longest ago is
// forgotten.
type Hops[T any] struct {
	slots []hopSlot[T]
	clock uint64
}

type hopSlot[T any] struct {
	face ndn.FaceID
	used uint64
	v    T
}

// Of returns the T of a next hop, a zero one at first. It is valid until the
// next call of Of.
func (h *Hops[T]) Of(f ndn.FaceID) *T {
	h.clock++
	oldest := 0
	for i := range h.slots {
		s := &h.slots[i]
		if s.face == f {
			s.used = h.clock
			return &s.v
		}
		if s.used < h.slots[oldest].used {
			oldest = i
		}
	}
	if len(h.slots) < MaxHops {
		h.slots = append(h.slots, hopSlot[T]{face: f, used: h.clock})
		return &h.slots[len(h.slots)-1].v
	}
	h.slots[oldest] = hopSlot[T]{face: f, used: h.clock}
	return &h.slots[oldest].v
}

// Find returns the T of a next hop, or nil when it has none. It is valid until
// the next call of Of.
func (h *Hops[T]) Find(f ndn.FaceID) *T {
	for i := range h.slots {
		if h.slots[i].face == f {
			return &h.slots[i].v
		}
	}
	return nil
}

// Len is the number of next hops kept.
func (h *Hops[T]) Len() int { return len(h.slots) }

// At returns the i-th next hop, in the order in which they were first asked
// for, as long as none has been forgotten.
func (h *Hops[T]) At(i int) (ndn.FaceID, *T) { return h.slots[i].face, &h.slots[i].v }

// RTT is a smoothed round-trip time (RFC 6298, section 2). The zero RTT has no
// sample.
type RTT struct {
	Smooth time.Duration
	Var    time.Duration
	Min    time.Duration // the smallest sample
	N      uint32        // samples
}

// Add adds a sample. It must be certain (Karn's rule): Data.RTTCertain.
func (r *RTT) Add(d time.Duration) {
	d = max(d, 1)
	if r.N++; r.N == 1 {
		r.Smooth, r.Var, r.Min = d, d/2, d
		return
	}
	if r.N == 0 {
		r.N--
	}
	diff := r.Smooth - d
	if diff < 0 {
		diff = -diff
	}
	r.Var += (diff - r.Var) / 4
	r.Smooth += (d - r.Smooth) / 8
	r.Min = min(r.Min, d)
}

// Timeout is the time after which an answer is late: the larger of
// multiple · Smooth and Smooth + 4 · Var, and at least floor. Without a sample
// it is unknown.
func (r *RTT) Timeout(multiple float64, floor, unknown time.Duration) time.Duration {
	if r.N == 0 {
		return max(unknown, floor)
	}
	return max(floor, time.Duration(multiple*float64(r.Smooth)), r.Smooth+4*r.Var)
}
