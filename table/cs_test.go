package table

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"ndnpop/ndn"
	"pgregory.net/rapid"
)

func testData(tb fataler, n ndn.Name, freshness time.Duration, content []byte) *ndn.Data {
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: n, Freshness: freshness, Content: content}, ndn.DigestSigner{})
	if err != nil {
		tb.Fatal(err)
	}
	d := new(ndn.Data)
	if err := d.Parse(w); err != nil {
		tb.Fatal(err)
	}
	return d
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func (cs *CS) put(now ndn.Time, d *ndn.Data, hint []byte) bool {
	return cs.Insert(now, d, hint, testHasher.Prefixes(d.Name, nil))
}

func (cs *CS) ask(tb fataler, now ndn.Time, f ndn.InterestFields, hint []byte) []byte {
	var i ndn.Interest
	if err := i.Parse(ndn.AppendInterest(nil, &f)); err != nil {
		tb.Fatal(err)
	}
	q := Query{Interest: &i, Hint: hint, Hashes: testHasher.Prefixes(i.Name, nil)}
	q.Hash, q.Digest = DataHash(&i, q.Hashes)
	w, ok := cs.Find(now, &q)
	if !ok {
		return nil
	}
	return w
}

// verify checks everything that must hold between calls.
func (cs *CS) verify(tb fataler) {
	packets, slots := 0, 0
	for i := range cs.mem.pages {
		p := &cs.mem.pages[i]
		if p.buf == nil {
			continue
		}
		live := 0
		cs.mem.occupants(uint32(i), func(e uint32) {
			live++
			if cs.entries.at(e).page != uint32(i) {
				tb.Fatal("an entry is not where its slot is")
			}
		})
		if live != int(p.live) && !slices.Contains(cs.mem.empty, uint32(i)) {
			tb.Fatalf("page %d: %d live, says %d", i, live, p.live)
		}
		slots += live
	}
	if slots != cs.packets || cs.index.live != cs.packets || cs.nodeIndex.live != cs.nodeCount {
		tb.Fatalf("%d slots, %d packets, %d indexed, %d nodes of %d", slots, cs.packets, cs.index.live, cs.nodeIndex.live, cs.nodeCount)
	}
	if cs.packets > 0 && cs.memory() > cs.cfg.Capacity {
		tb.Fatalf("occupies %d of %d", cs.memory(), cs.cfg.Capacity)
	}
	// Walk the tree from the root.
	var walk func(at uint32)
	nodes := 0
	walk = func(at uint32) {
		nodes++
		n := cs.nodes.at(at)
		if n.first == 0 {
			tb.Fatal("a node without children")
		}
		prev := csRef(0)
		for r := n.first; r != 0; {
			parent, pv, next := cs.links(r)
			if *parent != at+1 || *pv != prev {
				tb.Fatal("broken links")
			}
			if r.isNode() {
				if cs.nodes.at(r.slot()).depth != n.depth+1 {
					tb.Fatal("depth")
				}
				walk(r.slot())
			} else {
				packets++
			}
			prev, r = r, *next
		}
	}
	if root, ok := cs.node(testHasher.Root(), 0, nil); ok {
		walk(root)
	}
	if packets != cs.packets || nodes != cs.nodeCount {
		tb.Fatalf("the tree holds %d packets and %d nodes, want %d and %d", packets, nodes, cs.packets, cs.nodeCount)
	}
}

func TestCSModel(t *testing.T) {
	for _, policy := range CSPolicies() {
		t.Run(policy, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { csModel(t, policy) }) })
	}
}

