package lp

import (
	"slices"

	"ndnpop/ndn"
)

// partial is a packet whose fragments have not all come.
type partial struct {
	key      uint64 // Sequence of the fragment 0
	sender   uint64 // on a link with several
	count    uint64
	have     uint64
	deadline ndn.Time
	inOrder  bool // buf holds the fragments in order

	newer *partial // in the order of age; in the free list, the next one
	older *partial
	chain *partial // in the same bucket

	fields ndn.LpFields
	token  [32]byte
	ann    []byte
	buf    []byte // fragments as they came
	at     []span // of each fragment
}

// keepFree is how many partials are kept for reuse. What a peer left
// incomplete beyond that is given back when its time is over: thousands of
// peers together could otherwise make us hold gigabytes for what they sent
// once.
const keepFree = 4

// span is where in buf a fragment lies. No length means that it is missing.
type span struct{ start, len uint16 }

// reassembler holds the incomplete packets of one peer.
type reassembler struct {
	cfg     Reassembly
	n       int
	oldest  *partial
	newest  *partial
	free    *partial
	nFree   int
	last    *partial // the one that got the last fragment
	done    *partial // the one whose packet the caller views
	buckets []*partial
	joined  []byte // a packet whose fragments came out of order
}

func (r *reassembler) init(cfg Reassembly) { r.cfg = cfg }

// bucket is where key's chain begins. Consecutive numbers spread over the
// buckets whatever the number of fragments.
func (r *reassembler) bucket(sender, key uint64) **partial {
	if r.buckets == nil {
		n := 16
		for n < r.cfg.Packets {
			n *= 2
		}
		r.buckets = make([]*partial, n)
	}
	return &r.buckets[((key^sender)*0x9e3779b97f4a7c15)>>32&uint64(len(r.buckets)-1)]
}

func (r *reassembler) find(sender, key uint64) *partial {
	if r.last != nil && r.last.key == key && r.last.sender == sender {
		return r.last
	}
	p := *r.bucket(sender, key)
	for p != nil && (p.key != key || p.sender != sender) {
		p = p.chain
	}
	return p
}

// add takes a fragment with FragIndex < FragCount <= MaxFragments. When it
// completes a packet, that is returned with its fields; both are valid until
// the next call.
func (r *reassembler) add(now ndn.Time, sender uint64, in *ndn.LpPacket, ctr *Counters) ([]byte, *ndn.LpFields, error) {
	if r.done != nil {
		r.recycle(r.done)
		r.done = nil
	}
	if !in.HasSequence {
		ctr.InFragment++
		return nil, nil, ErrFragment
	}
	// Numbers wrap around at 2^64.
	key := in.Sequence - in.FragIndex
	p := r.find(sender, key)
	if p == nil {
		p = r.make(now, sender, key, in.FragCount, ctr)
	}
	r.last = p
	if p.count != in.FragCount {
		ctr.InFragment++
		return nil, nil, ErrFragment
	}
	s := &p.at[in.FragIndex]
	switch {
	case s.len != 0:
		ctr.InDuplicate++
		return nil, nil, nil
	case len(p.buf)+len(in.Fragment) > ndn.MaxPacketSize:
		ctr.InOversize++
		r.remove(p)
		return nil, nil, ErrOversize
	}
	*s = span{uint16(len(p.buf)), uint16(len(in.Fragment))}
	p.buf = append(p.buf, in.Fragment...)
	p.inOrder = p.inOrder && in.FragIndex == p.have
	p.have++
	mark := max(p.fields.CongestionMark, in.CongestionMark)
	if in.FragIndex == 0 {
		p.fields = in.LpFields
		if in.PitToken != nil {
			p.fields.PitToken = p.token[:copy(p.token[:], in.PitToken)]
		}
		if in.Announcement != nil {
			p.ann = append(p.ann[:0], in.Announcement...)
			p.fields.Announcement = p.ann
		}
	}
	// A router may mark any fragment; the other fields count on the first.
	p.fields.CongestionMark = mark
	if p.have < p.count {
		return nil, nil, nil
	}
	r.unlink(p)
	r.done = p
	return r.join(p), &p.fields, nil
}

// join returns the fragments in order.
func (r *reassembler) join(p *partial) []byte {
	if p.inOrder {
		return p.buf
	}
	if r.joined == nil {
		r.joined = make([]byte, 0, ndn.MaxPacketSize)
	}
	r.joined = r.joined[:0]
	for _, s := range p.at {
		r.joined = append(r.joined, p.buf[s.start:int(s.start)+int(s.len)]...)
	}
	return r.joined
}

// make makes a place for a new packet, at the cost of the oldest one if there
// are too many.
func (r *reassembler) make(now ndn.Time, sender, key, count uint64, ctr *Counters) *partial {
	if r.n >= r.cfg.Packets {
		ctr.InReassemblyMax++
		r.remove(r.oldest)
	}
	p := r.free
	if p == nil {
		p = new(partial)
	} else {
		r.free = p.newer
		r.nFree--
	}
	p.sender, p.key, p.count, p.have, p.inOrder = sender, key, count, 0, true
	p.deadline = now.Add(r.cfg.Timeout)
	p.fields = ndn.LpFields{}
	p.buf = p.buf[:0]
	p.at = slices.Grow(p.at[:0], int(count))[:count]
	clear(p.at)
	p.newer, p.older = nil, r.newest
	if r.newest != nil {
		r.newest.newer = p
	} else {
		r.oldest = p
	}
	r.newest = p
	b := r.bucket(sender, key)
	p.chain, *b = *b, p
	r.n++
	return p
}

// unlink takes p out of the tables.
func (r *reassembler) unlink(p *partial) {
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		r.newest = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		r.oldest = p.newer
	}
	b := r.bucket(p.sender, p.key)
	for *b != p {
		b = &(*b).chain
	}
	*b = p.chain
	p.newer, p.older, p.chain = nil, nil, nil
	if r.last == p {
		r.last = nil
	}
	r.n--
}

// remove gives p up.
func (r *reassembler) remove(p *partial) {
	r.unlink(p)
	r.recycle(p)
}

// recycle keeps what is in no table for reuse.
func (r *reassembler) recycle(p *partial) {
	if r.nFree < keepFree {
		p.newer, r.free = r.free, p
		r.nFree++
	}
}

// deadline is when the oldest packet times out. All have the same time, so
// the order of age is that of the deadlines.
func (r *reassembler) deadline() ndn.Time {
	if r.oldest == nil {
		return ndn.Never
	}
	return r.oldest.deadline
}

func (r *reassembler) expire(now ndn.Time, ctr *Counters) {
	for r.oldest != nil && r.oldest.deadline <= now {
		ctr.InReassemblyOld++
		r.remove(r.oldest)
	}
}
