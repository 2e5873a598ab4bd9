package table

import (
	"math/bits"

	"ndnpop/ndn"
)

// TimerKind says to its user whose timer it is.
type TimerKind uint8

// TimerID names an armed timer. It may be kept after the timer fired or was
// disarmed: it then names nothing. The zero TimerID names no timer.
type TimerID struct {
	slot uint32 // 1 + index
	gen  uint32
}

// IsSet reports whether the id ever named a timer.
func (t TimerID) IsSet() bool { return t.slot != 0 }

// Fired is a timer that is due.
type Fired struct {
	ID    TimerID
	At    ndn.Time // when it was due
	Kind  TimerKind
	Owner uint32 // as given to Arm
	Tag   uint64 // as given to Arm
}

// Timers is a hierarchical timer wheel in front of a small heap. Arming and
// disarming cost O(1); timers fire at their exact deadlines, and equal
// deadlines in the order they were armed.
type Timers struct {
	nodes slab[timerNode]
	seq   uint64
	live  int

	cur   int64 // ticks up to and including cur have moved to due
	used  [wheelLevels]uint64
	slots [wheelLevels][wheelSlots]timerList
	due   []uint32 // heap by (at, seq)
}

type timerNode struct {
	at         ndn.Time
	seq        uint64
	tag        uint64
	owner      uint32
	gen        uint32
	prev, next uint32 // 1 + index, within a wheel slot
	where      int32  // inHeap + position, or level*wheelSlots + slot
	kind       TimerKind
}

type timerList struct{ head, tail uint32 }

const (
	tickBits    = 16 // 65.5 µs
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 8 // covers all 48 bits of ticks
	inHeap      = wheelLevels * wheelSlots
	notArmed    = -1
)

// Len is the number of armed timers.
func (w *Timers) Len() int { return w.live }

// Arm starts a timer that is due at the given time (at once, if that is
// past). Owner and tag come back when it fires.
func (w *Timers) Arm(at ndn.Time, kind TimerKind, owner uint32, tag uint64) TimerID {
	i := w.nodes.get() + 1
	n := w.at(i)
	w.seq++
	gen := n.gen
	*n = timerNode{}
	n.at, n.seq, n.tag, n.owner, n.gen, n.kind = at, w.seq, tag, owner, gen, kind
	w.live++
	w.place(i)
	return TimerID{i, n.gen}
}

// Disarm stops a timer. It reports whether the timer was armed.
func (w *Timers) Disarm(id TimerID) bool {
	n := w.node(id)
	if n == nil {
		return false
	}
	w.take(id.slot)
	w.release(id.slot)
	return true
}

// Rearm moves a timer to another time, as if it were armed now, and returns
// its new id. A timer that is not armed is armed with the given values.
func (w *Timers) Rearm(id TimerID, at ndn.Time, kind TimerKind, owner uint32, tag uint64) TimerID {
	n := w.node(id)
	if n == nil {
		return w.Arm(at, kind, owner, tag)
	}
	w.take(id.slot)
	w.seq++
	n.at, n.seq, n.kind, n.owner, n.tag = at, w.seq, kind, owner, tag
	w.place(id.slot)
	return id
}

// Armed returns the kind and owner of a timer, if it is armed.
func (w *Timers) Armed(id TimerID) (kind TimerKind, owner uint32, ok bool) {
	n := w.node(id)
	if n == nil {
		return 0, 0, false
	}
	return n.kind, n.owner, true
}

func (w *Timers) at(i uint32) *timerNode { return w.nodes.at(i - 1) }

func (w *Timers) node(id TimerID) *timerNode {
	if id.slot == 0 {
		return nil
	}
	n := w.at(id.slot)
	if n.gen != id.gen || n.where == notArmed {
		return nil
	}
	return n
}

func (w *Timers) release(i uint32) {
	n := w.at(i)
	n.gen++
	n.where = notArmed
	w.nodes.put(i - 1)
	w.live--
}

// place puts a node where its deadline belongs.
func (w *Timers) place(i uint32) {
	n := w.at(i)
	t := int64(n.at) >> tickBits
	if t <= w.cur {
		w.push(i)
		return
	}
	level := (bits.Len64(uint64(t^w.cur)) - 1) / wheelBits
	s := int(t>>(level*wheelBits)) & (wheelSlots - 1)
	l := &w.slots[level][s]
	n.where = int32(level*wheelSlots + s)
	n.prev, n.next = l.tail, 0
	if l.tail != 0 {
		w.at(l.tail).next = i
	} else {
		l.head = i
		w.used[level] |= 1 << s
	}
	l.tail = i
}

