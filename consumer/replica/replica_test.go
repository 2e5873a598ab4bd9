package replica

import (
	"testing"
	"time"

	"ndnpop/ndn"
)

const (
	ms = time.Millisecond
	mb = 1e6 / 8 // bytes per second in a Mbit/s
)

// world feeds a Switch with a path of a rate and an RTT.
type world struct {
	s    *Switch
	now  ndn.Time
	next ndn.Time // round
	rate float64  // bytes per second
	rtt  time.Duration
	tag  uint64
}

func newWorld(cfg Config, numbers int) *world {
	w := &world{now: ndn.Time(time.Second), rate: 100 * mb, rtt: 20 * ms, tag: 1}
	w.s = New(cfg, numbers, w.now)
	return w
}

// run lets Data arrive for a while. It returns the first decision that is not
// to stay, and when.
func (w *world) run(d time.Duration, remaining uint64) (to int, at ndn.Time, ok bool) {
	const size = 8000
	gap := time.Duration(size / w.rate * float64(time.Second))
	for end := w.now.Add(d); w.now < end; {
		w.now = w.now.Add(gap)
		e := Sample{Now: w.now, RTT: w.rtt, Size: size, RoundStart: w.now >= w.next}
		w.s.Data(&e, w.tag)
		if !e.RoundStart {
			continue
		}
		w.next = w.now.Add(w.rtt)
		if to, ok := w.s.Decide(w.now, w.level(), remaining); ok {
			return to, w.now, true
		}
	}
	return 0, 0, false
}

func (w *world) level() Level { return w.s.Level(w.now, 2*w.rtt, 0, true) }

func (w *world) stays(t *testing.T, d time.Duration, remaining uint64) {
	t.Helper()
	if to, at, ok := w.run(d, remaining); ok {
		t.Fatalf("goes to %d at %v", to, at)
	}
}

// deaf lets nobody listen in the network.
func (w *world) deaf() { w.s.Refused(w.now, true) }

func TestHeavyCongestion(t *testing.T) {
	w := newWorld(Config{}, 1)
	w.stays(t, 4*time.Second, 1e9)
	if w.level() != Light {
		t.Fatal(w.level())
	}
	began := w.now
	w.rate, w.rtt = 40*mb, 60*ms
	to, at, ok := w.run(2*time.Second, 50e6)
	if !ok || to != Network {
		t.Fatalf("%d, %v", to, ok)
	}
	if d := at.Sub(began); d < 3*w.rtt || d > time.Second {
		t.Errorf("decided after %v", d)
	}
}

// What does not suffice for a switch.
func TestLight(t *testing.T) {
	for name, c := range map[string]struct {
		rate      float64
		rtt       time.Duration
		remaining uint64
	}{
		"RTT within the bound":       {40 * mb, 43 * ms, 1e9},
		"slower, but not that slow":  {80 * mb, 60 * ms, 1e9},
		"almost done":                {40 * mb, 60 * ms, 100_000},
		"slower with the same queue": {40 * mb, 20 * ms, 1e9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Config{}, 1)
			w.stays(t, 4*time.Second, 1e9)
			w.rate, w.rtt = c.rate, c.rtt
			w.stays(t, 5*time.Second, c.remaining)
		})
	}
}

// A queue that start-up fills while the rate still grows is no congestion.
func TestStartupIsNotJudged(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.s.Know(w.now, ID{Number: 1}, 1000*mb, 10*ms)
	w.deaf()
	w.rate = 5 * mb
	for range 4 {
		w.stays(t, w.rtt, 1e9)
		w.rate *= 2
		w.rtt = 20*ms + w.rtt*5/4
		if w.s.mon.rttFlag() {
			t.Fatal("judged in start-up")
		}
	}
}

