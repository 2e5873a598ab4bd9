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

// TestHystartTrain: Data that come without a pause for half of the smallest RTT
// slow the growth within that round, and the RTT's rise ends slow start; shorter
// trains and pauses do neither.
func TestHystartTrain(t *testing.T) {
	const rtt = 80 * ms
	for _, c := range []struct {
		name        string
		n           int
		every       time.Duration
		pause       time.Duration // before the last Data
		fills, ends bool
	}{
		{"a path that is not full", 39, ms, 0, false, false},
		{"a full one", 60, ms, 0, true, true},
		{"with a pause", 39, ms, 11 * ms, false, false},
		{"wide apart", 6, 9 * ms, 0, true, false}, // too few for an RTT
		{"paced over the round trip", 7, 11 * ms, 0, false, false},
	} {
		var h hystart
		now, tx := ndn.Time(time.Second), uint64(0)
		h.onData(&Sample{Now: now, Tx: 1, HighTx: 1, RTT: rtt})
		now = now.Add(rtt)
		round := func(rtt time.Duration) (last float64, exit bool) {
			hi := tx + uint64(c.n)
			for i := range c.n {
				tx++
				inc, e := h.onData(&Sample{Now: now, Tx: tx + 1, HighTx: hi + 1, RTT: rtt})
				last, exit = inc, exit || e
				now = now.Add(c.every)
				if i == c.n-2 {
					now = now.Add(c.pause)
				}
			}
			return last, exit
		}
		last, exit := round(rtt)
		if (last < 1) != c.fills || exit {
			t.Errorf("%s: the last Data grows the window by %v, ends %v", c.name, last, exit)
		}
		now = now.Add(rtt)
		if _, exit = round(rtt + 12*ms); exit != c.ends {
			t.Errorf("%s: a risen RTT ends slow start: %v", c.name, exit)
		}
	}
}

// TestHystartTrainIsOver: a train that was too short fills no path when an RTT that is
// smaller comes after its end, but when it comes with the train itself.
func TestHystartTrainIsOver(t *testing.T) {
	for _, c := range []struct {
		pause time.Duration // before the Data with the smaller RTT
		fills bool
	}{{ms, true}, {11 * ms, false}} {
		var h hystart
		h.onData(&Sample{Now: 1, Tx: 1, HighTx: 1, RTT: 80 * ms})
		now := ndn.Time(80 * ms)
		for tx := range uint64(39) {
			h.onData(&Sample{Now: now, Tx: tx + 2, HighTx: 41, RTT: 80 * ms})
			now = now.Add(ms)
		}
		if h.full {
			t.Fatal("38 ms of Data fill a path of 80 ms")
		}
		h.onData(&Sample{Now: now.Add(c.pause - ms), Tx: 41, HighTx: 41, RTT: 72 * ms})
		if h.full != c.fills {
			t.Errorf("72 ms after a pause of %v: full %v", c.pause, h.full)
		}
	}
}

// TestHystartBehindCache: what the first Data come in a train from is a cache nearby.
// The longer RTT of the path behind it, which no tag tells apart, does not end slow
// start, and that path is not taken for full.
func TestHystartBehindCache(t *testing.T) {
	var h hystart
	now, tx := ndn.Time(time.Second), uint64(0)
	round := func(n int, rtt time.Duration) (grown float64, exit bool) {
		hi := tx + uint64(n)
		for i := range n {
			tx++
			inc, e := h.onData(&Sample{Now: now.Add(time.Duration(i) * ms), Tx: tx, HighTx: hi, RTT: rtt})
			grown, exit = grown+inc, exit || e
		}
		now = now.Add(rtt)
		return grown, exit
	}
	round(1, 8*ms)
	if _, exit := round(8, 8*ms); exit || !h.full {
		t.Fatalf("a train from the cache: full %v, ends %v", h.full, exit)
	}
	for i, n := range []int{10, 12} {
		if grown, exit := round(n, 80*ms); exit || grown < float64(n)/4 {
			t.Errorf("round trip %d behind the cache: grows by %v, ends %v", i+1, grown, exit)
		}
	}
	if h.full {
		t.Error("12 ms of Data fill a path of 80 ms")
	}
}

// TestHystartJitter: jitter that spreads the Data of a small window over more than half
// of the round trip slows the growth for a round and no longer.
func TestHystartJitter(t *testing.T) {
	rtt := 80 * ms
	var h hystart
	now, tx := ndn.Time(time.Second), uint64(0)
	round := func(n int, every time.Duration) (grown float64) {
		hi := tx + uint64(n)
		for i := range n {
			tx++
			inc, exit := h.onData(&Sample{Now: now.Add(time.Duration(i) * every), Tx: tx, HighTx: hi, RTT: rtt})
			if grown += inc; exit {
				t.Fatal("slow start ends")
			}
		}
		now = now.Add(rtt)
		return grown
	}
	round(1, 0)
	if g := round(20, 5*ms/2); g == 20 || !h.full {
		t.Fatalf("a train of 48 ms: grows by %v, full %v", g, h.full)
	}
	if g := round(24, 5*ms/2); g != 6 {
		t.Fatalf("the round after: grows by %v", g)
	}
	for range 2 { // no longer train than before: it was none
		if g := round(30, 2*ms); g != 30 || h.full {
			t.Fatalf("without a longer train or RTT: grows by %v, full %v", g, h.full)
		}
	}
	h = hystart{}
	round(1, 0)
	round(50, ms)
	rtt = 86 * ms
	round(60, ms)
	if g := round(60, ms); g != 15 || !h.full {
		t.Errorf("an RTT that has risen: grows by %v, full %v", g, h.full)
	}
	rtt = 80 * ms
	h = hystart{}
	round(1, 0)
	round(50, ms)
	round(78, ms)
	if g := round(78, ms); g != 78./4 || !h.full {
		t.Errorf("a path that is full indeed: grows by %v, full %v", g, h.full)
	}
}

