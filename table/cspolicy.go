package table

// csPolicy chooses what the content store evicts. It sees the slots of
// entries.
type csPolicy interface {
	inserted(slot uint32)
	used(slot uint32)
	removed(slot uint32)
	// victim is called when at least one entry is held.
	victim() uint32
}

// csList is an intrusive list of slots, oldest first. Links are 1 + slot.
type csList struct {
	links      []csLink
	head, tail uint32
}

type csLink struct{ prev, next uint32 }

func (l *csList) push(slot uint32) {
	for int(slot) >= len(l.links) {
		l.links = append(l.links, csLink{})
	}
	l.links[slot] = csLink{prev: l.tail}
	if l.tail != 0 {
		l.links[l.tail-1].next = slot + 1
	} else {
		l.head = slot + 1
	}
	l.tail = slot + 1
}

func (l *csList) unlink(slot uint32) {
	n := l.links[slot]
	if n.prev != 0 {
		l.links[n.prev-1].next = n.next
	} else {
		l.head = n.next
	}
	if n.next != 0 {
		l.links[n.next-1].prev = n.prev
	} else {
		l.tail = n.prev
	}
}

// fifoPolicy evicts what was inserted first.
type fifoPolicy struct{ csList }

func (p *fifoPolicy) inserted(slot uint32) { p.push(slot) }
func (p *fifoPolicy) used(uint32)          {}
func (p *fifoPolicy) removed(slot uint32)  { p.unlink(slot) }
func (p *fifoPolicy) victim() uint32       { return p.head - 1 }

// lruPolicy evicts what was used longest ago.
type lruPolicy struct{ csList }

func (p *lruPolicy) inserted(slot uint32) { p.push(slot) }
func (p *lruPolicy) used(slot uint32) {
	if p.tail != slot+1 {
		p.unlink(slot)
		p.push(slot)
	}
}
func (p *lruPolicy) removed(slot uint32) { p.unlink(slot) }
func (p *lruPolicy) victim() uint32      { return p.head - 1 }
