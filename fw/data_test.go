package fw

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

func TestDataSatisfiesEveryEntry(t *testing.T) {
	n := newNet(t, Config{}).route("/", remote1, 1)
	n.interest(local1, "/a", 1, prefixed)
	n.interest(local1, "/a/b", 2, prefixed, fresh)
	n.interest(local1, "/a/b/c", 3)
	n.interest(local2, "/a/b/c", 4, prefixed)
	n.interest(local2, "/a/b/c", 5, fresh)
	n.interest(local2, "/a", 6)                 // not a prefix
	n.interest(local2, "/a/b/c/d", 7, prefixed) // longer
	n.take()
	// No token, and no freshness: pending Interests take it all the same.
	n.receive(remote1, makeData("/a/b/c", 0, ""), nil)
	got := n.take()
	if len(got) != 5 {
		t.Fatalf("delivered %d times", len(got))
	}
	if c := n.s.Counters(); c.Satisfied != 5 || c.PitEntries != 2 {
		t.Fatalf("%+v", c)
	}
}

func TestUnsolicitedData(t *testing.T) {
	for _, c := range []struct {
		policy        Unsolicited
		local, remote bool
	}{{DropAll, false, false}, {AdmitLocal, true, false}, {AdmitNetwork, false, true}, {AdmitAll, true, true}} {
		cfg := withCS()
		cfg.Unsolicited = c.policy
		n := newNet(t, cfg)
		n.data(local1, "/a")
		n.data(remote1, "/b")
		n.data(local1, "/c", func(l *ndn.LpFields) { l.NoCache = true })
		n.interest(local2, "/a", 1)
		n.interest(local2, "/b", 1)
		n.interest(local2, "/c", 1)
		want := []string{"N301 /a NoRoute", "N301 /b NoRoute", "N301 /c NoRoute"}
		if c.local {
			want[0] = "D301 /a"
		}
		if c.remote {
			want[1] = "D301 /b"
		}
		n.want(want...)
		if n.s.Counters().Unsolicited != 3 {
			t.Fatalf("%s: %+v", c.policy, n.s.Counters())
		}
	}
}

func TestBadTokens(t *testing.T) {
	n := newNet(t, Config{}).route("/", remote1, 1)
	n.interest(local1, "/other", 1)
	other := n.take()[0].p.PitToken
	for i, tok := range [][]byte{
		{0xff, 0xff, 0xff, 0xff, 0xff, 0}, // a shard and slot that do not exist
		{0, 0x7f, 0xff, 0xff, 0xff, 0},
		{1}, {1, 2, 3, 4, 5, 6, 7, 8}, bytes.Repeat([]byte{0}, 32), other,
	} {
		n.interest(local1, "/a", uint32(i+1))
		n.want("I401 /a")
		n.data(remote1, "/a", func(l *ndn.LpFields) { l.PitToken = tok })
		n.want("D300 /a")
	}
	if c := n.s.Counters(); c.StaleTokens != 6 || c.PitEntries != 1 {
		t.Fatalf("%+v", c)
	}
	// A token of ours on a Data with another name delivers nothing.
	n.data(remote1, "/evil", func(l *ndn.LpFields) { l.PitToken = other })
	n.want()
}

func TestImplicitDigest(t *testing.T) {
	n := newNet(t, withCS()).route("/", remote1, 1)
	right, wrong := makeData("/a", time.Second, "right"), makeData("/a", time.Second, "wrong")
	var d ndn.Data
	if err := d.Parse(right); err != nil {
		t.Fatal(err)
	}
	sum := d.Digest()
	full := ndn.MustName("/a").Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]}).String()
	n.interest(local1, full, 1)
	n.interest(local2, full, 2, prefixed)
	n.interest(remote2, "/a", 3)
	n.want("I401 "+full, "I401 "+full, "I401 /a")
	n.receive(remote1, wrong, nil)
	n.want("D402 /a")
	// The content store holds the wrong one: no answer out of it.
	n.interest(remote3, full, 4)
	n.want()
	n.receive(remote1, right, nil)
	n.want("D300 /a", "D403 /a", "D301 /a")
	n.interest(remote3, full, 5)
	if got := n.want("D403 /a")[0]; !bytes.Equal(got.wire, right) {
		t.Fatal("the wrong Data")
	}
	n.idle()
}

