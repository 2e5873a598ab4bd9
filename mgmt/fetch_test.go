package mgmt

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/ndn"
)

// publisher answers Interests for one dataset.
type publisher struct {
	prefix    ndn.Name
	version   uint64
	content   []byte
	segment   int
	finalOnly bool // FinalBlockId in the last segment only
}

func (p *publisher) answer(t testing.TB, wire []byte) *ndn.Data {
	t.Helper()
	var i ndn.Interest
	if err := i.Parse(wire); err != nil {
		t.Fatal(err)
	}
	last := uint64(max(len(p.content)-1, 0) / p.segment)
	seg := uint64(0)
	if len(i.Name) > len(p.prefix) {
		c, _ := i.Name.At(-1)
		seg, _ = c.NumberAs(ndn.TypeSegment)
		if i.CanBePrefix || i.MustBeFresh {
			t.Error("a segment was asked for as a prefix, or fresh")
		}
		if seg > last {
			t.Errorf("asked for segment %d of %d", seg, last)
			return nil
		}
	} else if !i.CanBePrefix || !i.MustBeFresh {
		t.Error("discovery without CanBePrefix and MustBeFresh")
	}
	lo := min(int(seg)*p.segment, len(p.content))
	hi := min(lo+p.segment, len(p.content))
	f := ndn.DataFields{
		Name:    p.prefix.Clone().AppendNumber(ndn.TypeVersion, p.version).AppendNumber(ndn.TypeSegment, seg),
		Content: p.content[lo:hi],
	}
	if !p.finalOnly || seg == last {
		f.FinalBlock = ndn.Name(nil).AppendNumber(ndn.TypeSegment, last)
	}
	w, err := ndn.AppendData(nil, &f, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	d := new(ndn.Data)
	if err := d.Parse(w); err != nil {
		t.Fatal(err)
	}
	return d
}

// Whatever is lost, repeated or late, the fetch yields the content.
func TestFetchCompletes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content := make([]byte, rapid.IntRange(0, 3000).Draw(rt, "size"))
		for i := range content {
			content[i] = byte(i * 7)
		}
		p := &publisher{
			prefix: ndn.MustName("/localhost/nfd/rib/list"), version: 17, content: content,
			segment: rapid.IntRange(1, 400).Draw(rt, "segment"), finalOnly: rapid.Bool().Draw(rt, "final only"),
		}
		loss := rapid.IntRange(0, 3).Draw(rt, "loss")
		f := NewFetch(p.prefix, 1<<20)
		now := ndn.Time(1)
		var waiting []*ndn.Data
		lost := map[uint64]int{}
		for n := uint32(1); !f.Done(); n++ {
			if n > 1_000_000 {
				rt.Fatal("no end")
			}
			if wire := f.Next(now, n); wire != nil {
				d := p.answer(t, wire)
				c, _ := d.Name.At(-1)
				seg, _ := c.Number()
				if lost[seg] < loss && rapid.IntRange(0, 2).Draw(rt, "lose") == 0 {
					lost[seg]++
					continue
				}
				waiting = append(waiting, d)
				continue
			}
			if len(waiting) > 0 {
				k := rapid.IntRange(0, len(waiting)-1).Draw(rt, "which")
				f.Receive(waiting[k])
				if rapid.Bool().Draw(rt, "once") {
					waiting = append(waiting[:k], waiting[k+1:]...)
				}
				continue
			}
			at := f.Deadline()
			if at == ndn.Never {
				rt.Fatal("nothing to do and not done")
			}
			now = max(now, at)
			f.Tick(now)
		}
		got, err := f.Content()
		if err != nil || !bytes.Equal(got, content) {
			rt.Fatalf("%v, %d bytes of %d", err, len(got), len(content))
		}
	})
}