// The flag of equation (1): timeouts in a row, within two RTOs.
func TestLossFlag(t *testing.T) {
	w := newWorld(Config{}, 1)
	w.stays(t, 2*time.Second, 1e9)
	rto := 200 * ms
	for range 3 {
		w.s.Timeout(w.now, rto)
	}
	if w.level() != Light {
		t.Error("three timeouts are not more than three")
	}
	w.s.Timeout(w.now, rto)
	if w.level() != Heavy {
		t.Error("four are")
	}
	w.stays(t, 30*ms, 1e9)
	if w.level() != Light {
		t.Error("Data ends it")
	}
	for range 8 {
		w.s.Timeout(w.now, rto)
		w.now = w.now.Add(rto)
	}
	if w.s.mon.lossFlag() {
		t.Error("timeouts over a long time are not in a row")
	}
}

func TestInterruption(t *testing.T) {
	w := newWorld(Config{}, 3)
	w.s.Know(w.now, ID{Number: 2}, 10*mb, 30*ms)
	w.stays(t, 2*time.Second, 1e9)
	quiet := w.now
	w.now = quiet.Add(999 * ms)
	if w.level() != Light {
		t.Error("too soon")
	}
	w.now = quiet.Add(time.Second)
	if w.level() != Interrupted || w.s.InterruptAt(100*ms, 0) != w.now || w.s.InterruptAt(2*time.Second, 0) != quiet.Add(4*time.Second) {
		t.Error("an interruption after a second, or two RTOs")
	}
	if w.s.InterruptAt(0, 100*ms) != quiet.Add(900*ms) || w.s.InterruptAt(0, time.Hour) != quiet.Add(500*ms) {
		t.Error("sooner, but not by more than half")
	}
	if !w.s.AsksFirst(w.now) {
		t.Error("asks the network first")
	}
	// Unconditionally, whatever remains: first the network, then the number
	// with the best rate.
	if to, ok := w.s.Decide(w.now, Interrupted, 1); !ok || to != Network {
		t.Error(to, ok)
	}
	w.deaf()
	if to, ok := w.s.Decide(w.now, Interrupted, 1); !ok || to != 1 {
		t.Errorf("%d: an unknown one at 70 Mbit/s is better than a known one at 10", to)
	}
	if w.s.Level(w.now, 100*ms, 0, false) != Light {
		t.Error("nobody waits: no interruption")
	}
	w.s.Failed()
	if w.s.Level(w.now, 100*ms, 0, false) != Interrupted {
		t.Error("no way there is an interruption at once")
	}
}

// What is remembered decides, and is forgotten after a minute.
func TestHistory(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.s.Know(w.now, ID{Number: 1}, 35*mb, 30*ms)
	w.deaf()
	w.stays(t, 4*time.Second, 1e9)
	w.rate, w.rtt = 40*mb, 60*ms
	w.stays(t, 5*time.Second, 1e9)

	w = newWorld(Config{}, 2)
	w.s.Know(w.now, ID{Number: 1}, 35*mb, 30*ms)
	w.stays(t, 61*time.Second, 1e9)
	w.deaf()
	w.rate, w.rtt = 40*mb, 60*ms
	if to, _, ok := w.run(5*time.Second, 1e9); !ok || to != 1 {
		t.Error("an old measurement counts")
	}
	rate, rtt := w.s.Switched(w.now, ID{Number: 1})
	if rate != 0 || rtt != 0 {
		t.Errorf("starts with an old %v, %v", rate, rtt)
	}
}

// Both replicas are bad in turn: the fetch does not go to and fro.
func TestNoFlapping(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.deaf()
	w.stays(t, 4*time.Second, 1e9)
	at := 0
	var switches []ndn.Time
	for w.now < ndn.Time(65*time.Second) {
		// The path degrades soon after each arrival.
		w.rate, w.rtt = 40*mb, 60*ms
		to, when, ok := w.run(time.Second, 1e9)
		if !ok {
			continue
		}
		if to == at {
			t.Fatal("goes to where it is")
		}
		w.s.Switched(when, ID{Number: to})
		switches = append(switches, when)
		at = to
		w.rate, w.rtt = 100*mb, 20*ms
		if _, _, again := w.run(1900*ms, 1e9); again {
			t.Fatal("a switch within the hold-down")
		}
	}
	if len(switches) < 1 || len(switches) > 14 {
		t.Errorf("%d switches in a minute: %v", len(switches), switches)
	}
	for i := 2; i < len(switches); i++ {
		if switches[i].Sub(switches[i-2]) < 10*time.Second && i >= 3 && switches[i-1].Sub(switches[i-3]) < 10*time.Second {
			t.Errorf("more than one return within ten seconds: %v", switches)
		}
	}
}

