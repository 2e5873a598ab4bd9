package fw

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

func newNetErr(cfg Config) (*Shard, error) {
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		return nil, err
	}
	return New(cfg, set, &net{})
}

func TestNoRoute(t *testing.T) {
	n := newNet(t, Config{})
	n.interest(local1, "/a", 7, token(1, 2, 3, 4))
	d := n.want("N300 /a NoRoute")[0]
	if d.p.Interest.Nonce != 7 || !bytes.Equal(d.p.PitToken, []byte{1, 2, 3, 4}) {
		t.Fatalf("%+v", d.p)
	}
	n.interest(multi, "/a", 8)
	n.want()
	n.idle()
}

// Nacks are collected from all upstreams, and the least severe goes down.
func TestNacksAreCollected(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote2, 2)
	n.interest(local1, "/a", 1, token(1))
	first := n.want("I401 /a")[0]
	n.after(20 * ms)
	n.interest(local1, "/a", 2, token(2))
	second := n.want("I402 /a")[0]
	n.nackFor(first, ndn.NackCongestion)
	n.want()
	n.nackFor(first, ndn.NackNoRoute) // the same again is nothing
	n.nackFor(second, ndn.NackNoRoute)
	d := n.want("N300 /a Congestion")[0]
	if d.p.Interest.Nonce != 2 || !bytes.Equal(d.p.PitToken, []byte{2}) {
		t.Fatalf("%+v", d.p)
	}
	if c := n.s.Counters(); c.UnknownNacks != 1 || c.PitEntries != 0 {
		t.Fatalf("%+v", c)
	}
	n.idle()
}

// With one upstream left, which itself waits for us, it gets the Nack.
func TestMutualWaitEndsWithNack(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote2, 2).strategy("/a", "/localhost/nfd/strategy/multicast")
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a", "I402 /a")
	n.interest(remote2, "/a", 2)
	n.want()
	n.nackFor(up[0], ndn.NackNoRoute)
	n.want("N402 /a NoRoute")
	n.nackFor(up[1], ndn.NackNoRoute)
	n.want("N300 /a NoRoute")
	n.idle()
}

func TestNacksThatAnswerNothing(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/m", multi, 1)
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a")[0]
	wrong := up
	wrong.to = remote2 // not sent there
	n.nackFor(wrong, ndn.NackNoRoute)
	wrong = up
	wrong.wire = ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a"), Nonce: 99})
	n.nackFor(wrong, ndn.NackNoRoute) // another Nonce
	wrong.wire = ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/z"), Nonce: 1})
	n.nackFor(wrong, ndn.NackNoRoute) // another name, with our token
	wrong.wire = ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a"), OmitNonce: true})
	n.nackFor(wrong, ndn.NackNoRoute)
	n.interest(local1, "/m", 1)
	n.nackFor(n.want("I501 /m")[0], ndn.NackNoRoute)
	n.want()
	if c := n.s.Counters(); c.UnknownNacks != 4 || c.NackMultiAcc != 1 {
		t.Fatalf("%+v", c)
	}
	// Without a token the Nack finds its entry by name.
	n.receive(remote1, up.wire, &ndn.LpFields{IsNack: true, NackReason: ndn.NackDuplicate})
	n.want("N300 /a Duplicate")
}

func TestGaveUpCountsAsCongestion(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1)
	up := n.want("I401 /a")[0]
	n.s.GaveUp(n.now, remote2, up.wire)
	n.s.GaveUp(n.now, remote1, []byte{1, 2, 3})
	n.want()
	n.s.GaveUp(n.now, remote1, up.wire)
	n.want("N300 /a Congestion")
	if c := n.s.Counters(); c.GaveUp != 3 || c.GaveUpUnknown != 2 {
		t.Fatalf("%+v", c)
	}
	n.idle()
}

func TestFaceRemoval(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/b", remote1, 1).route("/a", remote2, 2)
	n.interest(local1, "/a", 1)
	n.interest(local1, "/b", 1)
	n.interest(local2, "/b", 2)
	n.want("I401 /a", "I401 /b")
	n.s.RemoveFace(n.now, remote1)
	// What can go another way goes there at once, with another Nonce.
	if up := n.want("I402 /a")[0]; up.p.Interest.Nonce == 1 {
		t.Fatal("the old Nonce")
	}
	n.s.RemoveFace(n.now, local1)
	n.data(remote2, "/a")
	n.want()
	if c := n.s.Counters(); c.FibEntries != 1 || c.PitEntries != 1 {
		t.Fatalf("%+v", c)
	}
	// The new route serves what still waits.
	n.route("/b", remote3, 1)
	n.want("I403 /b")
	n.data(remote3, "/b")
	n.want("D301 /b")
	n.data(remote1, "/b")
	if n.s.Counters().BadFace != 1 {
		t.Fatal("a removed face still receives")
	}
	if err := n.s.SetNextHop(n.now, ndn.MustName("/c"), remote1, 1); !errors.Is(err, ErrNoFace) {
		t.Fatal(err)
	}
	n.idle()
}

