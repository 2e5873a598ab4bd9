package table

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"ndnpop/ndn"
	"pgregory.net/rapid"
)

var testHasher = ndn.NewHasher(42)

// nameGen draws names over a small alphabet, so that they are often equal or
// prefixes of one another.
func nameGen(maxLen int) *rapid.Generator[ndn.Name] {
	return rapid.Custom(func(t *rapid.T) ndn.Name {
		var n ndn.Name
		for range rapid.IntRange(0, maxLen).Draw(t, "len") {
			n = n.AppendGeneric(string(rune('a' + rapid.IntRange(0, 2).Draw(t, "c"))))
		}
		return n
	})
}

// weakIndex makes hashes collide, so that the comparison of names is tested.
func weaken(h uint64) uint64 { return h & 0x3_0000_0000 }

func TestIndexModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x index
		type kv struct {
			h    uint64
			slot uint32
		}
		var model []kv
		next := uint32(0)
		for range rapid.IntRange(1, 600).Draw(t, "ops") {
			if len(model) > 0 && rapid.IntRange(0, 9).Draw(t, "op") < 4 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				x.remove(model[i].h, model[i].slot)
				model = slices.Delete(model, i, i+1)
			} else {
				h := rapid.Uint64().Draw(t, "h")
				if rapid.Bool().Draw(t, "weak") {
					h = weaken(h)
				}
				x.insert(h, next)
				model = append(model, kv{h, next})
				next++
			}
			if x.live != len(model) {
				t.Fatalf("%d live, want %d", x.live, len(model))
			}
		}
		for _, m := range model {
			found := 0
			for slot, it, ok := x.find(m.h); ok; slot, it, ok = it.next() {
				if slot == m.slot {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("slot %d found %d times", m.slot, found)
			}
		}
	})
}

func TestTimersModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Timers
		type armed struct {
			at  ndn.Time
			seq uint64
			id  TimerID
		}
		var model []armed
		now, seq := ndn.Time(rapid.Int64Range(0, 1<<50).Draw(t, "start")), uint64(0)
		w.Next(now)
		when := func() ndn.Time {
			switch rapid.IntRange(0, 4).Draw(t, "range") {
			case 0:
				return now + ndn.Time(rapid.Int64Range(-1000, 3).Draw(t, "near"))
			case 1:
				return now + ndn.Time(rapid.Int64Range(0, 1<<20).Draw(t, "soon"))
			case 2:
				return now + ndn.Time(rapid.Int64Range(0, 20e9).Draw(t, "later"))
			case 3:
				return now + ndn.Time(rapid.Int64Range(0, 1<<54).Draw(t, "far"))
			}
			return (now>>20 + 1) << 20 // often the same
		}
		for range rapid.IntRange(1, 300).Draw(t, "ops") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1:
				seq++
				at := when()
				model = append(model, armed{at, seq, w.Arm(at, 1, 2, seq)})
			case 2:
				if len(model) > 0 {
					i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
					if !w.Disarm(model[i].id) || w.Disarm(model[i].id) {
						t.Fatal("disarm")
					}
					model = slices.Delete(model, i, i+1)
				}
			case 3:
				if len(model) > 0 {
					i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
					seq++
					m := armed{at: when(), seq: seq}
					m.id = w.Rearm(model[i].id, m.at, 1, 2, seq)
					model = append(slices.Delete(model, i, i+1), m)
				}
			default:
				if d := w.Deadline(); len(model) == 0 {
					if d != ndn.Never {
						t.Fatal("a deadline without timers")
					}
				} else if first := slices.MinFunc(model, func(a, b armed) int { return cmp.Compare(a.at, b.at) }); d > first.at {
					t.Fatalf("deadline %d after the first timer %d", d, first.at)
				}
				now = max(now, when())
				slices.SortFunc(model, func(a, b armed) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
				})
				for {
					f, ok := w.Next(now)
					due := len(model) > 0 && model[0].at <= now
					if ok != due {
						t.Fatalf("fired %v, want %v", ok, due)
					}
					if !ok {
						break
					}
					if f.Tag != model[0].seq || f.At != model[0].at || f.ID != model[0].id || f.Kind != 1 || f.Owner != 2 {
						t.Fatalf("fired %+v, want %+v", f, model[0])
					}
					model = model[1:]
				}
			}
			if w.Len() != len(model) {
				t.Fatalf("%d armed, want %d", w.Len(), len(model))
			}
		}
	})
}

