package producer

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

func growing(segment int) (*memObject, memStore) {
	o := &memObject{version: 5, segment: segment, open: true, attr: Attributes{Growing: true}}
	return o, memStore{"/": {o}}
}

// TestSlowWriter: Interests for content that is still to come wait and are
// answered when it is there, in the order of the segments, with the latest
// token; none gets a Nack before the end is known.
func TestSlowWriter(t *testing.T) {
	o, store := growing(100)
	r, rec := newTest(t, store)
	for _, ask := range []string{"/cdn/v=5/seg=2", "/cdn/v=5/seg=0", "/cdn/v=5/seg=7", "/cdn P"} {
		if err := r.Receive(1, asking(t, ask)); err != nil {
			t.Fatal(err)
		}
	}
	again := asking(t, "/cdn/v=5/seg=0")
	again.PitToken = []byte{9}
	if err := r.Receive(2, again); err != nil {
		t.Fatal(err)
	}
	if n := r.Waiting(); n != 4 || len(rec.sent) != 0 {
		t.Fatalf("%d wait, %d answered", n, len(rec.sent))
	}
	grow := func(size int, end bool) string {
		o.data, o.open = content(1000)[:size], !end
		if err := r.Grown(3); err != nil {
			t.Fatal(err)
		}
		var s bytes.Buffer
		for i, d := range rec.sent {
			fmt.Fprintf(&s, "%s %d %x final=%t;", d.Name, len(d.Content), rec.tok[i], d.FinalBlock != nil)
		}
		rec.take()
		return s.String()
	}
	for _, step := range []struct {
		size int
		end  bool
		want string
	}{
		{50, false, ""},
		{100, false, ""}, // might be the last segment
		{101, false, "/cdn/v=5/seg=0 100 09 final=false;/cdn/v=5/seg=0 100 01020304 final=false;"},
		{300, false, ""},
		{310, true, "/cdn/v=5/seg=2 100 01020304 final=true;/cdn/v=5/seg=7 0 01020304 final=false;"},
	} {
		if got := grow(step.size, step.end); got != step.want {
			t.Errorf("at %d bytes, end %t: %q, want %q", step.size, step.end, got, step.want)
		}
	}
	if r.Waiting() != 0 || r.Deadline() != ndn.Never {
		t.Errorf("%d wait until %d", r.Waiting(), r.Deadline())
	}
	if c := r.Counters(); c.Waited != 5 || c.Nacks != 1 {
		t.Errorf("%+v", c)
	}
}