func TestFetchFailures(t *testing.T) {
	name := ndn.MustName("/localhost/nfd/rib/list")
	t.Run("silence", func(t *testing.T) {
		f := NewFetch(name, 100)
		now := ndn.Time(1)
		sent := 0
		for !f.Done() {
			for f.Next(now, 1) != nil {
				sent++
			}
			now = f.Deadline()
			f.Tick(now)
		}
		if _, err := f.Content(); !errors.Is(err, ErrTimeout) || sent != fetchTries {
			t.Errorf("%v after %d Interests", err, sent)
		}
		if d := now.Sub(1); d != 10*time.Second {
			t.Errorf("gave up after %v", d)
		}
	})
	t.Run("nack", func(t *testing.T) {
		f := NewFetch(name, 100)
		f.Next(1, 1)
		if f.Nack(ndn.MustName("/other"), ndn.NackNoRoute) || !f.Nack(name, ndn.NackNoRoute) || !f.Done() {
			t.Error("nack")
		}
		if _, err := f.Content(); !errors.Is(err, ErrNack) {
			t.Error(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		// NFD says so with an application Nack, ndnd with plain content.
		for _, typ := range []uint64{ndn.ContentNack, 0} {
			f := NewFetch(name, 100)
			f.Next(1, 1)
			r := ControlResponse{Code: 403, Text: "no"}
			f.Receive(data(t, ndn.DataFields{Name: name, ContentType: typ, Content: r.AppendTo(nil)}))
			var st *StatusError
			if _, err := f.Content(); !errors.As(err, &st) || st.Code != 403 {
				t.Error(err)
			}
		}
	})
	t.Run("too large", func(t *testing.T) {
		p := &publisher{prefix: name, content: make([]byte, 300), segment: 60}
		f := NewFetch(name, 100)
		for !f.Done() {
			f.Receive(p.answer(t, f.Next(1, 1)))
		}
		if _, err := f.Content(); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
	t.Run("a final block of 2^62", func(t *testing.T) {
		f := NewFetch(name, 100)
		f.Next(1, 1)
		f.Receive(data(t, ndn.DataFields{
			Name:       name.Clone().AppendNumber(ndn.TypeVersion, 1).AppendNumber(ndn.TypeSegment, 0),
			FinalBlock: ndn.Name(nil).AppendNumber(ndn.TypeSegment, 1<<62),
		}))
		if _, err := f.Content(); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
	t.Run("unsegmented", func(t *testing.T) {
		f := NewFetch(name, 100)
		f.Next(1, 1)
		f.Receive(data(t, ndn.DataFields{Name: name.Clone().AppendNumber(ndn.TypeVersion, 1), Content: []byte("all")}))
		if c, err := f.Content(); !f.Done() || err != nil || string(c) != "all" {
			t.Errorf("%q, %v", c, err)
		}
	})
	t.Run("another version", func(t *testing.T) {
		p := &publisher{prefix: name, version: 1, content: make([]byte, 30), segment: 10}
		f := NewFetch(name, 100)
		f.Receive(p.answer(t, f.Next(1, 1)))
		other := data(t, ndn.DataFields{Name: name.Clone().AppendNumber(ndn.TypeVersion, 2).AppendNumber(ndn.TypeSegment, 1)})
		if f.Receive(other) {
			t.Error("took a segment of another version")
		}
	})
}

func data(t *testing.T, f ndn.DataFields) *ndn.Data {
	t.Helper()
	w, err := ndn.AppendData(nil, &f, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	d := new(ndn.Data)
	if err := d.Parse(w); err != nil {
		t.Fatal(err)
	}
	return d
}

func ExampleFetch() {
	p := &publisher{prefix: ndn.MustName("/localhost/nfd/fib/list"), content: []byte("many bytes"), segment: 4}
	var t testing.T
	f := NewFetch(p.prefix, 1<<20)
	for !f.Done() {
		f.Receive(p.answer(&t, f.Next(1, 1)))
	}
	content, err := f.Content()
	fmt.Printf("%s %v\n", content, err)
	// Output: many bytes <nil>
}
