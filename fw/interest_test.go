package fw

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

func TestInterestAndData(t *testing.T) {
	n := newNet(t, withCS()).route("/a", remote1, 10)
	n.interest(local1, "/a/b", 1, token(1, 2, 3, 4), hop(9))
	up := n.want("I401 /a/b")[0]
	if up.p.Interest.Nonce != 1 || up.p.Interest.HopLimit != 8 || up.p.IncomingFace != local1 || len(up.p.PitToken) != table.TokenLen {
		t.Fatalf("forwarded as %+v", up.p)
	}
	n.data(remote1, "/a/b", func(l *ndn.LpFields) { l.PitToken = up.p.PitToken; l.CongestionMark = 1 })
	d := n.want("D300 /a/b")[0]
	if !bytes.Equal(d.p.PitToken, []byte{1, 2, 3, 4}) || d.p.CongestionMark != 1 || d.p.IncomingFace != remote1 {
		t.Fatalf("delivered with %+v", d.p.LpFields)
	}
	// The second time it comes out of the content store.
	n.interest(local2, "/a/b", 2, token(9))
	d = n.want("D301 /a/b")[0]
	if !bytes.Equal(d.p.PitToken, []byte{9}) || d.p.CongestionMark != 0 || d.p.IncomingFace != ContentStoreFace {
		t.Fatalf("answered with %+v", d.p.LpFields)
	}
	n.idle()
	if c := n.s.Counters(); c.Satisfied != 1 || c.Expired != 0 {
		t.Fatalf("%+v", c)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10)
	w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a"), Nonce: 7, HopLimit: 5})
	w = append(w, 0xf0, 2, 0xaa, 0xbb) // unknown, may be ignored
	w[1] += 4
	n.receive(local1, w, nil)
	w[len(w)-5]-- // hop limit
	if got := n.want("I401 /a")[0].wire; !bytes.Equal(got, w) {
		t.Fatalf("forwarded %x, want %x", got, w)
	}
}

func TestMissingNonceIsAdded(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10)
	n.interest(local1, "/a", 0, noNonce)
	first := n.want("I401 /a")[0].p.Interest
	if !first.HasNonce {
		t.Fatal("no Nonce")
	}
	// Again without a Nonce: a retransmission, and no loop.
	n.after(20 * ms)
	n.interest(local1, "/a", 0, noNonce)
	if again := n.want("I401 /a")[0].p.Interest; again.Nonce == first.Nonce {
		t.Fatal("the same Nonce again")
	}
}

func TestHopLimit(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10).route("/l", local2, 10)
	zero := ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a"), Nonce: 1, HopLimit: 1})
	zero[len(zero)-1] = 0
	n.receive(remote2, zero, nil)
	n.want()
	if n.s.Counters().HopLimit != 1 {
		t.Fatal("hop limit 0 is not counted")
	}
	n.interest(remote2, "/a", 2, hop(1)) // there is a route: nobody hears otherwise
	n.want()
	n.interest(remote1, "/a/back", 5, hop(1)) // it would only go back
	n.want("N401 /a/back NoRoute")
	n.interest(remote2, "/l", 3, hop(1))
	if i := n.want("I301 /l")[0].p.Interest; i.HopLimit != 0 {
		t.Fatalf("hop limit %d", i.HopLimit)
	}
	n.interest(remote2, "/a/255", 4, hop(255))
	if i := n.want("I401 /a/255")[0].p.Interest; i.HopLimit != 254 {
		t.Fatalf("hop limit %d", i.HopLimit)
	}
}

// TestHopLimitOfOneTakesNothingFromOthers: whoever asks for the same with a hop
// limit that ends here neither ends the others' way nor their answer.
func TestHopLimitOfOneTakesNothingFromOthers(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 10)
	n.interest(local1, "/a", 1, hop(9))
	sent := n.want("I401 /a")[0]
	n.interest(remote2, "/a", 2, hop(1))
	n.nackFor(sent, ndn.NackNoRoute)
	n.want("N300 /a NoRoute", "N402 /a NoRoute")
	// What is sent again goes as far as the farthest may.
	n.route("/a", multi, 20)
	n.interest(local1, "/a/1", 3, hop(9))
	n.want("I401 /a/1")
	n.interest(remote2, "/a/1", 4, hop(1))
	n.s.FaceDown(n.now, remote1)
	if i := n.want("I501 /a/1")[0].p.Interest; i.HopLimit != 8 {
		t.Errorf("hop limit %d", i.HopLimit)
	}
	n.s.FaceUp(n.now, remote1)
	// Without one it goes on as far as it can.
	n.interest(remote2, "/a/2", 5, hop(1))
	n.want()
	n.interest(local1, "/a/2", 6)
	n.want("I401 /a/2")
	n.s.FaceDown(n.now, remote1)
	n.want("I501 /a/2")
}

