package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndnpop/consumer/output"
	"ndnpop/ndn"
)

// poison makes wrong packets of right ones, as somebody does who answers faster
// than the producer.
var poison = map[string]func(*ndn.DataFields){
	"content":      func(f *ndn.DataFields) { f.Content = append([]byte{f.Content[0] ^ 1}, f.Content[1:]...) },
	"shorter":      func(f *ndn.DataFields) { f.Content = f.Content[:10] },
	"an early end": func(f *ndn.DataFields) { f.FinalBlock = ndn.Name(nil).AppendNumber(ndn.TypeSegment, 250) },
	"no content":   func(f *ndn.DataFields) { f.Content, f.ContentType = nil, ndn.ContentNack },
}

// badDigest is a digest that fits no packet.
type badDigest struct{ ndn.DigestSigner }

func (badDigest) AppendSignature(b, _ []byte) ([]byte, error) {
	return append(b, make([]byte, 32)...), nil
}

func remade(wire []byte, change func(*ndn.DataFields)) []byte {
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		panic(err)
	}
	f := &ndn.DataFields{Name: d.Name, Content: d.Content, FinalBlock: d.FinalBlock}
	change(f)
	w, err := ndn.AppendData(nil, f, badDigest{})
	if err != nil {
		panic(err)
	}
	return w
}

// cache answers with the wrong packet that it got for as long as nobody tells
// it to forget that.
type cache struct {
	change func(*ndn.DataFields)
	wrong  map[string]bool
	forgot int
}

func (c *cache) use(s *server) {
	c.wrong = map[string]bool{}
	s.told = func(n ndn.Name) {
		for w := range c.wrong {
			// The name is in the parameters of the command.
			if c.wrong[w] && bytes.Contains(n, []byte(w)) {
				c.wrong[w] = false
				c.forgot++
			}
		}
	}
	s.mangle = func(seg uint64, w []byte) []byte {
		var d ndn.Data
		if err := d.Parse(w); err != nil {
			panic(err)
		}
		wrong, seen := c.wrong[string(d.Name)]
		if !seen {
			wrong = seg%3 == 0 && len(c.wrong) < 60 || seg >= 370
			c.wrong[string(d.Name)] = wrong
		}
		if wrong {
			return remade(w, c.change)
		}
		return w
	}
}

// TestPoisonIsSurvived: a packet that is wrong once does not end the fetch, and
// the own forwarder's store does not keep it wrong.
func TestPoisonIsSurvived(t *testing.T) {
	for name, change := range poison {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			c := &cache{change: change}
			r, err := Run(t.Context(), options(t, serve(t, 1, c.use), output.NewStream(&buf, "buffer")))
			if err != nil || !bytes.Equal(buf.Bytes(), object) || !r.Output.Verified {
				t.Fatalf("%v, %d bytes", err, buf.Len())
			}
			if n := r.Stats.Rejected; n < 20 || c.forgot < 20 {
				t.Errorf("%d packets were asked for again, %d were forgotten", n, c.forgot)
			}
		})
	}
}

// TestPoisonWithKeys: the same for signatures and for manifests with their parts.
func TestPoisonWithKeys(t *testing.T) {
	once := func(n ndn.Name, seen map[string]bool, w []byte) []byte {
		if w == nil || seen[string(n)] {
			return w
		}
		seen[string(n)] = true
		return remade(w, poison["content"])
	}
	for _, with := range []string{"shared key", "manifest"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			var buf bytes.Buffer
			c := &cache{change: poison["content"]}
			p := newPublisher()
			v := p.verifier(t)
			if with == "shared key" {
				v = trustKey(t)
			}
			tr := serve(t, 1, func(s *server) {
				if with == "shared key" {
					s.signer = shared{[]byte("key")}
				} else {
					p.serve(s, true)
					seen := map[string]bool{}
					s.part = func(n ndn.Name) []byte { return once(n, seen, p.part(n)) }
				}
				c.use(s)
			})
			r, err := Run(t.Context(), trusting(t, tr, output.NewStream(&buf, "buffer"), v))
			if err != nil || !bytes.Equal(buf.Bytes(), object) || !r.Output.Verified {
				t.Fatalf("%v, %d bytes", err, buf.Len())
			}
			if r.Output.Repaired < 20 || c.forgot < 20 {
				t.Errorf("%d packets were asked for again, %d were forgotten", r.Output.Repaired, c.forgot)
			}
		})
	}
}

// TestPoisonedMetadata is asked for again as well.
func TestPoisonedMetadata(t *testing.T) {
	for _, kind := range []string{"content", "shorter"} {
		var buf bytes.Buffer
		wrong := 0
		tr := serve(t, 1, func(s *server) {
			s.meta = func(w []byte) []byte {
				if wrong++; wrong <= 2 {
					return remade(w, poison[kind])
				}
				return w
			}
		})
		r, err := Run(t.Context(), options(t, tr, output.NewStream(&buf, "buffer")))
		if err != nil || !bytes.Equal(buf.Bytes(), object) || r.Stats.Rejected != 2 {
			t.Errorf("%s: %v, %d bytes, %d rejected", kind, err, buf.Len(), r.Stats.Rejected)
		}
	}
}

// TestPoisonThatStays ends the fetch soon, with the name of the packet, and
// leaves nothing under the final name.
func TestPoisonThatStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := output.CreateFile(path, "all")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	tr := serve(t, 1, func(s *server) {
		s.mangle = func(seg uint64, w []byte) []byte {
			if seg != 300 {
				return w
			}
			asked++
			return remade(w, poison["content"])
		}
	})
	start := time.Now()
	_, err = Run(t.Context(), options(t, tr, f))
	var p *output.PacketError
	if !errors.Is(err, output.ErrVerify) || !errors.As(err, &p) || !strings.HasSuffix(p.Name.String(), "seg=300") ||
		!strings.Contains(err.Error(), "every copy") {
		t.Errorf("error %v", err)
	}
	if asked != 1+againCopies {
		t.Errorf("asked for %d times in %v", asked, time.Since(start))
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is something under the final name")
	}
}