// take removes a node from the heap or its wheel slot.
func (w *Timers) take(i uint32) {
	n := w.at(i)
	if n.where >= inHeap {
		w.pull(int(n.where - inHeap))
		return
	}
	level, s := n.where/wheelSlots, n.where%wheelSlots
	l := &w.slots[level][s]
	if n.prev != 0 {
		w.at(n.prev).next = n.next
	} else {
		l.head = n.next
	}
	if n.next != 0 {
		w.at(n.next).prev = n.prev
	} else {
		l.tail = n.prev
	}
	if l.head == 0 {
		w.used[level] &^= 1 << s
	}
}

// nextSlot finds the first wheel slot that holds timers and the tick at which
// it begins.
func (w *Timers) nextSlot() (level, slot int, start int64, ok bool) {
	for level = range wheelLevels {
		shift := level * wheelBits
		at := int(w.cur>>shift) & (wheelSlots - 1)
		// Slots up to the current one are empty: what they held has moved.
		if m := w.used[level] &^ (uint64(1)<<at | (uint64(1)<<at - 1)); m != 0 {
			slot = bits.TrailingZeros64(m)
			start = w.cur>>(shift+wheelBits)<<(shift+wheelBits) | int64(slot)<<shift
			return level, slot, start, true
		}
	}
	return 0, 0, 0, false
}

// Deadline is when Next should be called: not later than the first timer is
// due, and possibly earlier when that timer is far. It is ndn.Never when no
// timer is armed.
func (w *Timers) Deadline() ndn.Time {
	if len(w.due) > 0 {
		return w.at(w.due[0]).at
	}
	if _, _, start, ok := w.nextSlot(); ok {
		return ndn.Time(start << tickBits)
	}
	return ndn.Never
}

// Next disarms and returns the first timer that is due at now. Its caller
// repeats it until ok is false.
func (w *Timers) Next(now ndn.Time) (f Fired, ok bool) {
	w.advance(int64(now) >> tickBits)
	if len(w.due) == 0 {
		return Fired{}, false
	}
	i := w.due[0]
	n := w.at(i)
	if n.at > now {
		return Fired{}, false
	}
	f = Fired{TimerID{i, n.gen}, n.at, n.kind, n.owner, n.tag}
	w.pull(0)
	w.release(i)
	return f, true
}

func (w *Timers) advance(tick int64) {
	for w.cur < tick {
		level, s, start, ok := w.nextSlot()
		if !ok || start > tick {
			w.cur = tick
			return
		}
		w.cur = start
		l := &w.slots[level][s]
		i := l.head
		*l = timerList{}
		w.used[level] &^= 1 << s
		for i != 0 {
			next := w.at(i).next
			w.place(i)
			i = next
		}
	}
}

func (w *Timers) less(a, b uint32) bool {
	x, y := w.at(a), w.at(b)
	return x.at < y.at || (x.at == y.at && x.seq < y.seq)
}

func (w *Timers) push(i uint32) {
	w.due = append(w.due, i)
	w.at(i).where = int32(inHeap + len(w.due) - 1)
	w.up(len(w.due) - 1)
}

func (w *Timers) pull(p int) {
	last := len(w.due) - 1
	moved := w.due[last]
	w.due = w.due[:last]
	if p == last {
		return
	}
	w.set(p, moved)
	w.down(p)
	w.up(p)
}

func (w *Timers) set(p int, i uint32) {
	w.due[p] = i
	w.at(i).where = int32(inHeap + p)
}

func (w *Timers) up(p int) {
	i := w.due[p]
	for p > 0 {
		parent := (p - 1) / 2
		if !w.less(i, w.due[parent]) {
			break
		}
		w.set(p, w.due[parent])
		p = parent
	}
	w.set(p, i)
}

func (w *Timers) down(p int) {
	i := w.due[p]
	for {
		c := 2*p + 1
		if c >= len(w.due) {
			break
		}
		if c+1 < len(w.due) && w.less(w.due[c+1], w.due[c]) {
			c++
		}
		if !w.less(w.due[c], i) {
			break
		}
		w.set(p, w.due[c])
		p = c
	}
	w.set(p, i)
}