// TestHopLimitKeepsAnswers: a Nack of somebody to whom the Interest went is the
// answer, even where it may go no further.
func TestHopLimitKeepsAnswers(t *testing.T) {
	n := newNet(t, Config{}).route("/l", local2, 10)
	n.interest(remote2, "/l", 1, hop(1))
	n.nackFor(n.want("I301 /l")[0], ndn.NackNoRoute)
	n.want("N402 /l NoRoute")
}

func TestScopes(t *testing.T) {
	n := newNet(t, Config{}).
		route("/localhost/x", remote1, 1).route("/localhost/x", local2, 2).
		route("/localhop/x", remote1, 1).route("/localhop/x", local2, 2)
	n.interest(remote2, "/localhost/x", 1)
	n.want()
	if n.s.Counters().BadScope != 1 {
		t.Fatal("not counted")
	}
	n.interest(local1, "/localhost/x", 2)
	n.want("I301 /localhost/x")
	n.data(remote1, "/localhost/x")
	n.want()
	n.data(local2, "/localhost/x")
	n.want("D300 /localhost/x")
	// /localhop: from a local face anywhere, from a remote one to local ones.
	n.interest(local1, "/localhop/x/1", 3)
	n.want("I401 /localhop/x/1")
	n.interest(remote2, "/localhop/x/2", 4)
	n.want("I301 /localhop/x/2")
	n.data(local2, "/localhop/x/2")
	n.want("D402 /localhop/x/2")
	// A name that only begins with the same bytes has no scope.
	n.route("/localhosts", remote1, 1)
	n.interest(remote2, "/localhosts", 5)
	n.want("I401 /localhosts")
}

