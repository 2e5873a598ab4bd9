package lp

import (
	"ndnpop/face"
	"ndnpop/ndn"
)

// valueRoom is the largest length of an element of size bytes whose type
// takes one byte.
func valueRoom(size int) int {
	switch {
	case size >= 257:
		return size - 4
	case size >= 255:
		return 252
	}
	return size - 2
}

// room is how much of a packet fits into a frame of size bytes beside header
// fields of h bytes.
func room(size, h int) int { return valueRoom(valueRoom(size) - h) }

// plan says how wire of n bytes is divided: the first frame carries first
// bytes, the others next, the last one what is left.
type plan struct {
	count, first, next int
}

// divide chooses as few frames as possible, and among these the smallest
// equal size, so that the kernel can cut a batch up itself. h0 and h are the
// sizes of the header fields of the first frame and of the others, without
// FragIndex and FragCount.
func divide(n, mtu, h0, h int) (plan, bool) {
	// FragIndex and FragCount take 4 bytes and their values.
	numbers := 4 + 2
	p, ok := smallest(n, mtu, h0+numbers, h+numbers)
	if ok && p.count > 0xff {
		numbers = 4 + 4
		p, ok = smallest(n, mtu, h0+numbers, h+numbers)
	}
	return p, ok && p.count <= MaxFragments
}

func smallest(n, mtu, h0, h int) (plan, bool) {
	r0, r := room(mtu, h0), room(mtu, h)
	if r0 < 1 || r < 1 {
		return plan{}, false
	}
	count := 1 + max(0, n-r0+r-1)/r
	fits := func(size int) bool {
		r0 := room(size, h0)
		return r0 >= 1 && r0+(count-1)*room(size, h) >= n
	}
	// 8 bytes are the types and lengths of a packet and its fragment.
	size := min(mtu, (n+h0+(count-1)*h+count-1)/count+8)
	for !fits(size) {
		size++
	}
	for size > 1 && fits(size-1) {
		size--
	}
	r0, r = room(size, h0), room(size, h)
	return plan{1 + max(0, n-r0+r-1)/r, r0, r}, true
}

// fragment sends wire in several frames. The packet's fields go with the
// first.
func (l *Link) fragment(now ndn.Time, wire []byte, out *face.Frames) error {
	h := &l.hdr
	h.HasSequence = true
	fixed := 10
	if h.HasTx {
		fixed += 12
	}
	p, ok := divide(len(wire), l.cfg.MTU, h.Size(), fixed)
	if !ok {
		return ErrOversize
	}
	h.FragCount = uint64(p.count)
	take := p.first
	for i := range p.count {
		h.FragIndex = uint64(i)
		h.Sequence = l.seq
		l.seq++
		take = min(take, len(wire))
		l.emit(now, wire[:take], out)
		wire = wire[take:]
		take = p.next
		h.LpFields, h.HasChallenge, h.HasResponse = nil, false, false
	}
	return nil
}
