package ping

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"

	"ndnpop/ndn"
)

// wire is a path with a delay in virtual time.
type wire struct {
	sent []ndn.Packet
}

func (w *wire) Send(b []byte, f *ndn.LpFields) {
	var p ndn.Packet
	if f == nil {
		f = &ndn.LpFields{}
	}
	g := *f
	g.PitToken = bytes.Clone(g.PitToken)
	if err := p.Parse(bytes.Clone(b), &g); err != nil {
		panic(err)
	}
	w.sent = append(w.sent, p)
}

func (w *wire) take() []ndn.Packet {
	s := w.sent
	w.sent = nil
	return s
}

const ms = ndn.Time(time.Millisecond)

// TestClientMeetsServer runs five pings in virtual time: two answered, one
// lost, one met by a network Nack, one by an application Nack.
func TestClientMeetsServer(t *testing.T) {
	up, down := &wire{}, &wire{}
	var results []string
	c := NewClient(Options{
		Prefix: ndn.MustName("/cdn"), Count: 5, Interval: 100 * time.Millisecond, Timeout: 250 * time.Millisecond, Start: 7,
	}, up, func(r Result) {
		results = append(results, fmt.Sprintf("%d %d %v %v", r.Number, r.Outcome, r.RTT, r.Reason))
	})
	s, err := NewServer(ServerOptions{Prefix: ndn.MustName("/cdn"), Freshness: time.Second, Size: 3}, down, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(1000 * ms)
	for i := range 5 {
		now := ndn.Time(1000+100*i) * ms
		c.Tick(now)
		p := up.take()
		if len(p) != 1 {
			t.Fatalf("%d Interests at once", len(p))
		}
		if want := fmt.Sprintf("/cdn/ping/%d", 7+i); p[0].Interest.Name.String() != want || !p[0].Interest.MustBeFresh {
			t.Errorf("asked for %s, want %s", p[0].Interest.Name, want)
		}
		p[0].PitToken = []byte{byte(i)}
		later := now + ndn.Time(10*(i+1))*ms
		switch i {
		case 0, 1:
			if err := s.Receive(now, &p[0]); err != nil {
				t.Fatal(err)
			}
			d := down.take()[0]
			if string(d.Data.Content) != "aaa" || !d.Data.VerifyDigest() || d.Data.Freshness != time.Second || d.PitToken[0] != byte(i) {
				t.Errorf("answer %+v", d)
			}
			_ = c.Receive(later, &d)
			_ = c.Receive(later, &d) // twice
		case 3:
			n := p[0]
			n.Kind, n.NackReason = ndn.KindNack, ndn.NackNoRoute
			_ = c.Receive(later, &n)
		case 4:
			w, _ := ndn.AppendData(nil, &ndn.DataFields{Name: p[0].Interest.Name, ContentType: ndn.ContentNack}, ndn.DigestSigner{})
			var d ndn.Packet
			if err := d.Parse(w, &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			_ = c.Receive(later, &d)
		}
	}
	if d := c.Deadline(); c.Done() || d != 1450*ms {
		t.Errorf("done %t, deadline %d", c.Done(), d)
	}
	c.Tick(1450 * ms)
	if d := c.Deadline(); !c.Done() || d != ndn.Never {
		t.Errorf("done %t, deadline %d", c.Done(), d)
	}
	want := "[7 1 10ms None 8 1 20ms None 10 2 40ms NoRoute 11 3 50ms None 9 4 0s None]"
	if got := fmt.Sprint(results); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	st := c.Statistics()
	if st.Sent != 5 || st.Answered != 2 || st.Nacked != 2 || st.TimedOut != 1 || st.Lost() != 20 || st.NackedPercent() != 40 ||
		st.Min != 10*time.Millisecond || st.Avg != 15*time.Millisecond || st.Max != 20*time.Millisecond || st.Mdev != 5*time.Millisecond {
		t.Errorf("%+v", st)
	}
}

// TestStop forgets what is on its way.
func TestStop(t *testing.T) {
	c := NewClient(Options{Prefix: ndn.MustName("/a"), Interval: time.Second, Timeout: time.Second, Identifier: "id"}, &wire{}, nil)
	c.Begin(1)
	if n := c.pending[0].name.String(); n != "/a/ping/id/0" {
		t.Errorf("asked for %s", n)
	}
	c.Stop()
	if s := c.Statistics(); s != (Statistics{}) || c.Deadline() != ndn.Never {
		t.Errorf("%+v", s)
	}
}

// TestServerAnswersAll: the numbers of ndnping and of ndnd, and digests; not
// other names, and not beyond the limit.
func TestServerAnswersAll(t *testing.T) {
	out := &wire{}
	s, err := NewServer(ServerOptions{Prefix: ndn.MustName("/cdn"), Limit: 4}, out, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _ := enc.NameFromStr("/cdn/ping")
	digest := ndn.AppendTLV(ndn.MustName("/cdn/ping/3"), ndn.TypeImplicitDigest, make([]byte, 32))
	for i, c := range []struct {
		name ndn.Name
		want string
	}{
		{ndn.MustName("/cdn/ping/7710416948585214728"), "/cdn/ping/7710416948585214728"},
		{ndn.FromNdnd(base.Append(enc.NewSequenceNumComponent(1 << 40))), "/cdn/ping/seq=1099511627776"},
		{ndn.MustName("/cdn/pong/1"), ""},
		{ndn.MustName("/cdn"), ""},
		{digest, "/cdn/ping/3"},
		{ndn.MustName("/cdn/ping/id/1"), "/cdn/ping/id/1"},
		{ndn.MustName("/cdn/ping/2"), ""},
	} {
		var p ndn.Packet
		if err := p.Parse(ndn.AppendInterest(nil, &ndn.InterestFields{Name: c.name}), &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Receive(1, &p); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range out.take() {
			got += d.Data.Name.String()
		}
		if got != c.want {
			t.Errorf("%d: %s is answered by %q, want %q", i, c.name, got, c.want)
		}
	}
	if !s.Done() || s.Answered() != 4 {
		t.Errorf("%d answered", s.Answered())
	}
	if _, err := NewServer(ServerOptions{Prefix: ndn.MustName("/cdn"), Size: 9000}, out, nil); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
}
