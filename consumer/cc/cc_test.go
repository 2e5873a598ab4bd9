package cc

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
)

const ms = time.Millisecond

func registry(t testing.TB) *Registry {
	t.Helper()
	r, err := NewRegistry(Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistry(t *testing.T) {
	r := registry(t)
	_, err := r.New("vogas", Params{})
	if !errors.Is(err, ErrUnknown) {
		t.Fatalf("error %v", err)
	}
	for _, n := range r.Names() {
		if !strings.Contains(err.Error(), n) {
			t.Errorf("the error does not name %s: %v", n, err)
		}
		c, err := r.New(n, Params{})
		if err != nil || c.Cwnd() < 1 || r.About(n) == "" {
			t.Errorf("%s: %v", n, err)
		}
		if _, err := r.New(n, Params{Options: map[string]string{"nonsense": "1"}}); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s takes an unknown option: %v", n, err)
		}
	}
	if _, err := NewRegistry(append(Builtin(), Builtin()[0])...); err == nil {
		t.Error("a name was registered twice")
	}
	if _, err := r.New("reno", Params{Options: map[string]string{"beta": "half"}}); err == nil {
		t.Error("beta=half was taken")
	}
}

// feed sends one Data per entry, all limited by the window.
func feed(c Controller, now ndn.Time, n int, rtt time.Duration) {
	for range n {
		c.OnData(&Sample{Now: now, RTT: rtt, SRTT: rtt, CwndLimited: true, MeanSize: 1000})
	}
}

func TestRenoRules(t *testing.T) {
	c, _ := NewReno(Params{InitCwnd: 10, InitSsthresh: 20})
	feed(c, 1, 10, ms)
	if c.Cwnd() != 20 {
		t.Fatalf("slow start: %v", c.Cwnd())
	}
	feed(c, 1, 20, ms)
	if math.Abs(c.Cwnd()-21) > 0.1 {
		t.Fatalf("avoidance: %v", c.Cwnd())
	}
	before := c.Cwnd()
	c.OnData(&Sample{Marked: true, CwndLimited: true})
	c.OnData(&Sample{})
	c.OnLoss(&Loss{Kind: LossReorder})
	if c.Cwnd() != before {
		t.Fatal("a marked Data, an idle window, or a second loss of the window changed it")
	}
	c.OnLoss(&Loss{Kind: LossTimeout, NewEvent: true})
	if c.Cwnd() != before/2 {
		t.Fatalf("after a loss: %v", c.Cwnd())
	}
	for range 10 {
		c.OnMark(&Sample{})
	}
	if c.Cwnd() != 2 {
		t.Fatalf("smallest window: %v", c.Cwnd())
	}
	r, _ := NewReno(Params{InitCwnd: 3, Options: map[string]string{"reset-to-iw": "true", "mark-beta": "0.8"}})
	feed(r, 1, 17, ms)
	r.OnMark(&Sample{})
	if r.Cwnd() != 16 {
		t.Fatalf("after a mark: %v", r.Cwnd())
	}
	r.OnLoss(&Loss{Kind: LossTimeout, NewEvent: true})
	if r.Cwnd() != 3 {
		t.Fatalf("after a timeout: %v", r.Cwnd())
	}
}

// The window follows W(t) = C(t-K)^3 + Wmax of RFC 9438 after a decrease.
func TestCubicCurve(t *testing.T) {
	c, _ := NewCubic(Params{InitCwnd: 1000, InitSsthresh: 1})
	now := ndn.Time(time.Second)
	c.OnLoss(&Loss{Now: now, NewEvent: true})
	if c.Cwnd() != 700 {
		t.Fatalf("after a loss: %v", c.Cwnd())
	}
	const rtt = 100 * ms
	k := math.Cbrt(300 / 0.4)
	at := func(s float64) float64 { return 0.4*math.Pow(s-k, 3) + 1000 }
	for s := 0.0; s < 2*k; s += rtt.Seconds() {
		n := int(c.Cwnd())
		for i := range n { // evenly over a round trip
			c.OnData(&Sample{Now: now.Add(time.Duration(i) * rtt / time.Duration(n)), RTT: rtt, SRTT: rtt, CwndLimited: true})
		}
		now = now.Add(rtt)
		lo, hi := at(now.Sub(ndn.Time(time.Second)).Seconds()-0.1), at(now.Sub(ndn.Time(time.Second)).Seconds()+0.2)
		if c.Cwnd() < lo-3 || c.Cwnd() > hi+3 {
			t.Fatalf("%.1f s after the loss: %.1f, the curve has %.1f to %.1f", s, c.Cwnd(), lo, hi)
		}
	}
	// Fast convergence: a second loss below the last maximum.
	d, _ := NewCubic(Params{InitCwnd: 100, InitSsthresh: 1})
	d.OnLoss(&Loss{Now: 1, NewEvent: true})
	d.OnLoss(&Loss{Now: 2, NewEvent: true})
	if w := d.(*Cubic).wmax; math.Abs(w-70*0.85) > 1e-9 {
		t.Errorf("Wmax %v after the second loss", w)
	}
}

// On a short path the Reno-friendly region is what counts.
func TestCubicRenoFriendly(t *testing.T) {
	c, _ := NewCubic(Params{InitCwnd: 20, InitSsthresh: 1})
	now := ndn.Time(1)
	c.OnLoss(&Loss{Now: now, NewEvent: true})
	for range 100 { // 100 round trips of 1 ms: the cubic curve has hardly moved
		feed(c, now, int(c.Cwnd()), ms)
		now = now.Add(ms)
	}
	if c.Cwnd() < 60 {
		t.Errorf("window %v after 100 round trips", c.Cwnd())
	}
}

func TestHystart(t *testing.T) {
	var h hystart
	tx := uint64(0)
	round := func(rtt time.Duration) (grown float64, exit bool) {
		hi := tx + 20
		for range 20 {
			tx++
			inc, e := h.onData(&Sample{Tx: tx, HighTx: hi, RTT: rtt})
			grown += inc
			exit = exit || e
		}
		return grown, exit
	}
	round(50 * ms)
	if g, _ := round(51 * ms); g != 20 {
		t.Fatalf("grew by %v without a rise", g)
	}
	if g, _ := round(60 * ms); g > 15 {
		t.Fatalf("grew by %v in the round of the rise", g)
	}
	if g, e := round(60 * ms); g != 5 || e {
		t.Fatalf("conservative slow start: %v %v", g, e)
	}
	if g, _ := round(50 * ms); g < 12 {
		t.Fatalf("a passing rise: %v", g)
	}
	round(50 * ms)
	round(60 * ms)
	ended := false
	for range cssRounds + 1 {
		_, e := round(60 * ms)
		ended = ended || e
	}
	if !ended {
		t.Fatal("slow start did not end after five risen rounds")
	}
	h = hystart{}
	round(50 * ms)
	round(60 * ms)
	if _, e := round(70 * ms); !e {
		t.Fatal("slow start did not end at a second rise")
	}
}

// TestUndo: an answer to a loss that is taken back lets the window grow in slow
// start to where it was and go on from there.
func TestUndo(t *testing.T) {
	for _, name := range []string{"reno", "cubic"} {
		c, err := registry(t).New(name, Params{InitCwnd: 40, InitSsthresh: 50})
		if err != nil {
			t.Fatal(err)
		}
		now := ndn.Time(time.Second)
		data := func(n int) {
			for range n {
				now = now.Add(time.Millisecond)
				c.OnData(&Sample{Now: now, CwndLimited: true, SRTT: 50 * time.Millisecond})
			}
		}
		data(100)
		before := c.Cwnd()
		c.OnLoss(&Loss{Now: now, NewEvent: true, Kind: LossReorder})
		low := c.Cwnd()
		c.(Undoer).OnUndo(now)
		if got := c.Cwnd(); got != low || low >= before {
			t.Errorf("%s: from %v to %v, and at once to %v", name, before, low, got)
		}
		data(int(before-low) + 1)
		if got := c.Cwnd(); got < before || got > before+2 {
			t.Errorf("%s: %v after slow start, was %v", name, got, before)
		}
		newBound(c, 5).OnUndo(now) // passed on
		newBound(&Fixed{}, 5).OnUndo(now)
	}
}
