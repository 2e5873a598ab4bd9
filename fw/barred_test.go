package fw

import (
	"testing"

	"ndnpop/ndn"
	"ndnpop/strategy"
)

// TestBarred: what keeps this Interest alone from a next hop is told from what keeps
// all from it.
func TestBarred(t *testing.T) {
	n, p := probed(t, Config{})
	n.route("/a", local2, 3)
	var got [4]bool
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		for i, f := range []ndn.FaceID{remote1, remote2, local2, remote3} {
			got[i] = c.Barred(f)
		}
	}
	p.onTimer = func(c *strategy.Context, _ *strategy.Timer) { p.onInterest(c, nil) }
	want := func(w [4]bool) {
		t.Helper()
		if got != w {
			t.Fatalf("%v, want %v", got, w)
		}
	}
	n.interest(remote1, "/a/1", 1)
	want([4]bool{true})
	n.interest(remote1, "/a/2", 1, hop(1))
	want([4]bool{true, true})
	n.s.FaceDown(n.now, remote2)
	n.interest(remote1, "/a/3", 1, hop(1))
	want([4]bool{true})
	n.s.FaceUp(n.now, remote2)
	n.s.RemoveNextHop(n.now, ndn.MustName("/a"), remote1)
	n.interest(remote1, "/a/4", 1)
	want([4]bool{})
	n.strategy("/localhop", "/localhost/nfd/strategy/probe")
	n.route("/localhop", remote2, 1).route("/localhop", local2, 1)
	n.interest(remote1, "/localhop/1", 1)
	want([4]bool{1: true})

	ask := p.onInterest
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) { c.Arm(ms, 0) }
	n.interest(remote2, "/a/5", 1)
	p.onInterest = ask
	n.after(2 * ms)
	want([4]bool{1: true})
	p.onHop = func(c *strategy.Context, ev *strategy.NextHop) {
		if !c.HasEntry() && c.Barred(remote1) {
			t.Error("barred without an Interest")
		}
	}
	n.s.FaceDown(n.now, remote1)
}