// Whoever sleeps until Deadline gets every timer at its own time.
func TestTimersFireExactly(t *testing.T) {
	var w Timers
	for i := range 1000 {
		w.Arm(ndn.Time(i*7919*104729%5_000_000_007), 0, uint32(i), 0)
	}
	now, fired, wakes := ndn.Time(0), 0, 0
	for w.Len() > 0 {
		wakes++
		now = max(now, w.Deadline())
		for {
			f, ok := w.Next(now)
			if !ok {
				break
			}
			if fired++; f.At != now {
				t.Fatalf("due at %d, fired at %d", f.At, now)
			}
		}
	}
	if fired != 1000 || wakes > 6000 {
		t.Fatalf("%d fired in %d wakes", fired, wakes)
	}
}

func TestFIBModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFIB(testHasher, 40)
		model := map[string]map[ndn.FaceID]uint64{}
		routes := 0
		drop := func(n string, face ndn.FaceID) {
			delete(model[n], face)
			routes--
			if len(model[n]) == 0 {
				delete(model, n)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "ops") {
			n := nameGen(4).Draw(t, "name")
			face := ndn.FaceID(rapid.IntRange(1, 4).Draw(t, "face"))
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3:
				cost := uint64(rapid.IntRange(0, 3).Draw(t, "cost"))
				_, had := model[string(n)][face]
				isNew, err := f.Set(n, face, cost)
				if !had && routes == 40 {
					if err != ErrFull {
						t.Fatalf("no limit: %v", err)
					}
					continue
				}
				if err != nil || isNew == had {
					t.Fatalf("set: %v %v", isNew, err)
				}
				if model[string(n)] == nil {
					model[string(n)] = map[ndn.FaceID]uint64{}
				}
				if !had {
					routes++
				}
				model[string(n)][face] = cost
			case 4, 5:
				_, had := model[string(n)][face]
				if f.Remove(n, face) != had {
					t.Fatal("remove")
				}
				if had {
					drop(string(n), face)
				}
			case 6:
				has := 0
				for _, hops := range model {
					if _, ok := hops[face]; ok {
						has++
					}
				}
				limit := rapid.IntRange(0, 12).Draw(t, "limit")
				want := max(0, has-limit)
				if got := f.RemoveFace(face, limit); got != want {
					t.Fatalf("%d left, want %d", got, want)
				}
				// Which ones is up to the table.
				for k, hops := range model {
					if _, ok := hops[face]; ok && (f.Find(ndn.Name(k)) == nil || f.Find(ndn.Name(k)).hop(face) < 0) {
						drop(k, face)
						has--
					}
				}
				if has != want {
					t.Fatalf("%d are there, want %d", has, want)
				}
			default:
				e := f.Longest(testHasher.Prefixes(n, nil), n)
				var want ndn.Name
				found := false
				for l := n.Len(); l >= 0 && !found; l-- {
					if _, ok := model[string(n.Prefix(l))]; ok {
						want, found = n.Prefix(l), true
					}
				}
				if (e != nil) != found {
					t.Fatalf("%s: found %v, want %v", n, e != nil, found)
				}
				if !found {
					continue
				}
				hops := model[string(want)]
				if !e.Prefix.Equal(want) || len(e.Hops) != len(hops) || e.Prefix.Len() != want.Len() {
					t.Fatalf("%s: %s %v, want %s %v", n, e.Prefix, e.Hops, want, hops)
				}
				for i, h := range e.Hops {
					if hops[h.Face] != h.Cost || i > 0 && (e.Hops[i-1].Cost > h.Cost || e.Hops[i-1].Cost == h.Cost && e.Hops[i-1].Face >= h.Face) {
						t.Fatalf("%v, want %v", e.Hops, hops)
					}
				}
			}
			if f.Len() != len(model) || f.Routes() != routes {
				t.Fatalf("%d entries, %d routes; want %d, %d", f.Len(), f.Routes(), len(model), routes)
			}
		}
		seen := 0
		f.Each(func(e *FibEntry) bool { seen++; return true })
		if seen != len(model) || f.Len() == 0 && len(f.byFace) != 0 {
			t.Fatalf("listed %d of %d", seen, len(model))
		}
	})
}

