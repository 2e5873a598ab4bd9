package consumer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// throughput runs one flow with random loss for some time and returns bytes
// of content per second.
func throughput(t *testing.T, pipe string, rate, buffer float64, rtt time.Duration, loss float64, seed uint64, d time.Duration) (float64, *flow) {
	t.Helper()
	o := newOrigin(1400, 1400)
	o.total = 600_000
	n := newNet(t, rate, buffer)
	fl := n.add(o, rtt/2, DefaultConfig(o.name), controller(t, pipe, cc.Params{Seed: seed}), nil)
	fl.sink.discard = true
	r := rand.New(rand.NewPCG(seed, 7))
	fl.loseData = func(uint64, int) bool { return r.Float64() < loss }
	warm := d / 5
	at := 0
	n.at(ndn.Time(warm), func(ndn.Time) { at = fl.sink.bytes })
	n.run(d)
	return float64(fl.sink.bytes-at) / (d - warm).Seconds(), fl
}

// Reno follows the law of Mathis et al. (1997): 1.22 S / (RTT sqrt p).
func TestRenoMathis(t *testing.T) {
	for _, p := range []float64{0.005, 0.01, 0.02} {
		sum := 0.0
		for seed := range uint64(3) {
			v, fl := throughput(t, "reno", 0, 0, 40*ms, p, seed, 30*time.Second)
			if fl.f.Err() != nil {
				t.Fatal(fl.f.Err())
			}
			sum += v / 3
		}
		law := 1.22 * 1400 / (0.04 * math.Sqrt(p))
		if sum < 0.8*law || sum > 1.3*law {
			t.Errorf("loss %v: %.0f B/s, the law says %.0f", p, sum, law)
		}
	}
}

// Whatever fills a bottleneck of its own fills it.
func TestUtilisation(t *testing.T) {
	for _, pipe := range []string{"reno", "cubic"} {
		v, fl := throughput(t, pipe, 1.25e6, 125_000, 100*ms, 0, 1, 30*time.Second)
		wire := v * (1400 + 60) / 1400
		if wire < 0.9*1.25e6 {
			t.Errorf("%s: %.0f of 1250000 B/s", pipe, wire)
		}
		if s := fl.f.Stats(); s.Timeouts > 0 {
			t.Errorf("%s: %d timeouts", pipe, s.Timeouts)
		}
	}
}

// Marks keep the queue from overflowing (NFD's threshold of 64 KiB).
func TestMarksInsteadOfLosses(t *testing.T) {
	for _, pipe := range []string{"reno", "cubic"} {
		o := newOrigin(20_000_000, 8000)
		n := newNet(t, 12.5e6, 600_000)
		n.markAt = 64 << 10
		fl := n.add(o, 20*ms, cfgFor(o), controller(t, pipe, cc.Params{InitSsthresh: 60}), nil)
		n.run(time.Minute)
		fl.ok()
		s := fl.f.Stats()
		if n.drops != 0 || s.Retransmissions != 0 || s.Marks == 0 || s.WindowDecreases == 0 {
			t.Errorf("%s: drops %d, %+v", pipe, n.drops, s)
		}
		o.requests = 0
		cfg := cfgFor(o)
		cfg.IgnoreMarks = true
		n = newNet(t, 12.5e6, 600_000)
		n.markAt = 64 << 10
		fl = n.add(o, 20*ms, cfg, controller(t, pipe, cc.Params{Options: map[string]string{"hystart": "false"}}), nil)
		n.run(time.Minute)
		fl.ok()
		if n.drops == 0 {
			t.Errorf("%s: marks were not ignored", pipe)
		}
	}
}

// Hits of a cache on the way do not disturb the control of the path behind it
// when path tags tell them apart.
func TestCacheMixture(t *testing.T) {
	for _, pipe := range []string{"reno", "cubic"} {
		for _, h := range []float64{0.1, 0.5} {
			o := newOrigin(1400, 1400)
			o.total = 300_000
			n := newNet(t, 20e6/8, 125_000)
			fl := n.add(o, 25*ms, DefaultConfig(o.name), controller(t, pipe, cc.Params{}), nil)
			fl.sink.discard = true
			r := rand.New(rand.NewPCG(1, 1))
			fl.tag = func(uint64) (ndn.PathTag, time.Duration, bool) {
				return ndn.PathTag{Tag: 77, Hops: 1, Flags: ndn.PathFromCache}, 5 * ms, r.Float64() < h
			}
			at := 0
			n.at(ndn.Time(5*time.Second), func(ndn.Time) { at = fl.sink.bytes })
			n.run(20 * time.Second)
			got := float64(fl.sink.bytes-at) * 1460 / 1400 * 8 / 15e6
			if want := 20 / (1 - h); got < 0.9*want {
				t.Errorf("%s, %.0f %% hits: %.1f Mbit/s of %.1f", pipe, 100*h, got, want)
			}
		}
	}
}

func TestPathTakeover(t *testing.T) {
	o := newOrigin(10_000_000, 1000)
	n := newNet(t, 2e6, 200_000)
	var tr traceLog
	fl := n.add(o, 10*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), &tr)
	fl.tag = func(seg uint64) (ndn.PathTag, time.Duration, bool) {
		return ndn.PathTag{Tag: 42, Hops: 4}, 30 * ms, seg != 1<<40 && seg > 3000
	}
	n.run(time.Minute)
	fl.ok()
	if s := fl.f.Stats(); s.PathChanges != 1 || fl.f.cur.paths.controlled().tag != 42 {
		t.Errorf("%d path changes, controlled %d", s.PathChanges, fl.f.cur.paths.controlled().tag)
	}
	if w := tr.of(TraceSwitch); len(w) != 1 || w[0].Tag != 42 {
		t.Errorf("trace %v", w)
	}
}

func TestPacing(t *testing.T) {
	o := newOrigin(2_000_000, 1000)
	cfg := cfgFor(o)
	cfg.MaxRate = 1e6
	n := newNet(t, 0, 0)
	fl := n.add(o, 5*ms, cfg, controller(t, "fixed", cc.Params{Window: 500}), nil)
	n.run(time.Minute)
	fl.ok()
	if d := fl.elapsed(); d < 2*time.Second || d > 2300*ms {
		t.Errorf("2 MB at 1 MB/s took %v", d)
	}
	// No burst of more than a millisecond's worth.
	for i := 3; i < len(fl.sent); i++ {
		if fl.sent[i].at.Sub(fl.sent[i-3].at) < ms/2 {
			t.Fatalf("four Interests within %v", fl.sent[i].at.Sub(fl.sent[i-3].at))
		}
	}
}