// TestFullNameOfMostComponents: a digest at the end of the longest name does
// not make it too long, and finds the Data upstream and in the store.
func TestFullNameOfMostComponents(t *testing.T) {
	n := newNet(t, withCS()).route("/", remote1, 1)
	name := strings.Repeat("/a", ndn.MaxComponents)
	wire := makeData(name, time.Second, "content")
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		t.Fatal(err)
	}
	sum := d.Digest()
	full := ndn.MustName(name).Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]}).String()
	n.interest(local1, full, 1)
	first := n.want("I401 " + full)[0]
	n.interest(remote2, full, 1)
	n.want("N402 " + full + " Duplicate")
	n.nackFor(first, ndn.NackNoRoute)
	n.want("N300 " + full + " NoRoute")
	n.interest(local1, full, 2)
	n.s.GaveUp(n.now, remote1, n.want("I401 " + full)[0].wire)
	n.want("N300 " + full + " Congestion")
	n.interest(local1, full, 3)
	n.want("I401 " + full)
	n.receive(remote1, wire, nil)
	n.want("D300 " + name)
	n.interest(local2, full, 4)
	n.want("D301 " + name)
	// Nothing else may be so long.
	for i, long := range []string{name + "/a", full + "/a", name + "/a" + full[len(name):]} {
		n.interest(local1, long, uint32(i))
		n.want()
	}
	if c := n.s.Counters(); c.BadName != 3 {
		t.Errorf("%d bad names", c.BadName)
	}
	n.idle()
}

func TestContentStore(t *testing.T) {
	n := newNet(t, withCS()).route("/", remote1, 1)
	fetch := func(name string, freshness time.Duration) {
		t.Helper()
		n.interest(local1, name, uint32(n.now))
		n.take()
		n.receive(remote1, makeData(name, freshness, ""), nil)
		n.want("D300 " + name)
	}
	fetch("/a/1", 0)
	fetch("/a/2", 100*ms)
	n.interest(local2, "/a", 1, prefixed)
	n.want("D301 /a/2")
	n.interest(local2, "/a", 2, prefixed, fresh)
	n.want("D301 /a/2")
	n.interest(local2, "/a/1", 3, fresh)
	n.want("I401 /a/1")
	n.after(99 * ms)
	n.interest(local2, "/a/2", 4, fresh)
	n.want("D301 /a/2")
	n.after(ms)
	n.interest(local2, "/a/2", 5, fresh)
	n.want("I401 /a/2")
	n.interest(local2, "/a/2", 6)
	n.want("D301 /a/2")
	if got := n.s.EraseCS(ndn.MustName("/a"), 1); got != 1 {
		t.Fatalf("erased %d", got)
	}
	if got := n.s.EraseCS(ndn.MustName("/a"), 0); got != 1 {
		t.Fatalf("erased %d", got)
	}
	n.interest(local1, "/a/1", 7)
	n.want("I401 /a/1")
	i := n.s.CSInfo()
	if c := n.s.Counters(); i.Hits != 4 || i.Packets != 0 || i.Hits+i.Misses != c.InInterests {
		t.Fatalf("%+v %d", i, c.InInterests)
	}
	n.interest(local1, "/localhost/nfd/status/general", 8, prefixed, fresh)
	n.take()
	if after := n.s.CSInfo(); after.Hits != i.Hits || after.Misses != i.Misses {
		t.Fatalf("management counts in the hit ratio: %+v", after)
	}
	cfg := i.Config
	cfg.NoServe = true
	if err := n.s.SetCS(cfg); err != nil {
		t.Fatal(err)
	}
	fetch("/b", time.Minute)
	n.interest(local1, "/b", 8)
	n.want("I401 /b")
	n.data(remote1, "/b")
	n.want("D300 /b")
	if off := n.s.CSInfo(); off.Hits != i.Hits || off.Misses != i.Misses {
		t.Fatalf("who is not asked misses: %+v", off)
	}
	cfg.NoServe, cfg.NoAdmit = false, true
	if err := n.s.SetCS(cfg); err != nil {
		t.Fatal(err)
	}
	n.interest(local2, "/b", 9)
	n.want("D301 /b")
	fetch("/c", time.Minute)
	n.interest(local2, "/c", 10)
	n.want("I401 /c")
}