// TestBehindCacheWithoutTags: slow start that ended at a cache nearby goes on behind it,
// where nothing was lost and no tag tells the paths apart; not by an RTT that a queue
// of one's own has made, and not by one that rises little by little.
func TestBehindCacheWithoutTags(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int           // Data per round behind the cache
		to     time.Duration // RTT there
		tag    uint64
		lose   bool
		slowly bool
		goesOn bool
	}{
		{name: "another path", n: 20, to: 80 * ms, goesOn: true},
		{name: "a little longer", n: 18, to: 39 * ms},
		{name: "with tags", n: 20, to: 80 * ms, tag: 7},
		{name: "after a loss", n: 20, to: 80 * ms, lose: true},
		{name: "a queue", n: 60, to: 80 * ms},
		{name: "little by little", n: 20, to: 80 * ms, slowly: true},
	} {
		for _, name := range []string{"reno", "cubic"} {
			ctl, err := registry(t).New(name, Params{Options: map[string]string{"hystart": "true"}})
			if err != nil {
				t.Fatal(err)
			}
			now, tx := ndn.Time(time.Second), uint64(0)
			round := func(n int, rtt time.Duration) (grown float64) {
				before, hi := ctl.Cwnd(), tx+uint64(n)
				for range n {
					tx++
					ctl.OnData(&Sample{Now: now, Tx: tx, HighTx: hi, RTT: rtt, SRTT: rtt, CwndLimited: true, Tag: c.tag})
					now = now.Add(ms)
				}
				now = now.Add(max(0, rtt-time.Duration(n)*ms))
				return ctl.Cwnd() - before
			}
			round(1, 20*ms)
			for range 3 {
				round(20, 20*ms)
			}
			for range 3 {
				round(min(c.n, 26), 26*ms)
			}
			if c.lose {
				ctl.OnLoss(&Loss{Now: now, NewEvent: true})
			}
			if grown := round(c.n, 26*ms); grown > 4 {
				t.Fatalf("%s, %s: slow start has not ended, %v", c.name, name, grown)
			}
			grown := 0.
			if c.slowly {
				for rtt := 30 * ms; rtt < c.to; rtt += rtt / 6 {
					grown = max(grown, round(c.n, rtt))
				}
			}
			grown = max(grown, round(c.n, c.to))
			grown = max(grown, round(c.n, c.to))
			if goesOn := grown > 0.9*float64(c.n); goesOn != c.goesOn || !goesOn && grown > 4 {
				t.Errorf("%s, %s: grows by %v of %d", c.name, name, grown, c.n)
			}
			if cubic, ok := ctl.(*Cubic); ok && cubic.avoiding == c.goesOn {
				t.Errorf("%s: the curve is that of the other path: %t", c.name, cubic.avoiding)
			}
		}
	}
}

// TestHystartPath: another path is learnt anew, after the end of slow start only
// when it is a much longer one.
func TestHystartPath(t *testing.T) {
	for _, name := range []string{"reno", "cubic"} {
		c, err := registry(t).New(name, Params{Options: map[string]string{"hystart": "true"}})
		if err != nil {
			t.Fatal(err)
		}
		now, tx := ndn.Time(time.Second), uint64(0)
		round := func(n int, rtt time.Duration) {
			hi := tx + uint64(n)
			for range n {
				tx++
				c.OnData(&Sample{Now: now, Tx: tx, HighTx: hi, RTT: rtt, SRTT: rtt, CwndLimited: true})
				now = now.Add(ms)
			}
			now = now.Add(rtt - time.Duration(n)*ms)
		}
		round(1, 50*ms)
		round(40, 50*ms)
		c.(PathChanger).OnPathChange(&PathChange{Now: now, RTT: 80 * ms})
		before := c.Cwnd()
		round(20, 80*ms)
		round(20, 80*ms)
		if grown := c.Cwnd() - before; grown != 40 {
			t.Errorf("%s: the window grows by %v in two rounds of 20 on a longer path", name, grown)
		}
		round(60, 80*ms)
		for range 3 {
			round(60, 120*ms) // ends slow start
		}
		c.OnLoss(&Loss{Now: now, NewEvent: true})
		rtt := 80 * ms
		for _, to := range []time.Duration{150 * ms, 300 * ms} {
			// Each path is learnt in slow start.
			c.(PathChanger).OnPathChange(&PathChange{Now: now, RTT: to})
			if c, ok := c.(*Cubic); ok && c.avoiding != (to < 2*rtt) {
				t.Errorf("on a path of %v cubic goes on with its curve: %v", to, c.avoiding)
			}
			before = c.Cwnd()
			round(20, to)
			round(20, to)
			if grown := c.Cwnd() - before; (grown == 40) != (to >= 2*rtt) {
				t.Errorf("%s: the window grows by %v in two rounds on a path of %v after one of %v", name, grown, to, rtt)
			}
			c.(PathChanger).OnPathChange(&PathChange{Now: now, RTT: rtt, Replica: true})
			round(20, rtt)
			c.OnLoss(&Loss{Now: now, NewEvent: true})
		}
	}
	plain, _ := NewReno(Params{InitSsthresh: 10})
	plain.(PathChanger).OnPathChange(&PathChange{RTT: 80 * ms})
	if feed(plain, 1, 10, ms); plain.Cwnd() > 11.5 {
		t.Errorf("without hystart another path makes a window of %v of 10", plain.Cwnd())
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