func csModel(t *rapid.T, policy string) {
	const limit = 8
	cs, err := NewCS(testHasher, CSConfig{Capacity: 1 << 20, MaxPackets: limit, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	type held struct {
		d     *ndn.Data
		hint  string
		until ndn.Time
	}
	var model []held // next victim first
	now := ndn.Time(1)
	hintOf := func() []byte {
		if rapid.IntRange(0, 2).Draw(t, "hinted") > 0 {
			return nil
		}
		return ndn.MustName("/h" + string(rune('0'+rapid.IntRange(0, 1).Draw(t, "hint")))).AppendTLVTo(nil)
	}
	lookups := uint64(0)
	for range rapid.IntRange(1, 120).Draw(t, "ops") {
		now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "ms")) * time.Millisecond)
		switch rapid.IntRange(0, 6).Draw(t, "op") {
		case 0, 1, 2:
			n := nameGen(3).Draw(t, "name")
			fresh := time.Duration(rapid.IntRange(0, 5).Draw(t, "fresh")) * time.Millisecond
			d := testData(t, n, fresh, make([]byte, rapid.SampledFrom([]int{1, 60, 2000, 8000}).Draw(t, "size")))
			hint := hintOf()
			if ok := cs.put(now, d, hint); ok != (len(n) > 0) {
				t.Fatal("insert")
			} else if !ok {
				continue
			}
			at := slices.IndexFunc(model, func(h held) bool { return h.d.Name.Equal(n) && h.hint == string(hint) })
			if at >= 0 {
				model = slices.Delete(model, at, at+1)
			} else if len(model) == limit {
				model = model[1:]
			}
			h := held{d: d, hint: string(hint)}
			if fresh > 0 {
				h.until = now.Add(fresh)
			}
			model = append(model, h)
		case 3, 4, 5:
			n := nameGen(3).Draw(t, "name")
			if len(n) == 0 {
				continue
			}
			lookups++
			f := ndn.InterestFields{Name: n, CanBePrefix: rapid.Bool().Draw(t, "cbp"), MustBeFresh: rapid.Bool().Draw(t, "mbf")}
			hint := hintOf()
			digest := rapid.IntRange(0, 4).Draw(t, "digest")
			if digest == 0 && len(model) > 0 {
				d := model[rapid.IntRange(0, len(model)-1).Draw(t, "of")].d
				sum := d.Digest()
				f.Name = d.Name.Clone().Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]})
			}
			w := cs.ask(t, now, f, hint)
			match := func(h held) bool {
				if h.hint != "" && h.hint != string(hint) || f.MustBeFresh && h.until <= now {
					return false
				}
				sum := h.d.Digest()
				full := h.d.Name.Clone().Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]})
				return f.Name.Equal(h.d.Name) || f.Name.Equal(full) || f.CanBePrefix && h.d.Name.HasPrefix(f.Name)
			}
			at := slices.IndexFunc(model, func(h held) bool { return match(h) && bytes.Equal(h.d.Wire, w) })
			if any := slices.ContainsFunc(model, match); any != (w != nil) || any && at < 0 {
				t.Fatalf("%s: found %v, want %v", f.Name, w != nil, any)
			}
			if w != nil && policy == "lru" {
				// Data with the same bytes may differ in their hint: follow the store.
				slot := cs.policy.(*lruPolicy).tail - 1
				for i, h := range model {
					if e := cs.entries.at(slot); h.d.Name.Equal(cs.name(e)) && cs.hasHint(e, []byte(h.hint)) {
						model = append(slices.Delete(model, i, i+1), h)
						break
					}
				}
			}
		case 6:
			n := nameGen(2).Draw(t, "prefix")
			want := 0
			model = slices.DeleteFunc(model, func(h held) bool {
				if h.d.Name.HasPrefix(n) {
					want++
					return true
				}
				return false
			})
			if got := cs.Erase(n, 0); got != want {
				t.Fatalf("erased %d below %s, want %d", got, n, want)
			}
		}
		i := cs.Info()
		if i.Packets != len(model) || i.Hits+i.Misses != lookups {
			t.Fatalf("%+v, want %d packets", i, len(model))
		}
		var bytes int64
		for _, h := range model {
			bytes += int64(len(h.d.Wire))
		}
		if i.Bytes != bytes {
			t.Fatalf("%d bytes, want %d", i.Bytes, bytes)
		}
		cs.verify(t)
	}
}

