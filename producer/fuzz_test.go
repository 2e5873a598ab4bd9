package producer

import (
	"testing"

	"ndnpop/ndn"
)

// discard counts answers.
type discard struct{ n int }

func (d *discard) Send([]byte, *ndn.LpFields) { d.n++ }

// FuzzReceive sends anything that parses as an Interest.
func FuzzReceive(f *testing.F) {
	for _, ask := range []string{
		"/cdn/a/v=1/seg=0", "/cdn/a/32=metadata P F", "/cdn/a P", "/cdn/32=ls/v=1/seg=0", "/cdn/a/v=1 P",
		"/cdn/g/v=1/seg=18446744073709551615", "/cdn/g/32=metadata/v=1/seg=0", "/cdn/g/32=metadata/v=0/seg=0",
		"/cdn/a/v=1/32=manifest/seg=0", "/cdn/a/v=1/32=digests/seg=0", "/cdn/32=ls/v=1/32=digests/seg=9", "/cdn/g/v=1/32=manifest/seg=0",
	} {
		f.Add(asking(f, ask).Wire())
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		var p ndn.Packet
		if p.Parse(wire, &ndn.LpFields{}) != nil || p.Kind != ndn.KindInterest {
			return
		}
		store := memStore{
			"/a":   {{version: 1, segment: 10, data: make([]byte, 25)}},
			"/g":   {{version: 1, segment: 10, data: make([]byte, 25), open: true, attr: Attributes{Growing: true}}},
			"ls /": {{version: 1, segment: 10, data: make([]byte, 5), attr: Attributes{Listing: true}}},
		}
		r, rec := newSigned(t, store)
		if err := r.Receive(1, &p); err != nil {
			t.Skip() // names too long for a packet
		}
		settle(t, r)
		for _, d := range rec.take() {
			if !d.Name.HasPrefix(p.Interest.Name) {
				if _, n, ok := p.Interest.ImplicitDigest(); !ok || !n.Equal(d.Name) {
					t.Errorf("%s answers %s", d.Name, p.Interest.Name)
				}
			}
			if !p.Interest.CanBePrefix && len(d.Name) > len(p.Interest.Name) {
				t.Errorf("%s answers %s, which is no prefix", d.Name, p.Interest.Name)
			}
		}
		store["/g"][0].open = false
		if err := r.Grown(2); err != nil {
			t.Error(err)
		}
		if r.Waiting() != 0 {
			t.Error("something waits after the end")
		}
	})
}
