package consumer

import (
	"time"

	"ndnpop/ndn"
)

// slotState is the life of one segment in the window.
type slotState uint8

const (
	slotFree        slotState = iota
	slotOutstanding           // an Interest is in flight
	slotQueued                // lost, waits in the retransmission queue
	slotWaiting               // lost, may be repeated at deadline
	slotReceived              // its Data waits for its turn
	slotFailed                // given up, or refused by the producer, beyond an unknown end
)

// slot is one segment of the window and its latest transmission.
type slot struct {
	seg      uint64
	tx       uint64
	sentAt   ndn.Time
	firstAt  ndn.Time // first transmission of this segment
	deadline ndn.Time
	// Delivery-rate state at the time of sending (congestion-control notes,
	// draft-ietf-ccwg-bbr): bytes delivered, when, and the send time that
	// opened the sampling interval.
	delivered     uint64
	deliveredTime ndn.Time
	firstSent     ndn.Time
	buf           []byte // the Data, in slotReceived
	reason        error  // in slotFailed
	next, prev    int32  // order of transmission, while outstanding
	heapAt        int32  // index in the timer heap, -1 when absent
	nonce         uint32
	retx          uint16 // earlier transmissions
	timeouts      uint16
	event         uint32 // the lossEvent of its lane that it was taken for lost in
	lane          int8   // that it was sent on last
	path          int8   // controlled path when sent
	state         slotState
	appLimited    bool
	lost          bool  // was declared lost at least once
	raced         uint8 // how often it was asked for from a second replica, too
	doubt         bool  // a replica without the content may still refuse it
	wrong         uint8 // how often a wrong Data came for it
}

const none int32 = -1

// ring holds the segments from the one to deliver next up to the highest one
// asked for, with their transmission order and their timers.
type ring struct {
	slots []slot // power of two
	mask  uint64
	heap  []int32
	lists [maxLanes]list // by lane
}

// list is the outstanding slots of a lane by transmission number.
type list struct{ head, tail int32 }

func newRing(n int) ring {
	r := ring{slots: make([]slot, n), mask: uint64(n - 1)}
	for i := range r.lists {
		r.lists[i] = list{none, none}
	}
	return r
}

func (r *ring) index(seg uint64) int32 { return int32(seg & r.mask) }

func (r *ring) at(seg uint64) *slot { return &r.slots[seg&r.mask] }

// grow doubles the ring. All used segments are in base..next-1.
func (r *ring) grow(base, next uint64) {
	old := *r
	n := 2 * len(old.slots)
	*r = ring{slots: make([]slot, n), mask: uint64(n - 1), heap: old.heap}
	move := func(i int32) int32 {
		if i == none {
			return none
		}
		return r.index(old.slots[i].seg)
	}
	for s := base; s < next; s++ {
		from := old.at(s)
		to := r.at(s)
		*to = *from
		to.next, to.prev = move(from.next), move(from.prev)
	}
	for k, l := range old.lists {
		r.lists[k] = list{move(l.head), move(l.tail)}
	}
	for k, i := range r.heap {
		r.heap[k] = move(i)
	}
}

// link appends slot i, which has the highest transmission number of its lane.
func (r *ring) link(i int32) {
	s := &r.slots[i]
	l := &r.lists[s.lane]
	s.next, s.prev = none, l.tail
	if l.tail == none {
		l.head = i
	} else {
		r.slots[l.tail].next = i
	}
	l.tail = i
}

func (r *ring) unlink(i int32) {
	s := &r.slots[i]
	l := &r.lists[s.lane]
	if s.prev == none {
		l.head = s.next
	} else {
		r.slots[s.prev].next = s.next
	}
	if s.next == none {
		l.tail = s.prev
	} else {
		r.slots[s.next].prev = s.prev
	}
	s.next, s.prev = none, none
}

// arm puts slot i into the timer heap. It must not be there.
func (r *ring) arm(i int32, deadline ndn.Time) {
	r.slots[i].deadline = deadline
	r.heap = append(r.heap, i)
	r.up(len(r.heap) - 1)
}

// disarm takes slot i out of the timer heap, if it is there.
func (r *ring) disarm(i int32) {
	k := int(r.slots[i].heapAt)
	if k < 0 {
		return
	}
	last := len(r.heap) - 1
	moved := r.heap[last]
	r.heap = r.heap[:last]
	r.slots[i].heapAt = -1
	if k == last {
		return
	}
	r.heap[k] = moved
	if !r.down(k) {
		r.up(k)
	}
}

// due is the slot with the earliest deadline, and that deadline.
func (r *ring) due() (i int32, at ndn.Time) {
	if len(r.heap) == 0 {
		return none, ndn.Never
	}
	i = r.heap[0]
	return i, r.slots[i].deadline
}

// before orders the heap: equal deadlines by the order of transmission.
func (r *ring) before(a, b int32) bool {
	x, y := &r.slots[a], &r.slots[b]
	return x.deadline < y.deadline || (x.deadline == y.deadline && x.tx < y.tx)
}

func (r *ring) up(k int) {
	i := r.heap[k]
	for k > 0 {
		p := (k - 1) / 2
		if !r.before(i, r.heap[p]) {
			break
		}
		r.heap[k] = r.heap[p]
		r.slots[r.heap[k]].heapAt = int32(k)
		k = p
	}
	r.heap[k] = i
	r.slots[i].heapAt = int32(k)
}

func (r *ring) down(k int) bool {
	i, start, n := r.heap[k], k, len(r.heap)
	for {
		c := 2*k + 1
		if c >= n {
			break
		}
		if c+1 < n && r.before(r.heap[c+1], r.heap[c]) {
			c++
		}
		if !r.before(r.heap[c], i) {
			break
		}
		r.heap[k] = r.heap[c]
		r.slots[r.heap[k]].heapAt = int32(k)
		k = c
	}
	r.heap[k] = i
	r.slots[i].heapAt = int32(k)
	return k > start
}

// queue is the retransmission queue: segments in FIFO order. Entries that are
// no longer slotQueued are skipped by whoever pops them.
type queue struct {
	buf  []uint64 // power of two, or empty
	head int
	n    int
}

func (q *queue) push(seg uint64) {
	if q.n == len(q.buf) {
		grown := make([]uint64, max(64, 2*len(q.buf)))
		for k := range q.n {
			grown[k] = q.buf[(q.head+k)&(len(q.buf)-1)]
		}
		q.buf, q.head = grown, 0
	}
	q.buf[(q.head+q.n)&(len(q.buf)-1)] = seg
	q.n++
}

func (q *queue) peek() (seg uint64, ok bool) {
	if q.n == 0 {
		return 0, false
	}
	return q.buf[q.head], true
}

func (q *queue) pop() {
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
}

// suppression is how long a forwarder may swallow a repetition of an Interest
// that was sent retx times before (NFD: 10 ms, doubling to 250 ms), with a
// tenth more for the jitter between here and there.
func suppression(retx uint16) time.Duration {
	d := 11 * time.Millisecond << min(retx, 5)
	return min(d, 275*time.Millisecond)
}