func TestRefusedPackets(t *testing.T) {
	n := newNet(t, Config{}).route("/", remote1, 1)
	long := ndn.Name(nil)
	for range 33 {
		long = long.AppendGeneric("x")
	}
	n.interest(local1, long.String(), 1)
	n.interest(9999, "/a", 1)
	n.receive(local1, ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a").AppendGeneric(string(make([]byte, 8800)))}), nil)
	n.want()
	if c := n.s.Counters(); c.BadName != 1 || c.BadFace != 1 || c.BadSize != 1 {
		t.Fatalf("%+v", c)
	}
	n.interest(local1, long.Prefix(32).String(), 1)
	n.take()
	n.receive(remote1, makeData(long.String(), 0, ""), nil)
	n.data(remote1, long.Prefix(32).String())
	n.want("D300 " + long.Prefix(32).String())
	if c := n.s.Counters(); c.BadName != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestParametersDigest(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	params := []byte{byte(ndn.TypeAppParameters), 2, 'h', 'i'}
	sum := sha256.Sum256(params)
	good := ndn.MustName("/a").Append(ndn.Component{Type: ndn.TypeParamsDigest, Value: sum[:]})
	n.receive(local1, ndn.AppendInterest(nil, &ndn.InterestFields{Name: good, Nonce: 1, Params: params}), nil)
	n.want("I401 " + good.String())
	sum[0]++
	bad := ndn.MustName("/a").Append(ndn.Component{Type: ndn.TypeParamsDigest, Value: sum[:]})
	n.receive(local1, ndn.AppendInterest(nil, &ndn.InterestFields{Name: bad, Nonce: 1, Params: params}), nil)
	n.receive(local1, ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a"), Nonce: 1, Params: params}), nil)
	n.want()
	if c := n.s.Counters(); c.BadParams != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestLoops(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 7)
	n.want("I401 /a")
	// It comes back by another way, and from the upstream itself.
	n.interest(remote2, "/a", 7, token(5))
	if d := n.want("N402 /a Duplicate")[0]; !bytes.Equal(d.p.PitToken, []byte{5}) || d.p.Interest.Nonce != 7 {
		t.Fatalf("%+v", d)
	}
	n.interest(remote1, "/a", 7)
	n.want("N401 /a Duplicate")
	n.interest(multi, "/a", 7)
	n.want() // no Nack on a shared link
	// The same Nonce from the same point-to-point face is a retransmission.
	n.after(20 * ms)
	n.interest(local1, "/a", 7)
	n.want("I401 /a")
	// After the entry is gone, the dead nonce list knows it.
	n.data(remote1, "/a")
	n.want("D300 /a")
	n.after(5 * time.Second)
	n.interest(remote2, "/a", 7)
	n.want("N402 /a Duplicate")
	n.after(1001 * ms)
	n.interest(remote2, "/a", 7)
	n.want("I401 /a")
	if c := n.s.Counters(); c.Looped != 4 {
		t.Fatalf("looped %d", c.Looped)
	}
	// The same Nonce again on a shared link is a loop.
	n.interest(multi, "/a/m", 9)
	n.want("I401 /a/m")
	n.interest(multi, "/a/m", 9)
	n.want()
	n.idle()
}

func TestLoopAfterExpiry(t *testing.T) {
	n := newNet(t, withCS()).route("/a", remote1, 1)
	n.interest(local1, "/a", 7, lifetime(100*ms))
	n.want("I401 /a")
	n.after(101 * ms)
	n.interest(remote2, "/a", 7)
	n.want("N402 /a Duplicate")
	if c := n.s.Counters(); c.Expired != 1 || c.PitEntries != 0 {
		t.Fatalf("%+v", c)
	}
}

// Every entry that a Data satisfies puts its Nonces into the dead nonce list.
func TestDeadNoncesOfAllEntries(t *testing.T) {
	n := newNet(t, Config{}).route("/", remote1, 1)
	n.interest(local1, "/a/b", 1)
	n.interest(local1, "/a", 2, prefixed)
	n.interest(local1, "/a/b", 3, fresh)
	n.want("I401 /a/b", "I401 /a", "I401 /a/b")
	n.data(remote1, "/a/b")
	n.want("D300 /a/b", "D300 /a/b", "D300 /a/b")
	n.interest(remote2, "/a/b", 1)
	n.interest(remote2, "/a", 2, prefixed)
	n.interest(remote2, "/a/b", 3, fresh)
	n.want("N402 /a/b Duplicate", "N402 /a Duplicate", "N402 /a/b Duplicate")
}

func TestAggregation(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1, token(1))
	n.want("I401 /a")
	n.after(50 * ms)
	n.interest(local2, "/a", 2, token(2))
	n.interest(remote2, "/a", 3, bytes32)
	n.want()
	n.data(remote1, "/a")
	got := n.want("D300 /a", "D301 /a", "D402 /a")
	if got[0].p.PitToken[0] != 1 || got[1].p.PitToken[0] != 2 || len(got[2].p.PitToken) != 32 {
		t.Fatal("wrong tokens")
	}
	if c := n.s.Counters(); c.Aggregated != 2 || c.Satisfied != 1 {
		t.Fatalf("%+v", c)
	}
	// What was answered is not waiting any more.
	n.data(remote1, "/a")
	n.want()
	n.idle()
}

func bytes32(_ *ndn.InterestFields, l *ndn.LpFields) { l.PitToken = bytes.Repeat([]byte{3}, 32) }

// A downstream whose only upstream is itself must not wait for itself.
func TestNoMutualWaiting(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1)
	n.want("I401 /a")
	n.interest(remote1, "/a", 2)
	n.want("N401 /a NoRoute")
	n.data(remote1, "/a")
	n.want("D300 /a")
}

func TestLatestToken(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1, token(1))
	n.after(ms)
	n.interest(local1, "/a", 2, token(2, 2)) // suppressed, but its token counts
	n.want("I401 /a")
	n.data(remote1, "/a")
	if d := n.want("D300 /a")[0]; !bytes.Equal(d.p.PitToken, []byte{2, 2}) {
		t.Fatalf("token %x", d.p.PitToken)
	}
}

func TestInRecordsExpireAlone(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1, lifetime(100*ms))
	n.interest(local2, "/a", 2, lifetime(time.Second))
	n.want("I401 /a")
	n.after(500 * ms)
	n.data(remote1, "/a")
	n.want("D301 /a")
	n.idle()
}

