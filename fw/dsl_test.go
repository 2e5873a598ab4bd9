package fw

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

const ms = time.Millisecond

// sent is a packet that the shard sent.
type sent struct {
	to   ndn.FaceID
	p    ndn.Packet
	wire []byte
}

// net drives one shard in virtual time and records what it sends. Every
// packet goes through its bytes.
type net struct {
	t      testing.TB
	s      *Shard
	now    ndn.Time
	out    []sent
	reject map[ndn.FaceID]bool
}

const (
	local1  ndn.FaceID = 300
	local2  ndn.FaceID = 301
	remote1 ndn.FaceID = 401
	remote2 ndn.FaceID = 402
	remote3 ndn.FaceID = 403
	multi   ndn.FaceID = 501
	adhoc   ndn.FaceID = 502
)

func newNet(t testing.TB, cfg Config, more ...strategy.Factory) *net {
	t.Helper()
	n := &net{t: t, now: ndn.Time(time.Second), reject: map[ndn.FaceID]bool{}}
	set, err := strategy.NewSet(append(strategies.Builtin(), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	if n.s, err = New(cfg, set, n); err != nil {
		t.Fatal(err)
	}
	for _, f := range []FaceInfo{
		{ID: local1, Local: true}, {ID: local2, Local: true},
		{ID: remote1}, {ID: remote2}, {ID: remote3},
		{ID: multi, MultiAccess: true}, {ID: adhoc, MultiAccess: true, AdHoc: true},
	} {
		if err := n.s.AddFace(n.now, f); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func withCS() Config { return Config{CS: table.CSConfig{Capacity: 4 << 20}} }

// Send implements Sender.
func (n *net) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	if n.reject[to] {
		return false
	}
	h := ndn.LpHeader{LpFields: f}
	link := ndn.AppendLpPacket(nil, &h, wire)
	var lp ndn.LpPacket
	s := sent{to: to, wire: bytes.Clone(wire)}
	if err := lp.Parse(link); err != nil {
		n.t.Fatalf("the shard sent an invalid link packet: %v\n%x", err, link)
	}
	if err := s.p.Parse(lp.Fragment, &lp.LpFields); err != nil {
		n.t.Fatalf("the shard sent an invalid packet: %v\n%x", err, wire)
	}
	n.out = append(n.out, s)
	return true
}

func (n *net) after(d time.Duration) *net {
	end := n.now.Add(d)
	for n.s.Deadline() <= end {
		n.now = max(n.now, n.s.Deadline())
		n.s.Tick(n.now)
	}
	n.now = end
	n.s.Tick(n.now)
	return n
}

// take returns what was sent since the last take.
func (n *net) take() []sent {
	o := n.out
	n.out = nil
	return o
}

func (n *net) route(prefix string, face ndn.FaceID, cost uint64) *net {
	n.t.Helper()
	if err := n.s.SetNextHop(n.now, ndn.MustName(prefix), face, cost); err != nil {
		n.t.Fatal(err)
	}
	return n
}

func (n *net) strategy(prefix, name string) *net {
	n.t.Helper()
	if _, err := n.s.SetStrategy(n.now, ndn.MustName(prefix), ndn.MustName(name)); err != nil {
		n.t.Fatal(err)
	}
	return n
}

// receive parses bytes as a link service does and gives them to the shard.
func (n *net) receive(from ndn.FaceID, wire []byte, f *ndn.LpFields) {
	n.t.Helper()
	var p ndn.Packet
	if f == nil {
		f = &ndn.LpFields{}
	}
	w := bytes.Clone(wire)
	if err := p.Parse(w, f); err != nil {
		n.t.Fatalf("%v: %x", err, wire)
	}
	n.s.Receive(n.now, from, &p)
	for i := range w {
		w[i] = 0xee // whoever kept a view sees it now
	}
}

type intOpt func(*ndn.InterestFields, *ndn.LpFields)

func prefixed(f *ndn.InterestFields, _ *ndn.LpFields) { f.CanBePrefix = true }
func fresh(f *ndn.InterestFields, _ *ndn.LpFields)    { f.MustBeFresh = true }
func noNonce(f *ndn.InterestFields, _ *ndn.LpFields)  { f.OmitNonce = true }
func hop(h uint8) intOpt                              { return func(f *ndn.InterestFields, _ *ndn.LpFields) { f.HopLimit = h } }
func lifetime(d time.Duration) intOpt {
	return func(f *ndn.InterestFields, _ *ndn.LpFields) { f.Lifetime = d }
}
func hint(names ...string) intOpt {
	return func(f *ndn.InterestFields, _ *ndn.LpFields) {
		for _, s := range names {
			f.ForwardingHint = append(f.ForwardingHint, ndn.MustName(s))
		}
	}
}
func token(t ...byte) intOpt { return func(_ *ndn.InterestFields, l *ndn.LpFields) { l.PitToken = t } }
func link(fn func(*ndn.LpFields)) intOpt {
	return func(_ *ndn.InterestFields, l *ndn.LpFields) { fn(l) }
}

func (n *net) interest(from ndn.FaceID, name string, nonce uint32, opts ...intOpt) {
	n.t.Helper()
	f := ndn.InterestFields{Name: ndn.MustName(name), Nonce: nonce}
	var l ndn.LpFields
	for _, o := range opts {
		o(&f, &l)
	}
	n.receive(from, ndn.AppendInterest(nil, &f), &l)
}

func makeData(name string, freshness time.Duration, content string) []byte {
	w, err := ndn.AppendData(nil, &ndn.DataFields{
		Name: ndn.MustName(name), Freshness: freshness, Content: []byte(content),
	}, ndn.DigestSigner{})
	if err != nil {
		panic(err)
	}
	return w
}

func (n *net) data(from ndn.FaceID, name string, opts ...func(*ndn.LpFields)) {
	n.t.Helper()
	var l ndn.LpFields
	for _, o := range opts {
		o(&l)
	}
	n.receive(from, makeData(name, time.Second, "content"), &l)
}

// nackFor answers an Interest that the shard sent.
func (n *net) nackFor(s sent, reason ndn.NackReason) {
	n.t.Helper()
	n.receive(s.to, s.wire, &ndn.LpFields{IsNack: true, NackReason: reason, PitToken: s.p.PitToken})
}

// want checks what was sent since the last check, in short form: "I401 /a" is
// an Interest to face 401, "D" a Data, "N" a Nack with its reason.
func (n *net) want(lines ...string) []sent {
	n.t.Helper()
	got := n.take()
	var have []string
	for _, s := range got {
		switch s.p.Kind {
		case ndn.KindInterest:
			have = append(have, fmt.Sprintf("I%d %s", s.to, s.p.Interest.Name))
		case ndn.KindData:
			have = append(have, fmt.Sprintf("D%d %s", s.to, s.p.Data.Name))
		case ndn.KindNack:
			have = append(have, fmt.Sprintf("N%d %s %s", s.to, s.p.Interest.Name, s.p.NackReason))
		}
	}
	if fmt.Sprint(have) != fmt.Sprint(lines) {
		n.t.Fatalf("sent\n%q\nwant\n%q", have, lines)
	}
	return got
}

// idle checks that nothing is left behind once everything has expired.
func (n *net) idle() {
	n.t.Helper()
	n.after(time.Hour)
	c := n.s.Counters()
	if c.PitEntries != 0 || c.Timers != 0 {
		n.t.Fatalf("left behind: %d PIT entries, %d timers", c.PitEntries, c.Timers)
	}
	checkWaits(n.t, n.s)
	if n.s.waiting != 0 {
		n.t.Fatalf("%d in-records left", n.s.waiting)
	}
	check := func(f *face) {
		if f != nil && f.asked != 0 {
			n.t.Fatalf("face %d has %d out-records left", f.ID, f.asked)
		}
	}
	for _, f := range n.s.faces.small {
		check(f)
	}
}
