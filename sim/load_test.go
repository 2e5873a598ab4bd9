package sim_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

func TestLoadRefusesWithReasons(t *testing.T) {
	for text, want := range map[string]string{
		"[[node]]\nname = \"a\"\ncolour = 1":                               "colour",
		"[[node]]\nname = \"a\"\n[[node]]\nname = \"a\"":                   "two nodes",
		"[[link]]\na = \"a\"\nb = \"b\"":                                   `no node "a"`,
		"[[chain]]\nnodes = 2\nprefix = \"n\"\nlink = { rate = \"fast\" }": "kbit, Mbit, Gbit",
		"[[chain]]\nnodes = 2\nprefix = \"n\"\nlink = { loss = \"200%\" }": "loss 2",
		"strategy = \"wurst\"\n[[node]]\nname = \"a\"":                     "best-route",
		"routing = \"x\"": "shortest",
		"[[node]]\nname = \"a\"\n[[event]]\nnode = \"a\"\ndo = \"fly\"":                                 "kill, crash or restart",
		"[[chain]]\nnodes = 2\nprefix = \"n\"\n[[event]]\nlink = \"n0-n1\"\ndo = \"up\"\nloss = \"1%\"": "only set",
		"[[event]]\nlink = \"a-b\"\ndo = \"up\"":                                                        `no link "a-b"`,
		"[[node]]\nname = \"a\"\n[[producer]]\nnode = \"a\"\nprefix = \"/a\"\nsegment = -1":             "segments of -1 bytes",
		"until = \"x\"": "duration",
	} {
		_, _, err := sim.Load(strings.NewReader(text), sim.Config{Strategies: strategies.Builtin()})
		if !errors.Is(err, sim.ErrSetup) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

// TestLoadIsWhatGoBuilds: a network from TOML behaves as the one built in Go.
func TestLoadIsWhatGoBuilds(t *testing.T) {
	a, until, err := sim.Load(strings.NewReader(`
seed = 5
until = "20s"
[dumbbell]
pairs = 2
left = [{ delay = "1ms" }, { delay = "10ms" }]
bottleneck = { rate = "10Mbit", delay = "4ms", queue = "50kB", burst = { to-bad = "0.1%", to-good = "20%", loss-bad = "50%" } }
[[producer]]
node = "right0"
prefix = "/a"
size = "2MB"
[[producer]]
node = "right1"
prefix = "/b"
size = "2MB"
[[fetch]]
node = "left0"
name = "/a/x"
controller = "reno"
options = { beta = "0.7" }
[[fetch]]
node = "left1"
name = "/b/x"
[[event]]
at = "1s"
link = "a-b"
do = "set"
rate = "20Mbit"
delay = "2ms"
queue = "100kB"
loss = "0%"
`), sim.Config{Strategies: strategies.Builtin()})
	if err != nil {
		t.Fatal(err)
	}
	b := newNet(5)
	d := b.Dumbbell(sim.DumbbellConfig{
		Pairs: 2,
		Left: func(i int) sim.LinkConfig {
			return sim.LinkConfig{Params: sim.Params{Delay: []time.Duration{ms, 10 * ms}[i]}}
		},
		Bottleneck: sim.LinkConfig{Params: sim.Params{Rate: 10e6, Delay: 4 * ms, Queue: 50_000, Burst: sim.GilbertElliott{ToBad: .001, ToGood: .2, LossBad: .5}}},
	})
	b.AddProducer(d.Right[0], sim.ProducerConfig{Prefix: "/a", Size: 2e6})
	b.AddProducer(d.Right[1], sim.ProducerConfig{Prefix: "/b", Size: 2e6})
	reno := sim.FetchConfig{Name: "/a/x", Controller: "reno"}
	reno.Params.Options = map[string]string{"beta": "0.7"}
	b.AddFetch(d.Left[0], reno)
	b.AddFetch(d.Left[1], sim.FetchConfig{Name: "/b/x"})
	b.At(time.Second, func() {
		_ = d.Bottleneck.Set(sim.Params{Rate: 20e6, Delay: 2 * ms, Queue: 100_000})
	})
	run(t, a, until)
	run(t, b, until)
	if a.Events() != b.Events() || a.Events() < 1000 {
		t.Errorf("%d and %d events", a.Events(), b.Events())
	}
	for i, f := range a.Fetches() {
		if f.Stats() != b.Fetches()[i].Stats() || !f.Done() || f.Err() != nil {
			t.Errorf("%v %+v\n%+v", f.Err(), f.Stats(), b.Fetches()[i].Stats())
		}
	}
}

// lossyChain repairs what it loses, but not what is under /open, and shapes its
// last link.
const lossyChain = `
until = "60s"
[[chain]]
prefix = "n"
nodes = 4
link = { rate = "1Mbit", delay = "1ms", loss = "10%", half-duplex = true, queue-packets = 50, reliable = true, reliable-retries = 5, stop-and-wait = true, unprotected = ["/open"] }
[[producer]]
node = "far"
prefix = "/safe"
size = "200kB"
segment = 1000
[[producer]]
node = "far"
prefix = "/open"
size = "200kB"
segment = 1000
[[fetch]]
node = "n0"
name = "/safe/x"
controller = "reno"
max-cwnd = 8
hop-by-hop = true
[[fetch]]
node = "n0"
name = "/open/x"
controller = "reno"
[[node]]
name = "far"
[[link]]
a = "n3"
b = "far"
rate = "1Mbit"
shaping = true
`

// TestHopByHop: links that lose a tenth of what they carry repair it, as the
// file says; what is unprotected they lose. The same seed does the same again.
func TestHopByHop(t *testing.T) {
	var traces [2]bytes.Buffer
	var n *sim.Network
	for i := range traces {
		var until time.Duration
		var err error
		n, until, err = sim.Load(strings.NewReader(lossyChain), sim.Config{Strategies: strategies.Builtin(), Trace: &traces[i]})
		if err != nil {
			t.Fatal(err)
		}
		run(t, n, until)
	}
	if !bytes.Equal(traces[0].Bytes(), traces[1].Bytes()) {
		t.Error("the same seed gives another trace")
	}
	safe, open := n.Fetches()[0], n.Fetches()[1]
	if !safe.Done() || safe.Err() != nil || safe.Stats().Retransmissions > 2 {
		t.Errorf("protected: %v %+v", safe.Err(), safe.Stats())
	}
	if s := open.Stats(); s.Retransmissions < 50 {
		t.Errorf("unprotected: %+v", s)
	}
	if s := n.Links()[0].AB.Service().Counters(); s.Retransmitted < 20 || s.OutAcks == 0 {
		t.Errorf("%+v", s)
	}
	if w := safe.Stats().Cwnd; w > 8 {
		t.Errorf("window %v", w)
	}
}

// TestSetChangesWhatItNames: what an event does not name stays, in each
// direction.
func TestSetChangesWhatItNames(t *testing.T) {
	n, _, err := sim.Load(strings.NewReader(`
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
a = "a"
b = "b"
rate = "20Mbit"
delay = "30ms"
burst = { to-bad = "1%", to-good = "20%", loss-bad = "50%" }
back = { rate = "5Mbit", delay = "10ms", queue-packets = 10, codel = true, reorder = true }
[[event]]
at = "1s"
link = "a-b"
do = "set"
rate = "1Mbit"
[[event]]
at = "2s"
link = "a-b"
do = "set"
loss = "2%"
codel = false
[[event]]
at = "3s"
link = "b-a"
do = "set"
burst = { to-bad = "2%", to-good = "20%", loss-bad = "50%" }
`), sim.Config{Strategies: strategies.Builtin()})
	if err != nil {
		t.Fatal(err)
	}
	l := n.Links()[0]
	ab, ba := l.AB.Params(), l.BA.Params()
	want := func(at time.Duration) {
		t.Helper()
		run(t, n, at)
		if l.AB.Params() != ab || l.BA.Params() != ba {
			t.Errorf("at %v: %+v and %+v, want %+v and %+v", at, l.AB.Params(), l.BA.Params(), ab, ba)
		}
	}
	want(ms)
	ab.Rate, ba.Rate = 1e6, 1e6
	want(time.Second)
	ab.Burst, ab.Loss, ba.Loss, ba.CoDel.On = sim.GilbertElliott{}, .02, .02, false
	want(2 * time.Second)
	ab.Loss, ab.Burst = 0, sim.GilbertElliott{ToBad: .02, ToGood: .2, LossBad: .5}
	ba.Loss, ba.Burst = 0, ab.Burst
	want(3 * time.Second)
}

// TestUpEndsABlackHoleOfOneDirection that the link itself knows nothing of.
func TestUpEndsABlackHoleOfOneDirection(t *testing.T) {
	n := newNet(1)
	a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Delay: ms}}, sim.ProducerConfig{Prefix: "/s", Size: 1e5})
	l.BA.BlackHole(true)
	f := n.AddFetch(a, fixed("/s/x", 4))
	n.At(100*ms, l.Up)
	run(t, n, 5*time.Second)
	if !f.Done() || f.Err() != nil {
		t.Errorf("%v, %+v", f.Err(), f.Stats())
	}
}