func TestSuppression(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	sends := 0
	nonce := uint32(1)
	times := []int{}
	for at := 0; at < 800; at++ {
		n.interest(local1, "/a", nonce)
		nonce++
		if len(n.take()) > 0 {
			sends++
			times = append(times, at)
		}
		n.after(ms)
	}
	// Intervals of 10, 20, 40, 80, 160, 250, … ms, each since the last send.
	want := []int{0, 10, 30, 70, 150, 310, 560}
	if len(times) != len(want) {
		t.Fatalf("sent at %v", times)
	}
	for i := range want {
		if times[i] != want[i] {
			t.Fatalf("sent at %v, want %v", times, want)
		}
	}
	if c := n.s.Counters(); c.Suppressed != 800-uint64(len(want)) {
		t.Fatalf("suppressed %d", c.Suppressed)
	}
}

func TestForwardingHint(t *testing.T) {
	n := newNet(t, Config{ProducerRegions: []ndn.Name{ndn.MustName("/isp/pop")}}).
		route("/isp2", remote1, 1).route("/a", remote2, 1).route("/", remote3, 1)
	n.interest(local1, "/a/1", 1, hint("/isp2"))
	n.want("I401 /a/1")
	// The first delegation that has a route, the default route included.
	n.interest(local1, "/a/2", 1, hint("/nowhere", "/isp2"))
	n.want("I403 /a/2")
	// In the producer's region the hint is stripped and the name decides.
	n.interest(local1, "/a/3", 5, hint("/isp"), hop(3))
	up := n.want("I402 /a/3")[0]
	if up.p.Interest.ForwardingHint != nil || up.p.Interest.Nonce != 5 || up.p.Interest.HopLimit != 2 {
		t.Fatalf("%+v", up.p.Interest)
	}
	n.nackFor(up, ndn.NackCongestion)
	// The downstream gets its own Interest back.
	if d := n.want("N300 /a/3 Congestion")[0]; d.p.Interest.ForwardingHint == nil || d.p.Interest.HopLimit != 3 {
		t.Fatalf("%+v", d.p.Interest)
	}
	n.interest(local1, "/a/4", 5, hint("/isp"), noNonce)
	if i := n.want("I402 /a/4")[0].p.Interest; i.ForwardingHint != nil || !i.HasNonce {
		t.Fatalf("%+v", i)
	}
	// Interests that differ in the active hint do not share an entry.
	n.interest(local1, "/a/5", 1)
	n.interest(local2, "/a/5", 2, hint("/isp2"))
	n.want("I402 /a/5", "I401 /a/5")
	if c := n.s.Counters(); c.PitEntries != 5 {
		t.Fatalf("%d entries", c.PitEntries)
	}
}

func TestNextHopFace(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1)
	to := func(f ndn.FaceID) intOpt {
		return link(func(l *ndn.LpFields) { l.NextHopFace, l.HasNextHopFace = f, true })
	}
	n.interest(local1, "/a", 1, to(remote2))
	n.want("I402 /a")
	n.interest(local1, "/b", 1, to(remote2))
	n.want("I402 /b")
	n.interest(local1, "/c", 1, to(9999))
	n.want("N300 /c NoRoute")
	// Only applications on this host choose.
	n.interest(remote3, "/a/r", 1, to(remote2))
	n.want("I401 /a/r")
	n.data(remote2, "/b")
	n.want("D300 /b")
}

func TestLimits(t *testing.T) {
	n := newNet(t, Config{PIT: table.PITConfig{MaxEntries: 6, MaxEntriesPerFace: 4, MaxInRecords: 2, MaxVariants: 2}}).route("/", remote1, 1)
	for i := range 5 {
		n.interest(local1, "/a/"+string(rune('a'+i)), 1)
	}
	n.want("I401 /a/a", "I401 /a/b", "I401 /a/c", "I401 /a/d", "N300 /a/e Congestion")
	n.interest(local2, "/b/a", 1)
	n.interest(local2, "/b/b", 1)
	n.interest(local2, "/b/c", 1)
	n.want("I401 /b/a", "I401 /b/b", "N301 /b/c Congestion")
	n.interest(remote2, "/b/a", 2)
	n.interest(remote3, "/b/a", 3)
	n.want("N403 /b/a Congestion")
	if c := n.s.Counters(); c.PitFace != 1 || c.PitFull != 1 || c.InRecordsFull != 1 {
		t.Fatalf("%+v", c)
	}
	n.idle()
	n.interest(local1, "/v", 1, hint("/1"))
	n.interest(local1, "/v", 2, hint("/2"))
	n.interest(local1, "/v", 3, hint("/3"))
	n.interest(local1, "/v", 4)
	n.want("I401 /v", "I401 /v", "N300 /v Congestion", "I401 /v")
	if c := n.s.Counters(); c.PitVariants != 1 {
		t.Fatalf("%+v", c)
	}
	n.idle()
}