func TestNamesAreCompared(t *testing.T) {
	// All names have the same hash: only the comparison tells them apart.
	var p prefixes[int]
	names := []ndn.Name{ndn.MustName("/a"), ndn.MustName("/b"), ndn.MustName("/a/b"), nil}
	for i, n := range names {
		p.slab.at(p.add(7, n)).value = i
	}
	for i, n := range names {
		slot, ok := p.get(7, n)
		if !ok || p.slab.at(slot).value != i {
			t.Fatalf("%s: %v", n, ok)
		}
	}
	slot, ok := p.longest([]uint64{7, 7, 7, 7}, ndn.MustName("/a/c/d"))
	if !ok || p.slab.at(slot).value != 0 {
		t.Fatal("longest")
	}
	if _, ok := p.get(7, ndn.MustName("/c")); ok {
		t.Fatal("found what is not there")
	}
}

func TestMeasurementsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMeasurements(5)
		type key struct {
			n    string
			kind uint32
		}
		var order []key // oldest first
		values := map[key]int{}
		owner := &recycler{}
		for i := range rapid.IntRange(1, 200).Draw(t, "ops") {
			n := nameGen(2).Draw(t, "name")
			k := key{string(n), uint32(rapid.IntRange(1, 2).Draw(t, "kind"))}
			s := m.Get(testHasher.Name(n), n, k.kind)
			if at := slices.Index(order, k); at >= 0 {
				order = slices.Delete(order, at, at+1)
				if s.Value.(int) != values[k] {
					t.Fatal("another value")
				}
			} else {
				if s.Owner != nil || s.Value != nil {
					t.Fatal("not empty")
				}
				if len(order) == 5 {
					order = order[1:]
				}
			}
			order = append(order, k)
			s.Owner, s.Value = owner, i
			values[k] = i
			if m.Len() != len(order) {
				t.Fatalf("%d, want %d", m.Len(), len(order))
			}
		}
	})
}

type recycler struct{ n int }

func (r *recycler) Recycle(any) { r.n++ }

func TestDeadNoncesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDeadNonces(64, time.Second)
		type added struct {
			name  uint64
			nonce uint32
			at    ndn.Time
		}
		var model []added
		now := ndn.Time(1)
		for range rapid.IntRange(1, 400).Draw(t, "ops") {
			name := uint64(rapid.IntRange(0, 3).Draw(t, "name"))
			nonce := uint32(rapid.IntRange(0, 9).Draw(t, "nonce"))
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "add") {
				d.Add(now, name, nonce)
				model = append(model, added{name, nonce, now})
				continue
			}
			want := false
			for _, a := range model {
				want = want || a.name == name && a.nonce == nonce && now.Sub(a.at) < time.Second
			}
			if got := d.Has(now, name, nonce); got != want && d.Evicted() == 0 {
				t.Fatalf("has %v, want %v", got, want)
			}
		}
		if d.Len() > 64 || len(d.ring) > 64 {
			t.Fatalf("%d held", d.Len())
		}
	})
}

func TestDeadNoncesAreBounded(t *testing.T) {
	d := NewDeadNonces(1000, time.Minute)
	for i := range 100_000 {
		d.Add(ndn.Time(i), uint64(i), 7)
	}
	if d.Len() != 1024 || d.index.live != 1024 || d.Evicted() != 100_000-1024 {
		t.Fatalf("%d held, %d indexed, %d lost", d.Len(), d.index.live, d.Evicted())
	}
	if d.Has(100_000, 0, 7) || !d.Has(100_000, 99_999, 7) {
		t.Fatal("not the newest are held")
	}
}

// pitModel is a list of Interests.
type pitModel struct {
	wire  []byte
	i     ndn.Interest
	entry *PitEntry
}

func TestPITModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPIT(PITConfig{MaxEntries: 30, MaxVariants: 1000}, 3)
		var model []pitModel
		content := func(n ndn.Name, c int) ndn.Data {
			w, err := ndn.AppendData(nil, &ndn.DataFields{Name: n, Content: []byte{byte(c)}}, ndn.DigestSigner{})
			if err != nil {
				t.Fatal(err)
			}
			var d ndn.Data
			if err := d.Parse(w); err != nil {
				t.Fatal(err)
			}
			return d
		}
		for range rapid.IntRange(1, 150).Draw(t, "ops") {
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				n := nameGen(3).Draw(t, "name")
				if len(n) == 0 {
					continue
				}
				if rapid.IntRange(0, 3).Draw(t, "digest") == 0 {
					d := content(n, rapid.IntRange(0, 1).Draw(t, "content"))
					sum := d.Digest()
					n = n.Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]})
				}
				f := ndn.InterestFields{Name: n, CanBePrefix: rapid.Bool().Draw(t, "cbp"), MustBeFresh: rapid.Bool().Draw(t, "mbf")}
				if rapid.Bool().Draw(t, "hint") {
					f.ForwardingHint = []ndn.Name{nameGen(1).Draw(t, "hint")}
				}
				m := pitModel{wire: ndn.AppendInterest(nil, &f)}
				if err := m.i.Parse(m.wire); err != nil {
					continue // an empty delegation
				}
				hashes := testHasher.Prefixes(m.i.Name, nil)
				h, digest := DataHash(&m.i, hashes)
				e, variants := p.Find(h, &m.i, m.i.ForwardingHint)
				at := slices.IndexFunc(model, func(o pitModel) bool {
					return o.i.Name.Equal(m.i.Name) && o.i.CanBePrefix == m.i.CanBePrefix &&
						o.i.MustBeFresh == m.i.MustBeFresh && bytes.Equal(o.i.ForwardingHint, m.i.ForwardingHint)
				})
				if at >= 0 {
					if e != model[at].entry {
						t.Fatal("another entry found")
					}
					continue
				}
				if e != nil {
					t.Fatal("found what is not there")
				}
				e, err := p.Insert(h, &m.i, m.i.ForwardingHint, digest, hashes, variants)
				if len(model) == 30 {
					if err != ErrFull {
						t.Fatal("no limit")
					}
					continue
				}
				if err != nil || len(e.In) != 0 || len(e.Out) != 0 || e.State.Owner != nil || e.Strategy != 0 {
					t.Fatalf("%v %+v", err, e)
				}
				e.In = append(e.In, InRecord{Face: 1})
				e.Strategy = 9
				m.entry = e
				model = append(model, m)
			case 2:
				if len(model) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				tok := p.Token(model[i].entry)
				if p.ByToken(tok[:]) != model[i].entry {
					t.Fatal("token")
				}
				p.Remove(model[i].entry)
				if p.ByToken(tok[:]) != nil {
					t.Fatal("a stale token works")
				}
				model = slices.Delete(model, i, i+1)
			case 3:
				n := nameGen(4).Draw(t, "data")
				d := content(n, rapid.IntRange(0, 1).Draw(t, "content"))
				sum := d.Digest()
				full := n.Clone().Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]})
				var want []*PitEntry
				for _, m := range model {
					if m.i.Name.Equal(full) || m.i.Name.Equal(n) || m.i.CanBePrefix && full.HasPrefix(m.i.Name) {
						want = append(want, m.entry)
					}
				}
				got := p.Match(nil, testHasher.Prefixes(n, nil), &d)
				if len(got) != len(want) {
					t.Fatalf("%s matches %d, want %d", n, len(got), len(want))
				}
				for _, e := range want {
					if !slices.Contains(got, e) {
						t.Fatalf("%s does not match %s", n, e.Name)
					}
				}
			}
			if p.Len() != len(model) {
				t.Fatalf("%d entries, want %d", p.Len(), len(model))
			}
			prefix := nameGen(5).Draw(t, "below")
			below := map[*PitEntry]bool{}
			p.EachBelow(testHasher.Prefixes(prefix, nil), func(e *PitEntry) { below[e] = true })
			for _, m := range model {
				if (m.i.ForwardingHint != nil || m.i.Name.HasPrefix(prefix)) && !below[m.entry] {
					t.Fatalf("%s is not below %s", m.i.Name, prefix)
				}
			}
		}
		for _, m := range model {
			if !m.entry.Name.Equal(m.i.Name) || !bytes.Equal(m.entry.Wire, m.wire) || !bytes.Equal(m.entry.Hint, m.i.ForwardingHint) {
				t.Fatal("the entry changed")
			}
		}
	})
}

func TestPITRecyclesMemory(t *testing.T) {
	p := NewPIT(PITConfig{}, 0)
	for i := range 100_000 {
		w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a").AppendGeneric(fmt.Sprint(i)), CanBePrefix: i%2 == 0})
		var in ndn.Interest
		if err := in.Parse(w); err != nil {
			t.Fatal(err)
		}
		hashes := testHasher.Prefixes(in.Name, nil)
		h, dg := DataHash(&in, hashes)
		e, err := p.Insert(h, &in, nil, dg, hashes, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Remove(e)
	}
	if p.slab.n != 1 || len(p.index.cells) > indexMin || p.mask != 0 {
		t.Fatalf("%d slots, %d cells", p.slab.n, len(p.index.cells))
	}
}
