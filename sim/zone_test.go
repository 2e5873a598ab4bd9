package sim

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategies"
)

// TestSafeTime of the middle of three nodes in a row is when the first packet
// can reach it, by what its neighbours have to do and by what may reach them
// before.
func TestSafeTime(t *testing.T) {
	const ms = time.Millisecond
	n := New(Config{Strategies: strategies.Builtin(), Batch: true})
	a, b, c := n.AddNode("a", NodeConfig{}), n.AddNode("b", NodeConfig{}), n.AddNode("c", NodeConfig{})
	n.Connect(a, b, LinkConfig{Params: Params{Delay: 5 * ms, Jitter: ms}})
	n.Connect(b, c, LinkConfig{Params: Params{Delay: 20 * ms}})
	n.zones.measure()
	now := Epoch
	check := func(what string, want time.Duration) {
		t.Helper()
		if got := b.zone.safe(now).Sub(now); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if b.zone.soon != 4*ms {
		t.Errorf("anything may come after %v", b.zone.soon)
	}
	check("nobody has anything to do", 8*ms) // b sends to a, which answers at once
	a.zone.scheduler.wake(a.id, now.Add(3*ms))
	check("a acts soon", 7*ms)
	c.zone.scheduler.wake(c.id, now)
	check("c acts now, but is far", 7*ms)
	a.zone.scheduler.wake(a.id, now)
	check("a acts now", 4*ms)
	if got := a.zone.safe(ndn.Never); got != ndn.Never {
		t.Errorf("after the end: %v", got)
	}
}