// A replica that was left is worth what it was worth then.
func TestReturnKnowsTheRate(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.deaf()
	w.stays(t, 4*time.Second, 1e9)
	w.rate, w.rtt = 40*mb, 60*ms
	_, when, ok := w.run(2*time.Second, 1e9)
	if !ok {
		t.Fatal("stays")
	}
	w.s.Switched(when, ID{Number: 1})
	w.rate, w.rtt = 70*mb, 30*ms
	w.stays(t, 12*time.Second, 1e9)
	// Now this one becomes as slow as the first one was: no reason to return.
	w.rate, w.rtt = 45*mb, 80*ms
	w.stays(t, 8*time.Second, 1e9)
	w.s.Switched(w.now, ID{Number: 0})
	rate, rtt := w.s.Switched(w.now.Add(time.Second), ID{Number: 1})
	if rate < 40*mb || rate > 50*mb || rtt != 30*ms {
		t.Errorf("%.1f Mbit/s, %v", rate/mb, rtt)
	}
}

// The controller's own pauses are not the path's rate.
func TestPauseOfTheController(t *testing.T) {
	w := newWorld(Config{Elsewhere: 35 * mb}, 1)
	w.stays(t, 4*time.Second, 1e9)
	w.rate, w.rtt = 40*mb, 60*ms
	w.stays(t, time.Second, 1e9)
	w.rate = 2 * mb
	w.stays(t, 300*ms, 1e9)
	w.rate = 40 * mb
	w.stays(t, time.Second, 1e9)
	// But a path that has become that slow is left.
	w.rate = 2 * mb
	if _, _, ok := w.run(5*time.Second, 1e9); !ok {
		t.Error("stays on a path that is dead slow")
	}
}

func TestCostOfSwitching(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.deaf()
	w.stays(t, 4*time.Second, 1e9)
	if c := w.s.switchTime(30 * ms); c != 0.24 {
		t.Errorf("before one was measured: %v", c)
	}
	w.s.Switched(w.now, ID{Number: 1})
	w.now = w.now.Add(500 * ms) // nothing comes at first
	w.stays(t, 2*time.Second, 1e9)
	if c := w.s.switchTime(30 * ms); c < 0.3 || c > 0.7 {
		t.Errorf("half a second was lost, and it cost %v", c)
	}
}

// The network moves the content by itself: nothing of the old path is held
// against the new one.
func TestMoved(t *testing.T) {
	w := newWorld(Config{}, 1)
	w.stays(t, 4*time.Second, 1e9)
	w.tag, w.rate, w.rtt = 2, 30*mb, 100*ms
	w.s.Moved(w.now, 2)
	w.stays(t, 5*time.Second, 1e9)
	rate, rtt := w.s.Moved(w.now, 1)
	if rate < 90*mb || rtt != 20*ms {
		t.Errorf("%v, %v of the first path", rate, rtt)
	}
	if rate, _ = w.s.Moved(w.now, 1); rate != 0 {
		t.Error("it is there already")
	}
}

