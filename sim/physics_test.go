package sim_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

const ms = time.Millisecond

func newNet(seed uint64) *sim.Network {
	return sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()})
}

// within fails the test unless got is want within a fraction.
func within(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) || math.IsNaN(got) {
		t.Errorf("%s: %g, want %g within %g %%", what, got, want, 100*part)
	}
}

// fixed is a fetch with a constant window.
func fixed(name string, window float64) sim.FetchConfig {
	return sim.FetchConfig{Name: name, Controller: "fixed", Params: cc.Params{Window: window}}
}

func run(t *testing.T, n *sim.Network, until time.Duration) {
	t.Helper()
	if err := n.Run(until); err != nil {
		t.Fatal(err)
	}
}

// pair is a client and a server with one link between them.
func pair(n *sim.Network, l sim.LinkConfig, p sim.ProducerConfig) (a, b *sim.Node, link *sim.Link) {
	a, b = n.AddNode("client", sim.NodeConfig{}), n.AddNode("server", sim.NodeConfig{})
	link = n.Connect(a, b, l)
	n.AddProducer(b, p)
	return a, b, link
}

// TestThroughputIsTheRate: a full window brings payload and headers at exactly
// the rate of the link, and the object arrives whole.
func TestThroughputIsTheRate(t *testing.T) {
	for _, rate := range []int64{1e6, 40e6, 1e9} {
		n := newNet(1)
		size := rate / 8 * 2 // two seconds
		a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: 10 * ms, Queue: 4 << 20}},
			sim.ProducerConfig{Prefix: "/s", Size: size})
		c := fixed("/s/file", max(4, 1.5*float64(sim.BDP(rate, 20*ms))/8000))
		want := make([]byte, 8000)
		off := uint64(0)
		c.OnPiece = func(p *consumer.Piece) {
			w := want[:len(p.Content)]
			sim.Content(w, off)
			if !bytes.Equal(w, p.Content) {
				t.Fatalf("content at %d is wrong", off)
			}
			off += uint64(len(w))
		}
		f := n.AddFetch(a, c)
		run(t, n, 10*time.Second)
		if f.Err() != nil || !f.Done() || off != uint64(size) {
			t.Fatalf("%v: %d of %d bytes, %+v", f.Err(), off, size, f.Stats())
		}
		wire := float64(l.BA.Counters().OutBytes) * 8 / f.Elapsed().Seconds()
		within(t, fmt.Sprint("wire rate of ", rate), wire, float64(rate), 0.02)
		goodput := float64(size) * 8 / f.Elapsed().Seconds()
		within(t, fmt.Sprint("goodput of ", rate), goodput, float64(rate), 0.035)
		if s := f.Stats(); s.Retransmissions != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestRTTIsExactWithoutLoad: with one Interest in flight, an RTT is twice the
// delay of every link and the serialisation of both packets at each.
func TestRTTIsExactWithoutLoad(t *testing.T) {
	n := newNet(1)
	const hops, rate = 4, 10e6
	nodes := n.Chain("n", hops+1, sim.NodeConfig{}, sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: 3 * ms}})
	n.AddProducer(nodes[hops], sim.ProducerConfig{Prefix: "/s", Size: 400_000, Segment: 1000})
	var data, interest float64 // bytes on the first link
	c := fixed("/s/file", 1)
	c.Consumer = func(cfg *consumer.Config) { cfg.PathTags = false }
	f := n.AddFetch(nodes[0], c)
	run(t, n, time.Minute)
	for _, l := range n.Links() {
		data += float64(l.BA.Counters().OutBytes) / float64(l.BA.Counters().OutPackets)
		interest += float64(l.AB.Counters().OutBytes) / float64(l.AB.Counters().OutPackets)
	}
	s := f.Stats()
	want := 2*hops*3*ms + time.Duration((data+interest)*8/rate*float64(time.Second))
	if !f.Done() || s.RTTAvg-want > 2*time.Microsecond || want-s.RTTAvg > 2*time.Microsecond {
		t.Errorf("%v, RTT %v on average, want %v", f.Err(), s.RTTAvg, want)
	}
}

// TestLossIsWhatWasAsked for both kinds of loss, and the fetch repairs it.
func TestLossIsWhatWasAsked(t *testing.T) {
	for _, p := range []sim.Params{
		{Loss: 0.01},
		{Burst: sim.GilbertElliott{ToBad: 0.01, ToGood: 0.5, LossBad: 0.7}},
	} {
		p.Rate, p.Delay, p.Queue = 100e6, 5*ms, 1<<20
		n := newNet(3)
		a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Rate: 100e6, Delay: 5 * ms}, Back: &p},
			sim.ProducerConfig{Prefix: "/s", Size: 24e6, Segment: 1000})
		f := n.AddFetch(a, fixed("/s/file", 64))
		run(t, n, time.Minute)
		c := l.BA.Counters()
		within(t, "loss", float64(c.LossDrops)/float64(c.InPackets), p.MeanLoss(), 0.15)
		if s := f.Stats(); f.Err() != nil || !f.Done() || s.Bytes != 24e6 || int64(s.Retransmissions) < c.LossDrops {
			t.Errorf("%v %+v", f.Err(), s)
		}
	}
}