// TestFaceRemovalInParts: a face that leaves is as good as gone from the first
// part on.
func TestFaceRemovalInParts(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote2, 2)
	for i := range 9 {
		n.route(fmt.Sprintf("/b/%d", i), remote1, 1)
	}
	n.interest(local1, "/a", 1)
	n.interest(remote1, "/a/c", 2)
	n.want("I401 /a", "I402 /a/c")
	if n.s.RemoveFacePart(n.now, remote1, 4) {
		t.Fatal("gone with 10 next hops")
	}
	n.want("I402 /a")
	n.data(remote2, "/a/c") // was for the face that leaves
	n.want()
	n.s.FaceUp(n.now, remote1)
	n.want()
	if err := n.s.SetNextHop(n.now, ndn.MustName("/d"), remote1, 1); !errors.Is(err, ErrNoFace) {
		t.Fatal(err)
	}
	n.data(remote1, "/a")
	n.interest(remote1, "/a/d", 3)
	n.want()
	if c := n.s.Counters(); c.BadFace != 2 || c.Routes != 7 {
		t.Fatalf("%+v", c)
	}
	for i := range 9 {
		n.interest(local1, fmt.Sprintf("/b/%d", i), 4)
	}
	for _, s := range n.take() {
		if s.p.Kind != ndn.KindNack {
			t.Fatalf("sent to %d", s.to)
		}
	}
	if err := n.s.AddFace(n.now, FaceInfo{ID: remote1}); !errors.Is(err, ErrFaceUsed) {
		t.Fatal(err)
	}
	parts := 1
	for !n.s.RemoveFacePart(n.now, remote1, 4) {
		parts++
	}
	if c := n.s.Counters(); parts != 2 || c.Routes != 1 || !n.s.RemoveFacePart(n.now, remote1, 4) {
		t.Fatalf("%d parts, %+v", parts, c)
	}
	n.data(remote2, "/a")
	n.want("D300 /a")
	n.idle()
}

func TestFaceDownAndUp(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1)
	n.want("I401 /a")
	n.s.FaceDown(n.now, remote1)
	n.want()
	n.interest(local2, "/a/b", 2)
	n.want("N301 /a/b NoRoute")
	n.after(100 * ms)
	n.s.FaceUp(n.now, remote1)
	n.want("I401 /a")
	n.data(remote1, "/a")
	n.want("D300 /a")
	n.idle()
}

func TestStrategyChange(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote2, 2)
	for i := range uint32(100) {
		n.interest(local1, "/a/"+strconv.Itoa(int(i)), i)
	}
	if len(n.take()) != 100 {
		t.Fatal("not forwarded")
	}
	n.strategy("/a", "/localhost/nfd/strategy/multicast/v=5/retx-suppression-initial~20")
	var got []string
	n.s.EachStrategy(func(p, s ndn.Name) bool { got = append(got, p.String()+" "+s.String()); return true })
	want := "/ /localhost/nfd/strategy/best-route/v=5,/a /localhost/nfd/strategy/multicast/v=5/retx-suppression-initial~20"
	if strings.Join(got, ",") != want {
		t.Fatalf("%q", got)
	}
	n.after(15 * ms)
	n.interest(local1, "/a/0", 1000) // suppressed towards remote1 for 20 ms
	n.want("I402 /a/0")
	for i := range 100 {
		n.data(remote1, "/a/"+strconv.Itoa(int(i)))
	}
	if len(n.take()) != 100 {
		t.Fatal("the change lost Interests")
	}
	if err := n.s.UnsetStrategy(n.now, ndn.MustName("/a")); err != nil {
		t.Fatal(err)
	}
	if err := n.s.UnsetStrategy(n.now, ndn.MustName("/a")); !errors.Is(err, ErrNoChoice) {
		t.Fatal(err)
	}
	n.interest(local1, "/a/x", 1)
	n.want("I401 /a/x")
	for name, msg := range map[string]string{
		"/localhost/nfd/strategy/nope":               "multicast/v=5",
		"/localhost/nfd/strategy/best-route/v=9":     "best-route/v=5",
		"/localhost/nfd/strategy/best-route/v=5/a~1": "retx-suppression-initial",
		"/localhost/nfd/strategy/best-route/v=5/a":   "name~value",
		"/other": "best-route/v=5",
	} {
		if _, err := n.s.SetStrategy(n.now, nil, ndn.MustName(name)); err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.idle()
}