// TestCSChurn drives the memory with every mix of sizes, in a store that is
// always full.
func TestCSChurn(t *testing.T) {
	for _, policy := range CSPolicies() {
		rapid.Check(t, func(t *rapid.T) {
			capacity := int64(rapid.IntRange(20<<10, 400<<10).Draw(t, "capacity"))
			cs, err := NewCS(testHasher, CSConfig{Capacity: capacity, Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			lo, hi := 0, 8000
			for i := range rapid.IntRange(50, 600).Draw(t, "ops") {
				if i%100 == 0 { // the mix changes
					lo = rapid.IntRange(0, 8000).Draw(t, "lo")
					hi = rapid.IntRange(lo, 8000).Draw(t, "hi")
				}
				n := ndn.MustName(fmt.Sprintf("/a/%d/%d", i%7, rapid.IntRange(0, 300).Draw(t, "n")))
				d := testData(t, n, 0, make([]byte, rapid.IntRange(lo, hi).Draw(t, "size")))
				ok := cs.put(1, d, nil)
				if !ok && capacity > 64<<10 {
					t.Fatalf("not stored: %+v", cs.Info())
				}
				if ok && cs.ask(t, 1, ndn.InterestFields{Name: n}, nil) == nil {
					t.Fatal("stored and not there")
				}
				if i%50 == 0 {
					cs.verify(t)
				}
			}
			cs.verify(t)
			cs.Erase(nil, 0)
			cs.verify(t)
			if cs.nodeCount != 0 || cs.Info().Bytes != 0 {
				t.Fatal("not empty")
			}
		})
	}
}

// A policy must not leak: after many insertions and evictions its lists are
// as long as the store.
func TestCSPolicyDoesNotLeak(t *testing.T) {
	for _, policy := range CSPolicies() {
		cs, err := NewCS(testHasher, CSConfig{Capacity: 300 << 10, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20_000 {
			cs.put(1, testData(t, ndn.MustName(fmt.Sprintf("/a/%d", i)), 0, make([]byte, i%3000)), nil)
		}
		if n := int(cs.entries.n); n > 2000 {
			t.Fatalf("%s: %d entries for %d packets", policy, n, cs.packets)
		}
		cs.verify(t)
		i := cs.Info()
		if i.Inserts != 20_000 || i.Evicted+uint64(i.Packets) != i.Inserts {
			t.Fatalf("%s: %+v", policy, i)
		}
	}
}

// TestCSOverhead: at 8 KB a packet costs at most 8 % more than its bytes,
// whatever its exact size.
func TestCSOverhead(t *testing.T) {
	for _, size := range []int{7600, 8000, 8192, 8500} {
		cs, err := NewCS(testHasher, CSConfig{Capacity: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; cs.info.Evicted < 100; i++ {
			n := ndn.MustName("/cdn/video/clip.mp4/v=1700000000000000").AppendNumber(ndn.TypeSegment, uint64(i))
			cs.put(1, testData(t, n, 0, make([]byte, size)), nil)
		}
		i := cs.Info()
		over := float64(i.Config.Capacity)/float64(i.Bytes) - 1
		t.Logf("%d bytes of content: %.1f %%", size, 100*over)
		if over > 0.08 || i.Memory > i.Config.Capacity {
			t.Errorf("%d bytes of content: overhead %.1f %%", size, 100*over)
		}
	}
}

func TestCSCosts(t *testing.T) {
	if a := unsafe.Sizeof(csEntry{}) + unsafe.Sizeof(csLink{}) + 4 + 24; a > csEntryCost {
		t.Errorf("an entry costs %d, not %d", a, csEntryCost)
	}
	if a := unsafe.Sizeof(csNode{}) + 24; a > csNodeCost {
		t.Errorf("a node costs %d, not %d", a, csNodeCost)
	}
}

func TestCSConfigure(t *testing.T) {
	cs, err := NewCS(testHasher, CSConfig{})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n int) {
		for i := range n {
			cs.put(1, testData(t, ndn.MustName(fmt.Sprintf("/a/%d", i)), 0, make([]byte, 8000)), nil)
		}
	}
	fill(10)
	if cs.packets != 0 {
		t.Fatal("a store that is off holds something")
	}
	for _, c := range []struct {
		capacity int64
		min, max int
	}{{2 << 20, 220, 260}, {1 << 20, 100, 130}, {4 << 20, 440, 520}, {100 << 10, 4, 13}, {0, 0, 0}, {1 << 20, 100, 130}} {
		if err := cs.Configure(CSConfig{Capacity: c.capacity}); err != nil {
			t.Fatal(err)
		}
		cs.verify(t)
		if i := cs.Info(); i.Memory > c.capacity || i.Packets > c.max {
			t.Fatalf("%d: %+v", c.capacity, i)
		}
		fill(1000)
		cs.verify(t)
		if i := cs.Info(); i.Memory > c.capacity || i.Packets < c.min || i.Packets > c.max {
			t.Fatalf("%d: %+v", c.capacity, i)
		}
	}
	if err := cs.Configure(CSConfig{Capacity: 1 << 20, MaxPackets: 5}); err != nil || cs.packets != 5 {
		t.Fatal(err, cs.packets)
	}
	if err := cs.Configure(CSConfig{Capacity: 1 << 20, Policy: "fifo"}); err != nil || cs.packets != 0 {
		t.Fatal(err, cs.packets)
	}
	if err := cs.Configure(CSConfig{Policy: "arc"}); !errors.Is(err, ErrPolicy) || cs.cfg.Policy != "fifo" {
		t.Fatal(err)
	}
}

// pageCounter counts the pages it lends.
type pageCounter struct{ out int }

func (p *pageCounter) Get(n int) []byte { p.out++; return make([]byte, n) }
func (p *pageCounter) Put([]byte)       { p.out-- }

func TestCSPageSource(t *testing.T) {
	var p pageCounter
	cs, err := NewCS(testHasher, CSConfig{Capacity: 1 << 20, Pages: &p})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		cs.put(1, testData(t, ndn.MustName(fmt.Sprintf("/a/%d", i)), 0, make([]byte, 8000)), nil)
	}
	if p.out == 0 || p.out != cs.mem.held {
		t.Fatalf("%d pages lent, %d held", p.out, cs.mem.held)
	}
	if err := cs.Configure(CSConfig{}); err != nil || p.out != 0 {
		t.Fatalf("%v: %d pages kept", err, p.out)
	}
}

func TestCSEraseLimit(t *testing.T) {
	cs, err := NewCS(testHasher, CSConfig{Capacity: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		cs.put(1, testData(t, ndn.MustName(fmt.Sprintf("/a/%d", i)), 0, nil), nil)
	}
	cs.put(1, testData(t, ndn.MustName("/b"), 0, nil), nil)
	if n := cs.Erase(ndn.MustName("/a"), 20); n != 20 || cs.packets != 31 {
		t.Fatal(n, cs.packets)
	}
	if n := cs.Erase(ndn.MustName("/a"), 0); n != 30 || cs.packets != 1 {
		t.Fatal(n, cs.packets)
	}
	if n := cs.Erase(ndn.MustName("/b"), 5); n != 1 {
		t.Fatal(n)
	}
	cs.verify(t)
}

// Newer Data are preferred among those below a prefix, and a prefix with very
// many Data that do not match costs a bounded search.
func TestCSPrefixOrder(t *testing.T) {
	cs, err := NewCS(testHasher, CSConfig{Capacity: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for v := range 3 {
		n := ndn.MustName("/a/32=metadata").AppendNumber(ndn.TypeVersion, uint64(v)).AppendNumber(ndn.TypeSegment, 0)
		cs.put(1, testData(t, n, time.Second, nil), nil)
	}
	w := cs.ask(t, 2, ndn.InterestFields{Name: ndn.MustName("/a/32=metadata"), CanBePrefix: true, MustBeFresh: true}, nil)
	var d ndn.Data
	if d.Parse(w) != nil || d.Name.String() != "/a/32=metadata/v=2/seg=0" {
		t.Fatalf("found %s", d.Name)
	}
	for i := range 5000 {
		cs.put(1, testData(t, ndn.MustName(fmt.Sprintf("/b/%d", i)), 0, nil), nil)
	}
	visited := 0
	root, _ := cs.node(testHasher.Name(ndn.MustName("/b")), 1, ndn.MustName("/b"))
	cs.below(root, func(uint32) bool { visited++; return true })
	if visited > maxScan {
		t.Fatalf("visited %d", visited)
	}
}

// TestCSPrefixCollision: of two prefixes with the same hash, none is answered with
// the other's Data.
func TestCSPrefixCollision(t *testing.T) {
	cs, err := NewCS(testHasher, CSConfig{Capacity: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	b := testData(t, ndn.MustName("/b/1"), time.Second, nil)
	a := testData(t, ndn.MustName("/a/1"), 0, nil)
	forged := testHasher.Name(ndn.MustName("/a"))
	for _, d := range []*ndn.Data{b, a} {
		h := testHasher.Prefixes(d.Name, nil)
		h[1] = forged
		cs.Insert(0, d, nil, h)
	}
	ask := func(fresh bool) []byte {
		return cs.ask(t, 1, ndn.InterestFields{Name: ndn.MustName("/a"), CanBePrefix: true, MustBeFresh: fresh}, nil)
	}
	if w := ask(true); w != nil {
		t.Errorf("fresh Data below /a: %x", w)
	}
	if w := ask(false); !bytes.Equal(w, a.Wire) {
		t.Errorf("Data below /a: %x", w)
	}
}
