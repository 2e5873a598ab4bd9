package table

// csMem is the memory of a content store: pages of equal size, each cut into
// slots of one size class. A page that has become empty may serve another
// class, so the memory follows the mix of packet sizes without being given
// back. Slots are contiguous: a packet is one slice.
type csMem struct {
	source   PageSource
	pageSize int
	pages    []csPage
	unused   []uint32 // indices of pages that have no memory
	empty    []uint32 // indices of pages that have memory and no class
	partial  [csClasses]uint32
	held     int // pages with memory
}

// PageSource supplies a content store's memory, for example from outside the
// garbage collector's heap. Pages are not cleared when they are reused.
type PageSource interface {
	// Get returns a page of n bytes, nil when there is no memory.
	Get(n int) []byte
	// Put takes a page back.
	Put(page []byte)
}

type heapPages struct{}

func (heapPages) Get(n int) []byte { return make([]byte, n) }
func (heapPages) Put([]byte)       {}

type csPage struct {
	buf        []byte
	owner      []uint32 // per slot: the entry in it, or the next free slot
	class      int32
	live       uint32 // slots in use
	used       uint32 // slots ever used since the page has its class
	free       uint32 // 1 + first free slot below used
	prev, next uint32 // 1 + page, in the list of pages with room
}

const (
	csMaxSlot   = 9984 // a packet of 8800 bytes and a hint of up to 1024
	csClasses   = 16 + 8 + (csMaxSlot-2048)/256
	csPageMax   = 1 << 20
	csPageMin   = 36 << 10
	csOwnerFree = 1 << 31
)

// classOf returns the size class for n bytes: steps of 64 up to 1 KiB, of 128
// up to 2 KiB, of 256 beyond.
func classOf(n int) int {
	switch {
	case n <= 1024:
		return max(0, (n+63)/64-1)
	case n <= 2048:
		return 16 + (n-1024+127)/128 - 1
	default:
		return 24 + (n-2048+255)/256 - 1
	}
}

func classSize(c int) int {
	switch {
	case c < 16:
		return (c + 1) * 64
	case c < 24:
		return 1024 + (c-15)*128
	default:
		return 2048 + (c-23)*256
	}
}

// pageSizeFor picks the page size of a store of this capacity: a sixteenth of
// it, and room for several packets in any case.
func pageSizeFor(capacity int64) int {
	n := min(max(capacity/16, csPageMin), csPageMax, capacity*7/8)
	return int(max(n, 0)) &^ 63
}

// hasRoom reports whether a slot of the class can be had without a new page.
func (m *csMem) hasRoom(class int) bool { return m.partial[class] != 0 || len(m.empty) > 0 }

// addPage obtains a page and reports whether it could.
func (m *csMem) addPage() bool {
	buf := m.source.Get(m.pageSize)
	if len(buf) != m.pageSize {
		return false
	}
	var i uint32
	if n := len(m.unused); n > 0 {
		i, m.unused = m.unused[n-1], m.unused[:n-1]
	} else {
		i = uint32(len(m.pages))
		m.pages = append(m.pages, csPage{})
	}
	m.pages[i].buf = buf
	m.empty = append(m.empty, i)
	m.held++
	return true
}

// dropPage gives an empty page back and reports whether there was one.
func (m *csMem) dropPage() bool {
	n := len(m.empty)
	if n == 0 {
		return false
	}
	i := m.empty[n-1]
	m.empty = m.empty[:n-1]
	m.unused = append(m.unused, i)
	m.source.Put(m.pages[i].buf)
	m.pages[i] = csPage{}
	m.held--
	return true
}

// alloc takes a slot for an entry. There must be room.
func (m *csMem) alloc(class int, entry uint32) (page, slot uint32) {
	at := m.partial[class]
	if at == 0 {
		n := len(m.empty)
		page = m.empty[n-1]
		m.empty = m.empty[:n-1]
		p := &m.pages[page]
		p.class, p.live, p.used, p.free = int32(class), 0, 0, 0
		n = m.pageSize / classSize(class)
		if cap(p.owner) < n {
			p.owner = make([]uint32, n)
		}
		p.owner = p.owner[:n]
		m.link(page)
		at = page + 1
	}
	page = at - 1
	p := &m.pages[page]
	if p.free != 0 {
		slot = p.free - 1
		p.free = p.owner[slot] &^ csOwnerFree
	} else {
		slot = p.used
		p.used++
	}
	p.owner[slot] = entry
	p.live++
	if int(p.live) == len(p.owner) {
		m.unlink(page)
	}
	return page, slot
}

// release gives a slot back.
func (m *csMem) release(page, slot uint32) {
	p := &m.pages[page]
	if int(p.live) == len(p.owner) {
		m.link(page)
	}
	p.owner[slot] = p.free | csOwnerFree
	p.free = slot + 1
	p.live--
	if p.live == 0 {
		m.unlink(page)
		m.empty = append(m.empty, page)
	}
}

// occupants calls fn with the entries in a page, while they are being
// released.
func (m *csMem) occupants(page uint32, fn func(entry uint32)) {
	for s := uint32(0); s < m.pages[page].used && m.pages[page].live > 0; s++ {
		if e := m.pages[page].owner[s]; e&csOwnerFree == 0 {
			fn(e)
		}
	}
}

// bytes returns n bytes of a slot.
func (m *csMem) bytes(page, slot uint32, n int) []byte {
	p := &m.pages[page]
	at := int(slot) * classSize(int(p.class))
	return p.buf[at : at+n : at+n]
}

func (m *csMem) link(page uint32) {
	p := &m.pages[page]
	head := &m.partial[p.class]
	p.prev, p.next = 0, *head
	if *head != 0 {
		m.pages[*head-1].prev = page + 1
	}
	*head = page + 1
}

func (m *csMem) unlink(page uint32) {
	p := &m.pages[page]
	if p.prev != 0 {
		m.pages[p.prev-1].next = p.next
	} else {
		m.partial[p.class] = p.next
	}
	if p.next != 0 {
		m.pages[p.next-1].prev = p.prev
	}
}
