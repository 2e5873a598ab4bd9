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

// Get implements table.PageSource. The page is backed by memory when it is
// returned: a fault for each 4 KiB while packets are copied would cost several
// times as much.
func (p *pages) Get(n int) []byte {
	if n != pageSize {
		return make([]byte, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		b, err := unix.Mmap(-1, 0, mapping, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil
		}
		p.maps.all = append(p.maps.all, b)
		for len(b) > 0 {
			p.free, b = append(p.free, b[:n:n]), b[n:]
		}
	}
	last := len(p.free) - 1
	page := p.free[last]
	p.free = p.free[:last]
	_ = unix.Madvise(page, unix.MADV_POPULATE_WRITE) // not before Linux 5.14
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
}
