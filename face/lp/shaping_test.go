package lp

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

// TestFairRates: what both ends may ask for fits into both directions and
// leaves nothing of at least one of them, whatever the sizes and rates.
func TestFairRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c1, c2 := rapid.Float64Range(1e5, 1e9).Draw(t, "c1"), rapid.Float64Range(1e5, 1e9).Draw(t, "c2")
		r1, r2 := rapid.Float64Range(0.2, 200).Draw(t, "r1"), rapid.Float64Range(0.2, 200).Draw(t, "r2")
		s, e := fairRates(c1, c2, r1, r2)
		to, from := (s+r2*e)/c1, (e+r1*s)/c2
		if s <= 0 || e <= 0 || to > 1.0001 || from > 1.0001 || max(to, from) < 0.9999 {
			t.Fatalf("%g and %g use %g and %g of the link", s, e, to, from)
		}
	})
	// Equal ends get the same: Data and Interests share the link as their
	// sizes are.
	if s, e := fairRates(10e6, 10e6, 24, 24); math.Abs(s-10e6/25) > 1 || math.Abs(e-s) > 1 {
		t.Errorf("%g and %g", s, e)
	}
}

func shaping(queue int) *Link {
	return New(Config{Shaping: Shaping{Out: 1e6, In: 1e6, Queue: queue}})
}

// learn lets the shaper see n Data of a kilobyte that come at a time.
func learn(t *testing.T, l *Link, now ndn.Time, n int) {
	t.Helper()
	d := data(t, 1, 1000)
	var p ndn.Packet
	for range n {
		if ok, err := l.Receive(now, d, &p); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

// TestShapedRate: without Interests from the other end as many leave as bring
// Data for the whole link, less the headroom, in order and with their fields.
func TestShapedRate(t *testing.T) {
	l := shaping(1000)
	out := new(face.Frames)
	at := ndn.Time(time.Second)
	send(t, l, at, interest(0), nil)
	learn(t, l, at, 20)
	send(t, l, at, interest(0), nil) // from here on the rate is known
	for i := range 250 {
		if err := l.Send(at, interest(byte(i)), &ndn.LpFields{PitToken: []byte{byte(i)}}, out); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	for {
		for i := range out.Len() {
			var p ndn.LpPacket
			if err := p.Parse(out.Frame(i)); err != nil {
				t.Fatal(err)
			}
			if p.PitToken[0] != byte(sent) || !bytes.Equal(p.Fragment, interest(byte(sent))) {
				t.Fatalf("number %d: %+v", sent, p)
			}
			sent++
		}
		out.Reset()
		now := l.Deadline()
		if now >= at.Add(time.Second) {
			break
		}
		l.Tick(now, out)
	}
	// 1 Mbit/s of Data of 1000 bytes.
	if want := 125 * shapeHeadroom; math.Abs(float64(sent)-want) > 5 {
		t.Errorf("%d Interests in a second, want %g", sent, want)
	}
	if c := l.Counters(); c.OutShaped < 200 || c.OutPackets != uint64(sent)+2 {
		t.Errorf("%+v", c)
	}
}

func TestShaperRefusesWhatDoesNotFit(t *testing.T) {
	l := shaping(3)
	at := ndn.Time(time.Second)
	out := new(face.Frames)
	send(t, l, at, interest(0), nil)
	learn(t, l, at, 3)
	var err error
	for range 10 {
		if err = l.Send(at, interest(1), nil, out); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrShaped) || l.Counters().OutShapeFull != 1 || l.Counters().OutShaped != 3 {
		t.Errorf("%v %+v", err, l.Counters())
	}
	// Data and Nacks pass.
	send(t, l, at, data(t, 1, 500), nil)
	send(t, l, at, interest(9), &ndn.LpFields{IsNack: true})
}

// TestShaperGivesWay: Interests from the other end that want their half leave
// us ours.
func TestShaperGivesWay(t *testing.T) {
	l := shaping(10)
	at := ndn.Time(time.Second)
	send(t, l, at, interest(0), nil)
	learn(t, l, at, 20)
	alone := l.shp.rate(at)
	var p ndn.Packet
	for i := range 2000 {
		at = at.Add(time.Millisecond)
		if _, err := l.Receive(at, interest(byte(i)), &p); err != nil {
			t.Fatal(err)
		}
		send(t, l, at, data(t, 1, 1000), nil)
	}
	s, _ := fairRates(1e6, 1e6, float64(l.shp.inData/l.shp.outInterest), float64(l.shp.outData/l.shp.inInterest))
	if r := l.shp.rate(at); math.Abs(r-shapeHeadroom*s) > 1 || r > 0.99*alone {
		t.Errorf("rate %g, fair %g, alone %g", r, s, alone)
	}
}

func TestShaperDoesNotAllocate(t *testing.T) {
	l := shaping(50)
	wire, d := interest(1), data(t, 1, 1000)
	f := &ndn.LpFields{PitToken: []byte{1, 2, 3, 4}}
	var p ndn.Packet
	out := new(face.Frames)
	now := ndn.Time(time.Second)
	run := func() {
		now = now.Add(8 * time.Millisecond)
		for range 2 { // half of them is too many
			if err := l.Send(now, wire, f, out); err != nil && !errors.Is(err, ErrShaped) {
				t.Fatal(err)
			}
		}
		if _, err := l.Receive(now, d, &p); err != nil {
			t.Fatal(err)
		}
		l.Tick(now, out)
		out.Reset()
	}
	for range 1000 {
		run()
	}
	if n := testing.AllocsPerRun(1000, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestShaperBetween: what the other end leaves of its share is ours by the
// square.
func TestShaperBetween(t *testing.T) {
	s := newShaper(Shaping{Out: 10e6, In: 10e6})
	s.outInterest, s.inInterest, s.outData, s.inData = 50, 50, 1000, 1000
	most, least := 10e6/20, 10e6/21.0
	expected := 0.98 * 10e6 / 21
	s.windowEnds = ndn.Time(time.Hour)
	for share, want := range map[float64]float64{0: most, 0.5: least + (most-least)/4, 0.9: least + (most-least)/100, 1: least} {
		s.observed = share * expected
		if got := s.rate(1); math.Abs(got-0.98*want) > 1 {
			t.Errorf("with %g of its share: %.0f, want %.0f", share, got, 0.98*want)
		}
	}
}

// TestShaperBesideReliability: an Interest that waits for the window of the
// reliability feature has used its turn all the same.
func TestShaperBesideReliability(t *testing.T) {
	l := New(Config{
		Shaping:     Shaping{Out: 1e6, In: 1e6, Queue: 100},
		Reliability: Reliability{On: true, Window: 1, Queue: 20},
	})
	at := ndn.Time(time.Second)
	send(t, l, at, interest(0), nil) // fills the window
	learn(t, l, at, 20)
	out := new(face.Frames)
	for i := range 50 {
		if err := l.Send(at, interest(byte(i)), nil, out); err != nil {
			t.Fatalf("number %d: %v", i, err)
		}
	}
	// Two of 8 ms each have their turn in 10 ms, beside what may be late.
	l.Tick(at.Add(10*time.Millisecond), out)
	if l.rel.queued > 4 || l.Counters().OutShapeLost > 0 {
		t.Errorf("%d wait for the window, %+v", l.rel.queued, l.Counters())
	}
}
