package serve

import (
	"testing"

	"ndnpop/ndn"
)

// collected is a Sender and a Handler that remembers.
type collected struct {
	sent   []string
	tokens []string
	passed int
}

func (c *collected) Send(wire []byte, f *ndn.LpFields) {
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		panic(err)
	}
	c.sent, c.tokens = append(c.sent, d.Name.String()), append(c.tokens, string(f.PitToken))
}
func (c *collected) Receive(ndn.Time, *ndn.Packet) error { c.passed++; return nil }
func (*collected) Deadline() ndn.Time                    { return ndn.Never }
func (*collected) Tick(ndn.Time)                         {}

func TestPackets(t *testing.T) {
	wire, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName("/a/KEY/1/ca/v=2"), ContentType: ndn.ContentKey}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		t.Fatal(err)
	}
	c := &collected{}
	p := NewPackets(c, c)
	p.Add(&d, 3)
	for _, q := range []struct {
		name   string
		prefix bool
		want   bool
	}{
		{"/a/KEY/1/ca/v=2", false, true}, {"/a/KEY/1/ca/v=2", true, true}, {"/a/KEY/1", true, true},
		{"/a/KEY/1", false, false}, {"/a/KEY", true, false}, {"/a/KEY/1/ca/v=3", true, false}, {"/a/KEY/1/ca/v=2/x", true, false},
	} {
		before := *c
		in := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName(q.name), CanBePrefix: q.prefix, Nonce: 1})
		var pkt ndn.Packet
		if err := pkt.Parse(in, &ndn.LpFields{PitToken: []byte("tok")}); err != nil {
			t.Fatal(err)
		}
		if err := p.Receive(1, &pkt); err != nil {
			t.Fatal(err)
		}
		if got := len(c.sent) > len(before.sent); got != q.want || got == (c.passed > before.passed) {
			t.Errorf("%s, prefix %v: answered %v", q.name, q.prefix, got)
		}
	}
	for _, tok := range c.tokens {
		if tok != "tok" {
			t.Errorf("token %q", tok)
		}
	}
}