// TestFarOffInterests: who asks for segments far off, for hours, takes no room
// from who asks for the next ones.
func TestFarOffInterests(t *testing.T) {
	o, store := growing(100)
	rec := &recorder{tb: t}
	r, err := New(Config{Prefix: ndn.MustName("/cdn"), MaxWaiting: 3}, store, rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{"seg=1001 9999s", "seg=1000 9999s", "seg=1002 9999s", "seg=0 4s", "seg=1003 9999s", "seg=1 4s"} {
		if err := r.Receive(1, asking(t, "/cdn/v=5/"+ask)); err != nil {
			t.Fatal(err)
		}
	}
	if c := r.Counters(); r.Waiting() != 3 || c.Refused != 3 {
		t.Errorf("%d wait, %+v", r.Waiting(), c)
	}
	o.data = content(1000)[:300]
	if err := r.Grown(2); err != nil || len(rec.sent) != 2 {
		t.Errorf("%d answered, %v", len(rec.sent), err)
	}
}

// TestWaitingEnds: waiting Interests are bounded in number and in time.
func TestWaitingEnds(t *testing.T) {
	o, store := growing(100)
	rec := &recorder{tb: t}
	r, err := New(Config{Prefix: ndn.MustName("/cdn"), MaxWaiting: 3}, store, rec)
	if err != nil {
		t.Fatal(err)
	}
	now := ndn.Time(time.Hour)
	for i, ask := range []string{"/cdn/v=5/seg=3 3s", "/cdn/v=5/seg=1 1s", "/cdn/v=5/seg=2 2s", "/cdn/v=5/seg=4 2s"} {
		if err := r.Receive(now, asking(t, ask)); err != nil {
			t.Fatal(i, err)
		}
	}
	if c := r.Counters(); c.Waited != 3 || c.Refused != 1 {
		t.Errorf("%+v", c)
	}
	if d := r.Deadline(); d != now.Add(time.Second) {
		t.Errorf("deadline in %v", d.Sub(now))
	}
	r.Tick(now.Add(999 * time.Millisecond))
	r.Tick(now.Add(time.Second))
	if r.Waiting() != 2 || r.Deadline() != now.Add(2*time.Second) {
		t.Errorf("%d wait until %v", r.Waiting(), r.Deadline().Sub(now))
	}
	// A repeated Interest lives longer.
	if err := r.Receive(now.Add(time.Second), asking(t, "/cdn/v=5/seg=2 5s")); err != nil {
		t.Fatal(err)
	}
	r.Tick(now.Add(4 * time.Second))
	o.data = content(1000)
	if err := r.Grown(now.Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := rec.take(); len(got) != 1 || got[0].Name.String() != "/cdn/v=5/seg=2" {
		t.Errorf("answered %v", got)
	}
	if c := r.Counters(); c.Expired != 2 {
		t.Errorf("%+v", c)
	}
}

// TestGrowingMetadata: every stage has a version of its own and can be asked
// for again when the object has gone on.
func TestGrowingMetadata(t *testing.T) {
	o, store := growing(8000)
	r, rec := newTest(t, store)
	ask := func(text string) ndn.Data {
		t.Helper()
		if err := r.Receive(1, asking(t, text)); err != nil {
			t.Fatal(err)
		}
		got := rec.take()
		if len(got) != 1 {
			t.Fatalf("%d answers to %s", len(got), text)
		}
		return got[0]
	}
	var issued []ndn.Data
	for i, size := range []int{100, 10000, 20000} {
		o.data, o.open = content(20000)[:size], i < 2
		if i == 2 {
			o.attr.SHA256 = new([32]byte)
		}
		d := ask("/cdn/32=metadata P F")
		if want := fmt.Sprintf("/cdn/32=metadata/v=%d/seg=0", 5+i); d.Name.String() != want {
			t.Errorf("stage %d is %s, want %s", i, d.Name, want)
		}
		f := metaFields(t, d.Content)
		if n := len(f[TypeContentStart]); n != []int{0, 8000, 8000}[i] {
			t.Errorf("stage %d carries %d bytes", i, n)
		}
		if (f[TypeSize] != nil) != (i == 2) || (f[ndn.TypeFinalBlock] != nil) != (i == 2) || (f[TypeContentHash] != nil) != (i == 2) {
			t.Errorf("stage %d says %v", i, f)
		}
		issued = append(issued, d)
	}
	for _, d := range issued {
		if again := ask(d.Name.String()); !bytes.Equal(again.Wire, d.Wire) {
			t.Errorf("%s is another Data now", d.Name)
		}
	}
	if d := ask("/cdn/32=metadata/v=8/seg=0"); d.ContentType != ndn.ContentNack {
		t.Errorf("got %s", d.Name)
	}
}

// TestWaitListModel compares the list with a plain slice.
func TestWaitListModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			name    string
			segment uint64
			expires ndn.Time
		}
		l := waitList{limit: 5}
		var model []entry
		now := ndn.Time(1)
		first := func() int {
			best := -1
			for i := range model {
				if best < 0 || model[i].segment < model[best].segment {
					best = i
				}
			}
			return best
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				seg := rapid.Uint64Range(0, 7).Draw(t, "segment")
				life := time.Duration(rapid.IntRange(1, 9).Draw(t, "lifetime"))
				a := request{now: now, lifetime: life, name: ndn.MustName(fmt.Sprintf("/%d", seg))}
				ok, instead := l.add(&a, seg, []byte{1})
				for i := range model {
					if model[i].segment == seg {
						model[i].expires = now.Add(life)
						return
					}
				}
				latest := 0
				for i := range model {
					if model[i].segment > model[latest].segment {
						latest = i
					}
				}
				displaces := len(model) == 5 && model[latest].segment > seg
				if want := len(model) < 5 || displaces; ok != want || instead != displaces {
					t.Fatalf("added %t instead of another %t, want %t, %t", ok, instead, want, displaces)
				}
				if displaces {
					model = append(model[:latest], model[latest+1:]...)
				}
				if ok {
					model = append(model, entry{a.name.String(), seg, now.Add(life)})
				}
			},
			"pop": func(t *rapid.T) {
				i := first()
				w := l.min()
				if (w == nil) != (i < 0) {
					t.Fatal("one is empty")
				}
				if w == nil {
					return
				}
				if w.name.String() != model[i].name {
					t.Fatalf("first is %s, want %s", w.name, model[i].name)
				}
				l.pop()
				model = append(model[:i], model[i+1:]...)
			},
			"time": func(t *rapid.T) {
				now += ndn.Time(rapid.IntRange(0, 5).Draw(t, "passed"))
				n := 0
				kept := model[:0]
				for _, e := range model {
					if e.expires <= now {
						n++
					} else {
						kept = append(kept, e)
					}
				}
				model = kept
				if got := l.expire(now); got != n {
					t.Fatalf("%d expired, want %d", got, n)
				}
			},
			"": func(t *rapid.T) {
				if l.len() != len(model) {
					t.Fatalf("%d entries, want %d", l.len(), len(model))
				}
				for _, e := range model {
					if l.deadline() > e.expires {
						t.Fatalf("deadline %d is after %d", l.deadline(), e.expires)
					}
				}
			},
		})
	})
}
