package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/ndn"
	"ndnpop/producer"
)

// collector keeps the last answer.
type collector struct {
	data ndn.Data
	n    int
}

func (c *collector) Send(wire []byte, _ *ndn.LpFields) {
	if err := c.data.Parse(bytes.Clone(wire)); err != nil {
		panic(err)
	}
	c.n++
}

// TestNeverMixed changes a file in every way, at random moments between the
// segments, and checks that all segments of one version come from one state
// of the file, that the newest version is the file as it is, and that new
// versions have higher numbers.
func TestNeverMixed(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		path := filepath.Join(dir, fmt.Sprint("f", n))
		write := func(to string, b []byte) {
			if err := os.WriteFile(to, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		draw := func() []byte {
			b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "fill")}, rapid.IntRange(0, 35).Draw(t, "size"))
			for i := range b {
				b[i] += byte(i)
			}
			return b
		}
		now := draw()
		write(path, now)
		o := Options{SegmentSize: 10, Room: 8000}
		if rapid.Bool().Draw(t, "chosen version") {
			o.Version = 1
		}
		s, err := NewFile(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		out := &collector{}
		r, err := producer.New(producer.Config{Prefix: ndn.MustName("/f")}, s, out)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(name ndn.Name, prefix bool) *ndn.Data {
			var p ndn.Packet
			w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, CanBePrefix: prefix})
			if err := p.Parse(w, &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			before := out.n
			if err := r.Receive(1, &p); err != nil {
				t.Fatal(err)
			}
			if out.n != before+1 {
				t.Fatalf("%d answers to %s", out.n-before, name)
			}
			return &out.data
		}
		states := make(map[uint64][]byte) // by version, as discovered
		last := uint64(0)
		clock := time.Now()
		t.Repeat(map[string]func(*rapid.T){
			"replace": func(*rapid.T) {
				now = draw()
				write(path+".new", now)
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			},
			"overwrite": func(*rapid.T) {
				now = draw()
				write(path, now)
				// The clock of a file system may stand still between two writes, and
				// no one could tell them apart then.
				clock = clock.Add(time.Millisecond)
				if err := os.Chtimes(path, clock, clock); err != nil {
					t.Fatal(err)
				}
			},
			"overwrite and set the time back": func(*rapid.T) {
				fi, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				now = append(now[:len(now):len(now)], 'x') // another size
				write(path, now)
				if err := os.Chtimes(path, time.Time{}, fi.ModTime()); err != nil {
					t.Fatal(err)
				}
			},
			"discover": func(*rapid.T) {
				d := ask(ndn.MustName("/f/32=metadata"), true)
				c, _ := d.Name.At(-2)
				v, _ := c.Number()
				if old, ok := states[v]; ok && !bytes.Equal(old, now) {
					t.Fatalf("version %d was %q and is %q", v, old, now)
				}
				if v < last {
					t.Fatalf("version %d after %d", v, last)
				}
				last, states[v] = v, now
				start, want := []byte{}, now
				for b := d.Content; len(b) > 0; {
					e, rest, err := ndn.NextElement(b)
					if err != nil {
						t.Fatal(err)
					}
					if e.Type == producer.TypeContentStart {
						start = e.Value
					}
					b = rest
				}
				if !bytes.Equal(start, want) {
					t.Fatalf("the metadata begins with %q, the file is %q", start, want)
				}
			},
			"fetch": func(*rapid.T) {
				if last == 0 {
					return
				}
				v := last
				if rapid.Bool().Draw(t, "an older version") {
					v = rapid.Uint64Range(last-1, last).Draw(t, "version")
				}
				seg := rapid.IntRange(0, 4).Draw(t, "segment")
				d := ask(ndn.MustName("/f").AppendNumber(ndn.TypeVersion, v).AppendNumber(ndn.TypeSegment, uint64(seg)), false)
				if d.ContentType == ndn.ContentNack {
					if state := states[v]; v == last && bytes.Equal(state, now) && seg*10 < len(state) {
						// Only a file that was written again may have lost this version.
						if o, err := s.Latest(producer.Path{}); err == nil && o.Version() == v {
							t.Fatalf("no segment %d of version %d", seg, v)
						}
					}
					return
				}
				state, ok := states[v]
				if !ok {
					return // nobody discovered it; it is some state of the file
				}
				want := state[min(10*seg, len(state)):min(10*seg+10, len(state))]
				if !bytes.Equal(d.Content, want) {
					t.Fatalf("segment %d of version %d is %q, want %q", seg, v, d.Content, want)
				}
			},
		})
	})
}

// TestHugeFile: 100 GB are served at once, from both ends.
func TestHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 100e9
	if err := f.Truncate(size); err != nil {
		t.Skip(err)
	}
	if _, err := f.WriteAt([]byte("the end"), size-7); err != nil {
		t.Fatal(err)
	}
	f.Close()
	o := opts
	o.Version = 1
	s, err := NewFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := &collector{}
	r, err := producer.New(producer.Config{Prefix: ndn.MustName("/f")}, s, out)
	if err != nil {
		t.Fatal(err)
	}
	const last = size/8000 - 1
	for _, seg := range []uint64{0, last, last + 1} {
		var p ndn.Packet
		n := ndn.MustName("/f/v=1").AppendNumber(ndn.TypeSegment, seg)
		if err := p.Parse(ndn.AppendInterest(nil, &ndn.InterestFields{Name: n}), &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Receive(1, &p); err != nil {
			t.Fatal(err)
		}
		switch {
		case seg > last:
			if out.data.ContentType != ndn.ContentNack {
				t.Error("there is something beyond the end")
			}
		case seg == last && !bytes.HasSuffix(out.data.Content, []byte("the end")):
			t.Error("the last segment is wrong")
		}
		if n, ok := out.data.FinalBlockNumber(ndn.TypeSegment); seg <= last && (!ok || n != last) {
			t.Errorf("FinalBlockId %d", n)
		}
	}
}
