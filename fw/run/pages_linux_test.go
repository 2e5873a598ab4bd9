package run

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// resident is the memory that the process uses, in bytes.
func resident(tb testing.TB) int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		tb.Fatal(err)
	}
	return n * os.Getpagesize()
}

// TestPages: pages are apart from one another and, of the size that matters,
// from the heap; what is put back is the system's again.
func TestPages(t *testing.T) {
	p := newPages().(*pages)
	const n = 64
	var heap, after runtime.MemStats
	runtime.ReadMemStats(&heap)
	debug.FreeOSMemory() // what other tests left would go back at any time
	before := resident(t)
	var all [][]byte
	for i := range byte(n) {
		b := p.Get(pageSize)
		if len(b) != pageSize {
			t.Fatalf("%d bytes", len(b))
		}
		for at := range b {
			b[at] = i
		}
		all = append(all, b)
	}
	for i, b := range all {
		if bytes.Count(b, []byte{byte(i)}) != pageSize {
			t.Fatalf("page %d was written to by another", i)
		}
	}
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(heap.HeapAlloc); got > n*pageSize/2 {
		t.Errorf("the heap grew by %d bytes", got)
	}
	with := resident(t)
	for _, b := range all {
		p.Put(b)
	}
	if without := resident(t); with-before < n*pageSize*3/4 || with-without < n*pageSize*3/4 {
		t.Errorf("%d bytes resident before, %d with %d pages, %d when they were put back", before, with, n, without)
	}
	p.mu.Lock()
	if len(p.maps.all) > n*pageSize/mapping+1 || p.taken != 0 {
		t.Errorf("%d mappings, %d pages taken", len(p.maps.all), p.taken)
	}
	p.mu.Unlock()
	if b := p.Get(pageSize); bytes.Count(b, []byte{0}) != pageSize {
		t.Error("a page holds what was put back")
	}
	if b := p.Get(1000); len(b) != 1000 {
		t.Errorf("%d bytes", len(b))
	} else {
		p.Put(b)
	}
	runtime.KeepAlive(p)
}

// TestPagesEnd: the memory of a store that nobody uses any more is given back.
func TestPagesEnd(t *testing.T) {
	cs, err := table.NewCS(ndn.NewHasher(1), table.CSConfig{Capacity: 64 << 20, Pages: newPages()})
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	before := resident(t)
	fill(t, cs, 7000)
	full := resident(t)
	if full-before < 48<<20 {
		t.Fatalf("a full store of 64 MB takes %d bytes", full-before)
	}
	runtime.KeepAlive(cs)
	deadline := time.Now().Add(10 * time.Second)
	for cs = nil; resident(t) > full-(40<<20); {
		runtime.GC()
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes resident, %d with the store", resident(t), full)
		}
	}
}

// fill inserts n Data of 8 KB.
func fill(tb testing.TB, cs *table.CS, n int) {
	tb.Helper()
	f := newFiller(tb)
	for i := range n {
		f.insert(cs, uint32(i))
	}
}

// filler makes Data that differ in their last component.
type filler struct {
	hasher ndn.Hasher
	wire   []byte
	number int // where the component is
	d      ndn.Data
	hashes []uint64
	tb     testing.TB
}

func newFiller(tb testing.TB) *filler {
	name := ndn.MustName("/cdn/object/v=1").AppendNumber(ndn.TypeSegment, 1<<24)
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: make([]byte, 8000)}, ndn.DigestSigner{})
	if err != nil {
		tb.Fatal(err)
	}
	return &filler{hasher: ndn.NewHasher(1), wire: w, number: bytes.Index(w, name) + len(name) - 3, tb: tb}
}

// set makes Data number i, below 2^24.
func (f *filler) set(i uint32) {
	f.wire[f.number], f.wire[f.number+1], f.wire[f.number+2] = byte(i>>16), byte(i>>8), byte(i)
	if err := f.d.Parse(f.wire); err != nil {
		f.tb.Fatal(err)
	}
	f.hashes = f.hasher.Prefixes(f.d.Name, f.hashes[:0])
}

func (f *filler) insert(cs *table.CS, i uint32) {
	f.set(i)
	if !cs.Insert(1, &f.d, nil, f.hashes) {
		f.tb.Fatal("refused")
	}
}
