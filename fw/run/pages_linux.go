package run

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"ndnpop/table"
)

// pages is the memory of a content store, outside the Go heap. There, the
// garbage collector would count gigabytes that never become garbage, and let
// as much garbage gather before it begins; and a page that the store does not
// need any more would stay with the process for long.
//
// It needs no unsafe: x/sys makes a slice of a mapping.
type pages struct {
	maps *mappings
	mu   sync.Mutex
	free [][]byte // cut from mappings, pageSize bytes each
	// ready are pages that are backed by memory already. warming: a goroutine
	// sees to it that there are some.
	ready   [][]byte
	warming bool
	taken   int // pages in use
}

// mappings are apart from pages, whose end they outlive by a little.
type mappings struct{ all [][]byte }

// pageSize is that of a store of 16 MB or more; smaller ones stay in the heap.
// mapping is how much is asked of the system at once, in bytes: memory is used
// only as pages are taken.
const (
	pageSize = 1 << 20
	mapping  = 16 * pageSize
)

// newPages returns a source that gives its memory back when it is garbage
// itself, with the store that it was for: the store's last slice may outlive
// the forwarder's Close.
func newPages() table.PageSource {
	p := &pages{maps: &mappings{}}
	runtime.AddCleanup(p, (*mappings).unmap, p.maps)
	return p
}

func (m *mappings) unmap() {
	for _, b := range m.all {
		_ = unix.Munmap(b) // of what was mapped
	}
}

// ahead is how many pages are to be ready: enough for a store that is being
// filled fast, and little beside what it has.
func (p *pages) ahead() int { return min(p.taken/8, 16) }

// Get implements table.PageSource.
func (p *pages) Get(n int) []byte {
	if n != pageSize {
		return make([]byte, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	page := pop(&p.ready)
	if page == nil {
		page = p.fresh()
	}
	if page != nil {
		p.taken++
	}
	if !p.warming && len(p.ready) < p.ahead() {
		p.warming = true
		go p.warm()
	}
	return page
}

// warm lets the system back pages with memory: a fault for each 4 KiB takes as
// long as everything else that is done for a packet, and would be taken while
// packets are copied, with a shard locked.
func (p *pages) warm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.warming = false }()
	for len(p.ready) < p.ahead() {
		page := p.fresh()
		if page == nil {
			return
		}
		p.mu.Unlock()
		err := unix.Madvise(page, unix.MADV_POPULATE_WRITE)
		p.mu.Lock()
		if err != nil { // before Linux 5.14
			p.free = append(p.free, page)
			return
		}
		p.ready = append(p.ready, page)
	}
}

// fresh takes a page that is not ready, nil when there is no memory. The lock
// is held.
func (p *pages) fresh() []byte {
	if page := pop(&p.free); page != nil {
		return page
	}
	b, err := unix.Mmap(-1, 0, mapping, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	p.maps.all = append(p.maps.all, b)
	for len(b) > 0 {
		p.free, b = append(p.free, b[:pageSize:pageSize]), b[pageSize:]
	}
	return pop(&p.free)
}

func pop(list *[][]byte) []byte {
	n := len(*list) - 1
	if n < 0 {
		return nil
	}
	page := (*list)[n]
	*list = (*list)[:n]
	return page
}

// Put implements table.PageSource. The memory goes back to the system, the
// addresses are kept.
func (p *pages) Put(page []byte) {
	if len(page) != pageSize {
		return // the heap's
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = unix.Madvise(page, unix.MADV_DONTNEED)
	p.free = append(p.free, page)
	p.taken--
}