// Large Interests use the limits up faster, so that these bound memory.
func TestLargeInterestsWeighMore(t *testing.T) {
	n := newNet(t, Config{PIT: table.PITConfig{MaxEntries: 20, MaxEntriesPerFace: 12}}).route("/", remote1, 1)
	for range 3 {
		for i, in := range []ndn.FaceID{local1, local1, local1, local2, local2} {
			n.interest(in, "/"+string(rune('a'+i))+"/"+strings.Repeat("x", 8000), 1+uint32(n.now))
		}
		kinds := ""
		for _, s := range n.take() {
			kinds += string("?IDN"[s.p.Kind])
		}
		if kinds != "IINNN" {
			t.Fatal(kinds)
		}
		n.interest(local2, "/small", 2+uint32(n.now))
		n.want("I401 /small")
		n.idle()
	}
	if c := n.s.Counters(); c.PitFace != 3 || c.PitFull != 6 {
		t.Fatalf("%+v", c)
	}
}

// Whoever asks for long lifetimes gets half of the table for long.
func TestLongLifetimesDoNotLockOut(t *testing.T) {
	n := newNet(t, Config{PIT: table.PITConfig{MaxEntries: 20}}).route("/", remote1, 1)
	for i := range 20 {
		n.interest(local1, "/long/"+string(rune('a'+i)), 1, lifetime(5*time.Minute))
	}
	n.take()
	n.interest(local2, "/late", 2)
	n.want("N301 /late Congestion")
	n.after(5 * time.Second)
	n.interest(local2, "/late", 3)
	n.want("I401 /late")
	if c := n.s.Counters(); c.PitEntries != 11 || c.Expired != 10 {
		t.Fatalf("%+v", c)
	}
	n.idle()
}

// A few faces that ask for all they can leave room for others.
func TestFewFacesLeaveRoomForOthers(t *testing.T) {
	n := newNet(t, Config{PIT: table.PITConfig{MaxEntries: 10_000, MaxEntriesPerFace: 10_000}}).route("/", remote1, 1)
	for i := range 10_000 {
		for in := range ndn.FaceID(6) {
			if i == 0 {
				_ = n.s.AddFace(n.now, FaceInfo{ID: 600 + in})
			}
			n.interest(600+in, fmt.Sprintf("/%d/%d", in, i), 1)
		}
	}
	n.take()
	if c := n.s.Counters(); c.PitFull != 0 || c.PitFace == 0 || c.PitEntries < 9000 {
		t.Fatalf("%+v", c)
	}
	for i := range 400 {
		n.interest(local2, fmt.Sprintf("/late/%d", i), 2)
	}
	for _, s := range n.take() {
		if s.p.Kind == ndn.KindNack {
			t.Fatalf("refused: %s", s.p.Interest.Name)
		}
	}
	n.idle()
}

// However many faces wait for the same, what is known of them is bounded.
func TestWaitingFacesAreBounded(t *testing.T) {
	n := newNet(t, Config{PIT: table.PITConfig{MaxEntries: 50}}).route("/", remote1, 1)
	for in := range ndn.FaceID(100) {
		_ = n.s.AddFace(n.now, FaceInfo{ID: 600 + in})
		for i := range 10 {
			n.interest(600+in, fmt.Sprintf("/%d", i), uint32(in), lifetime(5*time.Minute))
		}
	}
	n.take()
	if c := n.s.Counters(); n.s.waiting != 200 || c.PitFull != 800 || c.PitEntries != 10 {
		t.Fatalf("%d in-records, %+v", n.s.waiting, c)
	}
	n.interest(local1, "/other", 1)
	n.want("N300 /other Congestion")
	n.s.RemoveFace(n.now, 600)
	n.interest(local1, "/other", 2)
	n.want("I401 /other")
	n.idle()
	for _, f := range n.s.faces.live {
		if len(f.waits.blocks) > 0 || cap(f.waits.blocks) > keepBlocks {
			t.Fatalf("face %d keeps %d blocks and room for %d", f.ID, len(f.waits.blocks), cap(f.waits.blocks))
		}
	}
}