// Data that comes once more is fresh again, for as long as it says (packet
// specification, FreshnessPeriod); one without freshness never is.
func TestFreshAgain(t *testing.T) {
	n := newNet(t, withCS()).route("/", remote1, 1)
	for _, c := range []struct {
		name      string
		freshness time.Duration
		hit       string
	}{{"/a", 100 * ms, "D301 /a"}, {"/b", 0, "I401 /b"}} {
		wire := makeData(c.name, c.freshness, "")
		for k := range uint32(2) {
			n.interest(local1, c.name, 10+k, fresh)
			n.want("I401 " + c.name) // it is stale, or not there
			n.receive(remote1, wire, nil)
			n.want("D300 " + c.name)
			n.interest(local2, c.name, 20+k, fresh)
			n.want(c.hit)
			n.after(5 * time.Second)
		}
	}
}

func TestNoCache(t *testing.T) {
	n := newNet(t, withCS()).route("/", remote1, 1)
	n.interest(local1, "/a", 1)
	n.want("I401 /a")
	n.data(remote1, "/a", func(l *ndn.LpFields) { l.NoCache = true })
	n.want("D300 /a")
	n.interest(local1, "/a", 2)
	n.want("I401 /a")
}

// What comes under a forwarding hint answers from the content store only
// those who use the same hint.
func TestHintsDoNotPoisonTheCache(t *testing.T) {
	cfg := withCS()
	cfg.TrustedHints = []ndn.Name{ndn.MustName("/ours")}
	n := newNet(t, cfg).route("/evil", remote1, 1).route("/ours", remote2, 1).route("/a", remote3, 1)
	n.interest(local1, "/a", 1, hint("/evil"))
	n.want("I401 /a")
	n.data(remote1, "/a")
	n.want("D300 /a")
	n.interest(local2, "/a", 2, hint("/evil"))
	n.want("D301 /a")
	n.interest(local2, "/a", 3)
	n.interest(local2, "/a", 4, hint("/ours/x"))
	n.interest(local2, "/a", 5, prefixed, hint("/other"))
	n.want("I403 /a", "I402 /a", "N301 /a NoRoute")
	// Fetched from the trusted place: for everybody.
	n.data(remote2, "/a")
	n.want("D301 /a", "D301 /a")
	n.interest(local1, "/a", 6)
	n.interest(local1, "/a", 7, hint("/other"))
	n.want("D300 /a", "D300 /a")
	n.idle()
}

// Nor does it satisfy those who are waiting for somebody else.
func TestHintsDoNotSatisfyOthers(t *testing.T) {
	n := newNet(t, withCS()).route("/evil", remote1, 1).route("/a", remote2, 1)
	n.interest(local1, "/a", 1)
	n.interest(local2, "/a", 2, hint("/evil"))
	n.want("I402 /a", "I401 /a")
	n.data(remote1, "/a")
	n.want("D301 /a")
	if c := n.s.Counters(); c.HintMismatch != 1 {
		t.Fatalf("%+v", c)
	}
	n.data(remote2, "/a")
	n.want("D300 /a")
	// Behind one upstream the token tells them apart.
	n.route("/evil", remote2, 0)
	n.interest(local1, "/a/b", 3)
	n.interest(local2, "/a/b", 4, hint("/evil"))
	evil := n.want("I402 /a/b", "I402 /a/b")[1]
	n.data(remote2, "/a/b", func(l *ndn.LpFields) { l.PitToken = evil.p.PitToken })
	n.want("D301 /a/b")
	n.data(remote2, "/a/b")
	n.want("D300 /a/b")
	// Data fetched without a hint is good for all.
	n.interest(local1, "/a/c", 5)
	n.interest(local2, "/a/c", 6, hint("/evil"))
	plain := n.want("I402 /a/c", "I402 /a/c")[0]
	n.data(remote2, "/a/c", func(l *ndn.LpFields) { l.PitToken = plain.p.PitToken })
	n.want("D300 /a/c", "D301 /a/c")
}

// Data that nobody asked this face for satisfies what is pending, but does
// not enter the content store.
func TestDataFromAnotherFace(t *testing.T) {
	n := newNet(t, withCS()).route("/a", remote1, 1)
	n.interest(local1, "/a", 1)
	n.want("I401 /a")
	n.data(remote2, "/a")
	n.want("D300 /a")
	n.interest(local1, "/a", 2)
	n.want("I401 /a")
}

