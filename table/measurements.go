package table

import "ndnpop/ndn"

// Measurements keeps a State per name prefix and kind, for what strategies
// learn about a prefix. It is bounded: a new one takes the place of the one
// that was used longest ago.
type Measurements struct {
	index index
	slab  slab[measurement]
	limit int
	head  uint32 // 1 + slot, most recently used
	tail  uint32
}

type measurement struct {
	state      State
	name       []byte
	hash       uint64
	kind       uint32
	prev, next uint32 // 1 + slot
}

// NewMeasurements returns a table of at most limit states.
func NewMeasurements(limit int) *Measurements { return &Measurements{limit: max(1, limit)} }

// Len is the number of states held.
func (m *Measurements) Len() int { return m.index.live }

func kindHash(h uint64, kind uint32) uint64 { return h ^ uint64(kind)*0x9e3779b97f4a7c15 }

// Get returns the state of a name and kind, an empty one when it is new. h is
// the hash of the name. The state may be used until the next call of Get.
func (m *Measurements) Get(h uint64, n ndn.Name, kind uint32) *State {
	h = kindHash(h, kind)
	for slot, it, ok := m.index.find(h); ok; slot, it, ok = it.next() {
		e := m.slab.at(slot)
		if e.hash == h && e.kind == kind && n.Equal(e.name) {
			if m.head != slot+1 {
				m.unlink(slot)
				m.link(slot)
			}
			return &e.state
		}
	}
	if m.index.live >= m.limit {
		m.drop(m.tail - 1)
	}
	slot := m.slab.get()
	e := m.slab.at(slot)
	e.name, e.hash, e.kind = append(e.name[:0], n...), h, kind
	m.index.insert(h, slot)
	m.link(slot)
	return &e.state
}

func (m *Measurements) drop(slot uint32) {
	e := m.slab.at(slot)
	m.index.remove(e.hash, slot)
	m.unlink(slot)
	e.state.Clear()
	if cap(e.name) > keepWire {
		e.name = nil
	}
	m.slab.put(slot)
}

func (m *Measurements) link(slot uint32) {
	e := m.slab.at(slot)
	e.prev, e.next = 0, m.head
	if m.head != 0 {
		m.slab.at(m.head - 1).prev = slot + 1
	} else {
		m.tail = slot + 1
	}
	m.head = slot + 1
}

func (m *Measurements) unlink(slot uint32) {
	e := m.slab.at(slot)
	if e.prev != 0 {
		m.slab.at(e.prev - 1).next = e.next
	} else {
		m.head = e.next
	}
	if e.next != 0 {
		m.slab.at(e.next - 1).prev = e.prev
	} else {
		m.tail = e.prev
	}
}