// Windows that come and go need no more memory than the largest, whichever face
// they are of.
func TestWaitsShareMemory(t *testing.T) {
	const window = 300
	n := newNet(t, Config{}).route("/", remote1, 1)
	for round := range 20 {
		in := ndn.FaceID(600 + round)
		_ = n.s.AddFace(n.now, FaceInfo{ID: in})
		for i := range window {
			n.interest(in, fmt.Sprintf("/%d", i), uint32(round))
		}
		n.after(5 * time.Second) // all expire
		n.take()
		if f := n.s.faces.get(in); f.waits.n != 0 || len(f.waits.blocks) != 0 {
			t.Fatalf("face %d still waits for %d in %d blocks", in, f.waits.n, len(f.waits.blocks))
		}
	}
	if blocks, want := len(n.s.waitPool.free), (window+1<<waitBits-1)>>waitBits; blocks != want {
		t.Errorf("%d blocks were made, want %d", blocks, want)
	}
}

// A face that goes costs what it waits for, not what all others do.
func TestFaceThatGoesCostsItsOwn(t *testing.T) {
	cost := func(others int) time.Duration {
		n := newNet(t, Config{}).route("/", remote1, 1)
		for i := range others {
			n.interest(local1, fmt.Sprintf("/%d", i), 1, lifetime(time.Minute))
		}
		n.take()
		least := time.Hour
		for i := range uint32(30) {
			_ = n.s.AddFace(n.now, FaceInfo{ID: 700})
			n.interest(700, "/mine", 2+i)
			n.take()
			begin := time.Now()
			n.s.RemoveFace(n.now, 700)
			least = min(least, time.Since(begin))
			n.after(time.Second)
		}
		return least
	}
	few, many := cost(10), cost(50_000)
	if many > 30*few {
		t.Fatalf("%v beside 10 pending Interests, %v beside 50000", few, many)
	}
}

func TestLongLifetimeIsBounded(t *testing.T) {
	n := newNet(t, Config{MaxLifetime: time.Minute}).route("/a", remote1, 1)
	n.interest(local1, "/a", 1, lifetime(200*365*24*time.Hour))
	n.after(61 * time.Second)
	if c := n.s.Counters(); c.Expired != 1 {
		t.Fatalf("%+v", c)
	}
	n.interest(local1, "/a/0", 1, func(f *ndn.InterestFields, _ *ndn.LpFields) { f.Lifetime = ms })
	n.after(2 * ms)
	n.idle()
}

// An Interest with a lifetime of 0 goes out and is over at once: what comes back
// is unsolicited, and nothing is left of it.
func TestLifetimeOfZero(t *testing.T) {
	n := newNet(t, withCS()).route("/a", remote1, 1)
	w := ndn.AppendTLV(nil, ndn.TypeInterest, append(ndn.MustName("/a").AppendTLVTo(nil), 0x0a, 4, 0, 0, 0, 7, 0x0c, 1, 0))
	n.receive(local1, w, nil)
	n.want("I401 /a")
	n.after(ms)
	n.data(remote1, "/a")
	n.want()
	if c := n.s.Counters(); c.Unsolicited != 1 || c.Expired != 1 || c.PitEntries != 0 {
		t.Errorf("%+v", c)
	}
	// The same Nonce is a loop then, another is not.
	n.receive(remote2, w, nil)
	n.want("N402 /a Duplicate")
	n.interest(local1, "/a", 8)
	n.want("I401 /a")
	n.idle()
	for _, f := range strategies.Builtin() {
		n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote3, 2)
		n.strategy("/a", f.FullName().String())
		for range 20 {
			n.receive(local1, w, nil)
			n.after(ms)
			n.receive(remote2, w, nil)
		}
		n.after(10 * time.Second)
		if c := n.s.Counters(); c.PitEntries != 0 {
			t.Errorf("%s: %d entries are left", f.Name, c.PitEntries)
		}
	}
}