func TestDataGoesBackOnAdHocLinksOnly(t *testing.T) {
	n := newNet(t, Config{}).route("/a", adhoc, 1).route("/b", remote1, 1)
	n.interest(adhoc, "/a", 1)
	n.want("I502 /a")
	n.data(adhoc, "/a")
	n.want("D502 /a")
	n.interest(remote1, "/b", 1)
	n.want("N401 /b NoRoute")
}

func TestPathTags(t *testing.T) {
	ask := link(func(l *ndn.LpFields) { l.HasPathTag = true })
	cfg := withCS()
	cfg.NodeID = 77
	n := newNet(t, cfg).route("/", remote1, 1)
	n.interest(local1, "/a", 1, ask)
	n.interest(local2, "/a", 2)
	if up := n.want("I401 /a")[0]; !up.p.HasPathTag || up.p.PathTag != (ndn.PathTag{}) {
		t.Fatalf("%+v", up.p.LpFields)
	}
	tagged := func(tag ndn.PathTag) func(*ndn.LpFields) {
		return func(l *ndn.LpFields) { l.HasPathTag, l.PathTag = true, tag }
	}
	n.data(remote1, "/a", tagged(ndn.PathTag{Tag: 5, Hops: 2, Flags: ndn.PathFromCache}))
	got := n.want("D300 /a", "D301 /a")
	first := got[0].p.PathTag
	if first.Tag == 0 || first.Tag == 5 || first.Hops != 3 || first.Flags != ndn.PathFromCache || got[1].p.HasPathTag {
		t.Fatalf("%+v %+v", got[0].p.LpFields, got[1].p.LpFields)
	}
	// The same source by the same path: the same tag. Another: another one.
	tags := []uint64{first.Tag}
	for i, tag := range []ndn.PathTag{{Tag: 5, Hops: 2}, {Tag: 6, Hops: 2}, {}} {
		name := "/b/" + string(rune('a'+i))
		n.interest(local1, name, 1, ask)
		n.want("I401 " + name)
		n.data(remote1, name, tagged(tag))
		tags = append(tags, n.want("D300 " + name)[0].p.PathTag.Tag)
	}
	if tags[1] != tags[0] || tags[2] == tags[0] || tags[3] == tags[0] {
		t.Fatalf("%v", tags)
	}
	// Out of the content store: a new tag of this node.
	n.interest(local1, "/a", 3, ask)
	hit := n.want("D300 /a")[0].p.PathTag
	if hit.Flags != ndn.PathFromCache || hit.Hops != 0 || slices.Contains(tags, hit.Tag) || hit.Tag == 0 {
		t.Fatalf("%+v", hit)
	}
	n.interest(local1, "/a", 4)
	if n.want("D300 /a")[0].p.HasPathTag {
		t.Fatal("a tag that nobody asked for")
	}
}

func TestCongestionMarkGoesUpAndDown(t *testing.T) {
	n := newNet(t, Config{}).route("/", remote1, 1)
	n.interest(local1, "/a", 1, link(func(l *ndn.LpFields) { l.CongestionMark = 3 }))
	if up := n.want("I401 /a")[0]; up.p.CongestionMark != 3 {
		t.Fatalf("%+v", up.p.LpFields)
	}
}

func TestFullQueueIsCounted(t *testing.T) {
	n := newNet(t, Config{}).route("/a", remote1, 1).route("/a", remote2, 2)
	n.reject[remote1] = true
	n.interest(local1, "/a", 1)
	n.want("I402 /a") // the strategy hears of it and goes on
	n.reject[local1] = true
	n.data(remote2, "/a")
	n.want()
	if c := n.s.Counters(); c.OutRefused != 2 || c.OutData != 0 {
		t.Fatalf("%+v", c)
	}
	n.idle()
}

func TestSmallStoreEvicts(t *testing.T) {
	n := newNet(t, Config{CS: table.CSConfig{Capacity: 4 << 20, MaxPackets: 2, Policy: "fifo"}}).route("/", remote1, 1)
	for i, name := range []string{"/a", "/b", "/c"} {
		n.interest(local1, name, uint32(i))
		n.data(remote1, name)
	}
	n.take()
	n.interest(local1, "/a", 9)
	n.interest(local1, "/b", 9)
	n.interest(local1, "/c", 9)
	n.want("I401 /a", "D300 /b", "D300 /c")
	if _, err := newNetErr(Config{CS: table.CSConfig{Policy: "arc"}}); err == nil {
		t.Fatal("an unknown policy")
	}
}
