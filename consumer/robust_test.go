package consumer

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// A host that was stopped for longer than a fetch waits for an answer (Ctrl-Z, a
// frozen container) goes on, whether what it had asked for has been lost or not.
func TestStoppedHost(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		o := newOrigin(2_000_000, 1000)
		n := newNet(t, 1e6, 50_000)
		fl := n.add(o, 5*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
		n.run(500 * ms)
		if arrives {
			n.queue = n.queue[:1] // the first is read before the timers look
		} else {
			n.queue = nil
		}
		n.now = n.now.Add(10 * time.Minute)
		n.run(time.Duration(n.now) + time.Minute)
		fl.ok()
	}
}

// Nacks NoRoute after a long pause of the output are judged by how long they have
// come, not by the pause.
func TestNoRouteAfterPause(t *testing.T) {
	o := newOrigin(2_000_000, 1000)
	n := newNet(t, 1e6, 50_000)
	cfg := cfgFor(o)
	cfg.ReorderBytes = 100_000
	fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
	n.run(500 * ms)
	fl.sink.busy = true
	n.run(10 * time.Minute)
	if fl.f.inflight() != 0 {
		t.Fatalf("%d in flight beside a full buffer", fl.f.inflight())
	}
	n.now = ndn.Time(10 * time.Minute)
	fl.nack = func(now ndn.Time, _ *ndn.Interest) (ndn.NackReason, bool) {
		return ndn.NackNoRoute, now < ndn.Time(10*time.Minute+30*time.Second)
	}
	fl.sink.busy = false
	fl.f.Drain(n.now)
	fl.pump(n.now)
	n.run(12 * time.Minute)
	fl.ok()
}

// BBR, which gives way to no loss, asks a black hole for little: four Interests per
// timeout.
func TestBbrInBlackHole(t *testing.T) {
	for _, pipe := range []string{"bbr", "bbr-gc", "bbq", "bbr-acw"} {
		n := newBell(t, 10e6, 200_000, 1)
		fl := n.add(pipe, cc.Params{Seed: 1}, 20*ms, 1000, Config{})
		n.run(2 * time.Second)
		fl.lose = func(uint64) bool { return true }
		n.run(2*time.Second + 100*ms) // less than a timeout
		before := fl.f.stats.Interests
		n.run(32 * time.Second)
		if got := fl.f.stats.Interests - before; got < 20 || got > 100 {
			t.Errorf("%s: %d Interests in 30 s", pipe, got)
		}
		fl.lose = nil
		n.run(37 * time.Second)
		n.mark()
		n.run(39 * time.Second)
		if util := fl.got(n.now) / n.rate; util < 0.9 {
			t.Errorf("%s: %.3f of the link after it", pipe, util)
		}
	}
}

// A window that a configured rate leaves unused does not grow.
func TestConfiguredRateLimitsWindow(t *testing.T) {
	for _, pipe := range []string{"aimd", "reno", "cubic", "vegas"} {
		for _, set := range []func(*Config){
			func(c *Config) { c.MaxRate = 1e6 },
			func(c *Config) { c.Pacing = 1e6 },
		} {
			o := newOrigin(10_000_000, 1000)
			n := newNet(t, 10e6, 100_000)
			cfg := cfgFor(o)
			set(&cfg)
			fl := n.add(o, 10*ms, cfg, controller(t, pipe, cc.Params{}), nil)
			n.run(5 * time.Second)
			if w := fl.f.Stats().Cwnd; w < 19 || w > 40 {
				t.Errorf("%s: a window of %.0f packets where 20 are used", pipe, w)
			}
		}
	}
}
