package fw

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

func TestUnsolicitedNames(t *testing.T) {
	for _, u := range []Unsolicited{DropAll, AdmitLocal, AdmitNetwork, AdmitAll} {
		if got, err := ParseUnsolicited(u.String()); err != nil || got != u {
			t.Errorf("%s: %v %v", u, got, err)
		}
	}
	if u, err := ParseUnsolicited(""); err != nil || u != DropAll {
		t.Error(u, err)
	}
	if _, err := ParseUnsolicited("admit"); !errors.Is(err, ErrUnsolicited) || !strings.Contains(err.Error(), "admit-network") {
		t.Error(err)
	}
}

func TestRoutesAreListed(t *testing.T) {
	n := newNet(t, Config{MaxRoutes: 3}).route("/a", remote2, 7).route("/a", remote1, 7).route("/", remote1, 1)
	if err := n.s.SetNextHop(n.now, ndn.MustName("/b"), remote1, 1); !errors.Is(err, table.ErrFull) {
		t.Fatal(err)
	}
	n.route("/a", remote2, 3)
	var got []string
	n.s.EachRoute(func(e *table.FibEntry) bool {
		for _, h := range e.Hops {
			got = append(got, fmt.Sprintf("%s %d %d", e.Prefix, h.Face, h.Cost))
		}
		return true
	})
	slices.Sort(got)
	if want := []string{"/ 401 1", "/a 401 7", "/a 402 3"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if n.s.RemoveNextHop(n.now, ndn.MustName("/a"), remote3) || !n.s.RemoveNextHop(n.now, ndn.MustName("/a"), remote2) {
		t.Fatal("remove")
	}
}

func TestFaceIDs(t *testing.T) {
	n := newNet(t, Config{})
	const big ndn.FaceID = 1 << 40
	for _, id := range []ndn.FaceID{0, local1} {
		if err := n.s.AddFace(n.now, FaceInfo{ID: id}); !errors.Is(err, ErrFaceUsed) {
			t.Errorf("%d: %v", id, err)
		}
	}
	if err := n.s.AddFace(n.now, FaceInfo{ID: big, Local: true}); err != nil {
		t.Fatal(err)
	}
	n.route("/a", big, 1)
	n.interest(big, "/a", 1)
	n.interest(local1, "/a", 2)
	got := n.take()
	if got[0].to != big || got[0].p.Kind != ndn.KindNack || got[1].to != big || got[1].p.Kind != ndn.KindInterest {
		t.Fatalf("%+v", got)
	}
	n.s.RemoveFace(n.now, big)
	n.s.RemoveFace(n.now, big)
	n.s.FaceDown(n.now, big)
	n.interest(local1, "/a/b", 2)
	n.want("N300 /a/b NoRoute")
	n.idle()
}

func TestUnknownDefaultStrategy(t *testing.T) {
	if _, err := newNetErr(Config{DefaultStrategy: ndn.MustName("/x")}); !errors.Is(err, strategy.ErrUnknown) {
		t.Fatal(err)
	}
}

func TestContextAccessors(t *testing.T) {
	n, p := probed(t, Config{Seed: 3})
	var rands []uint64
	p.onInterest = func(c *strategy.Context, ev *strategy.Interest) {
		rands = append(rands, c.Rand())
		if c.Now() != n.now || !c.Prefix().Equal(ndn.MustName("/a")) || c.Strategy().String() != "/localhost/nfd/strategy/probe/v=1" {
			t.Error("context")
		}
		if in := c.Ins(); len(in) != 1 || in[0].Face != local1 || len(c.Outs()) != 0 || c.PendingOut() {
			t.Error("records")
		}
		c.Send(remote2)
		if o := c.Outs(); len(o) != 1 || c.Out(remote2) != &o[0] || c.Out(remote1) != nil || !c.PendingOut() {
			t.Error("records after sending")
		}
	}
	p.onHop = func(c *strategy.Context, _ *strategy.NextHop) {
		if c.HasEntry() {
			return
		}
		if c.Ins() != nil || c.Outs() != nil || c.Out(remote1) != nil || c.NextHops() != nil || c.Prefix() != nil ||
			c.Send(remote1) != strategy.RefusedNoEntry || c.Nack(local1, 0) || c.Arm(ms, 1).IsSet() || c.Marked() || c.Link() != nil {
			t.Error("an event without an entry")
		}
		c.NackAll(0)
		c.PassNacks()
	}
	n.interest(local1, "/a/1", 1)
	n.s.FaceDown(n.now, remote1)
	m, q := probed(t, Config{Seed: 3})
	q.onInterest = func(c *strategy.Context, _ *strategy.Interest) { rands = append(rands, c.Rand()) }
	m.interest(local1, "/a/1", 1)
	if len(rands) != 2 || rands[0] != rands[1] {
		t.Errorf("%v", rands)
	}
}