// TestQueueIsBounded: the queue never holds more than its limit, and a window
// beyond it loses packets.
func TestQueueIsBounded(t *testing.T) {
	n := newNet(1)
	p := sim.Params{Rate: 10e6, Delay: 5 * ms, Queue: 50_000}
	a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Delay: 5 * ms}, Back: &p},
		sim.ProducerConfig{Prefix: "/s", Size: 10e6})
	probe := l.BA.Probe(ms)
	f := n.AddFetch(a, fixed("/s/file", 100))
	run(t, n, 20*time.Second)
	most := int64(0)
	for _, s := range probe.Samples() {
		most = max(most, s.Queue)
	}
	if most > 50_000 || most < 40_000 || l.BA.Counters().QueueDrops == 0 || !f.Done() || f.Err() != nil {
		t.Errorf("at most %d bytes queued, %+v, %v", most, l.BA.Counters(), f.Err())
	}
}

// TestHalfDuplexSharesTheRate: what both directions carry together is the
// rate, and it is less for each than with a medium of its own.
func TestHalfDuplexSharesTheRate(t *testing.T) {
	n := newNet(1)
	a, b := n.AddNode("a", sim.NodeConfig{}), n.AddNode("b", sim.NodeConfig{})
	l := n.Connect(a, b, sim.LinkConfig{Params: sim.Params{Rate: 1e6, Delay: ms, Queue: 1 << 20}, HalfDuplex: true})
	n.AddProducer(a, sim.ProducerConfig{Prefix: "/a", Size: 10e6, Segment: 1000})
	n.AddProducer(b, sim.ProducerConfig{Prefix: "/b", Size: 10e6, Segment: 1000})
	n.AddFetch(a, fixed("/b/file", 20))
	n.AddFetch(b, fixed("/a/file", 20))
	run(t, n, 20*time.Second)
	x, y := float64(l.AB.Counters().OutBytes), float64(l.BA.Counters().OutBytes)
	within(t, "sum of both directions", (x+y)*8/20, 1e6, 0.01)
	within(t, "one of them", x, y, 0.05)
}

// TestJitterAloneLosesNothing (E9): with a jitter of 1 % of the RTT and the
// default reordering tolerance nothing is asked for twice.
func TestJitterAloneLosesNothing(t *testing.T) {
	n := newNet(1)
	p := sim.Params{Rate: 40e6, Delay: 12500 * time.Microsecond, Noise: 250 * time.Microsecond, Reorder: true, Queue: 1 << 20}
	a, _, _ := pair(n, sim.LinkConfig{Params: p}, sim.ProducerConfig{Prefix: "/s", Size: 40e6, Segment: 1000})
	f := n.AddFetch(a, fixed("/s/file", 120))
	run(t, n, time.Minute)
	if s := f.Stats(); !f.Done() || f.Err() != nil || s.Retransmissions != 0 {
		t.Errorf("%v %+v", f.Err(), s)
	}
}

// sends collects the times at which the first segment is asked for.
type sends struct{ at []time.Duration }

func (s *sends) Trace(e *consumer.TraceEvent) {
	if e.Kind == consumer.TraceSend && e.Segment == 0 {
		s.at = append(s.at, e.Now.Sub(sim.Epoch))
	}
}

// TestBlackHoleBacksOff (E9): a path that swallows everything is asked after
// RTO, 2 RTO, 4 RTO and so on.
func TestBlackHoleBacksOff(t *testing.T) {
	n := newNet(1)
	a, _, l := pair(n, sim.LinkConfig{Params: sim.Params{Delay: 5 * ms}}, sim.ProducerConfig{Prefix: "/s", Size: 1e6})
	l.BlackHole()
	var s sends
	c := fixed("/s/file", 1)
	c.Tracer = &s
	c.Consumer = func(cfg *consumer.Config) { cfg.RTT.MaxBackoff = time.Minute }
	f := n.AddFetch(a, c)
	run(t, n, 20*time.Second)
	want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}
	if len(s.at) != len(want) || f.Done() {
		t.Fatalf("asked at %v", s.at)
	}
	for i := range want {
		if d := s.at[i] - want[i]; d < 0 || d > ms {
			t.Errorf("asked at %v, want %v", s.at, want)
			break
		}
	}
}

// TestShapedLink: a window much larger than the link meets Nacks Congestion
// instead of a full queue, and nothing is lost.
func TestShapedLink(t *testing.T) {
	n := newNet(1)
	a, _, l := pair(n, sim.LinkConfig{
		Params: sim.Params{Rate: 10e6, Delay: 10 * ms, Queue: 50_000}, Shaping: &lp.Shaping{Queue: 20},
	}, sim.ProducerConfig{Prefix: "/s", Size: 5_000_000, Segment: 1000})
	f := n.AddFetch(a, sim.FetchConfig{Name: "/s/file", Controller: "reno"})
	run(t, n, 10*time.Second)
	s, c := f.Stats(), l.BA.Counters()
	if !f.Done() || f.Err() != nil || c.QueueDrops > 0 || s.Nacks == 0 {
		t.Errorf("%v, %d drops, %+v", f.Err(), c.QueueDrops, s)
	}
	if u := float64(c.OutBytes) * 8 / 10e6 / f.Elapsed().Seconds(); u < 0.9 {
		t.Errorf("%.3f of the link is used", u)
	}
	if q := l.AB.Service().Counters(); q.OutShapeFull == 0 || q.OutShaped == 0 || q.OutShapeLost > 0 {
		t.Errorf("%+v", q)
	}
}