func TestRefused(t *testing.T) {
	w := newWorld(Config{}, 1)
	w.stays(t, 2*time.Second, 1e9)
	w.now = w.now.Add(2 * time.Second)
	w.s.Refused(w.now, false)
	if _, ok := w.s.Decide(w.now, Interrupted, 1); ok {
		t.Error("asks again at once, and there is nobody else")
	}
	w.now = w.now.Add(2 * time.Second)
	if to, ok := w.s.Decide(w.now, Interrupted, 1); !ok || to != Network {
		t.Error("never asks again")
	}
	w.s.Refused(w.now, true)
	w.now = w.now.Add(59 * time.Second)
	if _, ok := w.s.Decide(w.now, Interrupted, 1); ok {
		t.Error("asks the deaf")
	}
}

// With more identities than rows, the oldest are forgotten.
func TestRowsAreBounded(t *testing.T) {
	w := newWorld(Config{}, Max+5)
	if w.s.numbers != Max {
		t.Errorf("%d numbers", w.s.numbers)
	}
	for tag := range uint64(200) {
		w.now = w.now.Add(ms)
		w.s.Moved(w.now, tag+2)
	}
	used := 0
	for _, r := range w.s.rows {
		if r.at != 0 {
			used++
		}
	}
	if used != maxRows {
		t.Errorf("%d rows", used)
	}
}

func TestLevelNames(t *testing.T) {
	if Light.String() != "light congestion" || Heavy.String() != "heavy congestion" || Interrupted.String() != "interruption" {
		t.Error("names of levels")
	}
}

func TestNoAllocations(t *testing.T) {
	w := newWorld(Config{}, 4)
	e := Sample{RTT: 20 * ms, Size: 8000}
	n := testing.AllocsPerRun(1000, func() {
		w.now = w.now.Add(ms)
		e.Now, e.RoundStart = w.now, int64(w.now)%int64(20*ms) == 0
		w.s.Sent(w.now)
		w.s.Data(&e, 1)
		w.s.Timeout(w.now, 200*ms)
		w.s.Decide(w.now, w.s.Level(w.now, 200*ms, 0, true), 1e9)
		w.s.Decide(w.now, Heavy, 1e9)
		w.s.Switched(w.now, ID{Number: 1})
		w.s.Switched(w.now, ID{Number: 2})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// δ lies between what a queue of the path's own length adds, and what the
// paper's event does.
func TestDelta(t *testing.T) {
	for rtt, leaves := range map[time.Duration]bool{43 * ms: false, 45 * ms: true} {
		w := newWorld(Config{}, 1)
		w.stays(t, 4*time.Second, 1e9)
		w.rate, w.rtt = 40*mb, rtt
		if _, _, ok := w.run(5*time.Second, 1e9); ok != leaves {
			t.Errorf("%v of 20 ms: leaves %v", rtt, ok)
		}
	}
}

// The hold-down is for congestion; an interruption ends it.
func TestHoldDown(t *testing.T) {
	w := newWorld(Config{Elsewhere: 1000 * mb}, 2)
	w.s.Switched(w.now, ID{Number: 1})
	at := w.now.Add(1990 * ms)
	if _, ok := w.s.Decide(at, Heavy, 1e9); ok {
		t.Error("leaves within two seconds")
	}
	if _, ok := w.s.Decide(at, Interrupted, 1e9); !ok {
		t.Error("stays with a silent one")
	}
	if _, ok := w.s.Decide(w.now.Add(2010*ms), Heavy, 1e9); !ok {
		t.Error("stays after two seconds")
	}
}

// Of two replicas, one that was left and returned to is not left for the other
// within ten seconds.
func TestOneReturn(t *testing.T) {
	w := newWorld(Config{}, 2)
	w.s.Switched(w.now, ID{Number: 1})
	back := w.now.Add(3 * time.Second)
	w.s.Switched(back, ID{Number: 0})
	w.s.Refused(back, true)
	if to, ok := w.s.Decide(back.Add(9990*ms), Interrupted, 1e9); ok {
		t.Errorf("a second return, to %d", to)
	}
	if to, ok := w.s.Decide(back.Add(10010*ms), Interrupted, 1e9); !ok || to != 1 {
		t.Errorf("after ten seconds: %d, %v", to, ok)
	}
}
