package lp

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

// What is on the wire, byte for byte.
func TestGolden(t *testing.T) {
	token := []byte{0xa1, 0xa2, 0xa3, 0xa4}
	i := "050b0703080141 0a0401020341"
	all := &ndn.LpFields{
		PitToken: token, IncomingFace: 300, NextHopFace: 5, HasNextHopFace: true, CongestionMark: 1,
		PathTag: ndn.PathTag{Tag: 1, Hops: 2, Flags: 1}, HasPathTag: true, ReplicaSelect: 7, HasReplicaSelect: true,
	}
	for _, c := range []struct {
		name string
		cfg  Config
		f    *ndn.LpFields
		want []string
	}{
		{"bare", Config{}, nil, []string{i}},
		{"no fields", Config{}, &ndn.LpFields{}, []string{i}},
		{"token", Config{}, &ndn.LpFields{PitToken: token}, []string{"6415 6204a1a2a3a4 500d" + i}},
		{"nack", Config{}, &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}, []string{"6418 fd032005 fd03210196 500d" + i}},
		{"nack without reason", Config{}, &ndn.LpFields{IsNack: true}, []string{"6413 fd032000 500d" + i}},
		{"local fields off", Config{}, all, []string{"642d 6204a1a2a3a4 fd03400101 fd03b80a00000000000000010201 fd03bc0107 500d" + i}},
		{"local fields on", Config{LocalFields: true}, all, []string{"6438 6204a1a2a3a4 fd032c02012c fd03300105 fd03400101 fd03b80a00000000000000010201 fd03bc0107 500d" + i}},
		{"reliable", Config{Reliability: Reliability{On: true}, FirstSequence: 9}, nil, []string{
			"6425 51080000000000000009 fd0348080000000000000009 500d" + i,
		}},
	} {
		out := send(t, New(c.cfg), 1, interest(0x41), c.f)
		var want face.Frames
		for _, w := range c.want {
			want.Buf = append(want.Buf, unhex(w)...)
			want.End()
		}
		if !bytes.Equal(out.Buf, want.Buf) || len(out.Ends) != len(want.Ends) {
			t.Errorf("%s:\n got %x %v\nwant %x %v", c.name, out.Buf, out.Ends, want.Buf, want.Ends)
		}
	}
}

// Fragments of one size, numbered across 2^64, the fields on the first.
func TestGoldenFragments(t *testing.T) {
	d := data(t, 1, 70)
	l := New(Config{Fragment: true, MTU: 64, FirstSequence: math.MaxUint64})
	out := send(t, l, 1, d, &ndn.LpFields{PitToken: []byte{0xa1, 0xa2, 0xa3, 0xa4}})
	first := append(unhex("6438 5108ffffffffffffffff 520100 530102 6204a1a2a3a4 5020"), d[:32]...)
	second := append(unhex("6438 51080000000000000000 520101 530102 5026"), d[32:]...)
	if out.Len() != 2 || !bytes.Equal(out.Frame(0), first) || !bytes.Equal(out.Frame(1), second) {
		t.Errorf("got %x %v\nwant %x %x", out.Buf, out.Ends, first, second)
	}
}

// A packet of any size comes out as it went in, in as few frames as possible
// that are of one size, and none is too large.
func TestFragmentsAreWholeAndEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu := rapid.IntRange(MinMTU, ndn.MaxPacketSize).Draw(t, "mtu")
		wire := data(&testing.T{}, 1, rapid.IntRange(60, ndn.MaxPacketSize-1).Draw(t, "size"))
		cfg := Config{MTU: mtu, Fragment: true, FirstSequence: rapid.Uint64().Draw(t, "seq")}
		cfg.Reliability.On = rapid.Bool().Draw(t, "reliable")
		f := &ndn.LpFields{CongestionMark: 1, HasPathTag: rapid.Bool().Draw(t, "tag")}
		f.PitToken = bytes.Repeat([]byte{7}, rapid.IntRange(0, 8).Draw(t, "token"))
		l, out := New(cfg), new(face.Frames)
		if err := l.Send(1, wire, f, out); err != nil {
			if fixed := 70; len(wire)/max(1, mtu-fixed) < MaxFragments && mtu > 2*fixed {
				t.Fatal(err)
			}
			return
		}
		size := len(out.Frame(0))
		if size > mtu {
			t.Fatalf("frame of %d bytes", size)
		}
		for i := range out.Len() {
			n := len(out.Frame(i))
			// Lengths around 253 cannot be met exactly.
			if i < out.Len()-1 && mtu > 400 && size > 350 && n != size || n > mtu {
				t.Fatalf("frame %d has %d bytes, the first %d", i, n, size)
			}
		}
		if least := (len(wire) + mtu - 1) / mtu; mtu > 300 && out.Len() > least+1+least/4 {
			t.Fatalf("%d frames for %d bytes", out.Len(), len(wire))
		}
		r := New(cfg)
		var p ndn.Packet
		for i := range out.Len() {
			ok, err := r.Receive(1, out.Frame(i), &p)
			if err != nil || ok != (i == out.Len()-1) || r.Reassembled() != (out.Len() > 1) {
				t.Fatal(i, ok, err)
			}
		}
		if !bytes.Equal(p.Wire(), wire) || !bytes.Equal(p.PitToken, f.PitToken) || p.CongestionMark != 1 || p.HasPathTag != f.HasPathTag {
			t.Fatal("the packet has changed")
		}
	})
}

// No LpPacket is larger than 8800 bytes, header included, on streams too.
func TestLargestPacket(t *testing.T) {
	f := &ndn.LpFields{PitToken: make([]byte, 32), HasPathTag: true, CongestionMark: 1}
	for size := 8700; size <= ndn.MaxPacketSize; size++ {
		l := New(Config{})
		out := send(t, l, 1, data(t, 1, size), f)
		if out.Len() != 1 || len(out.Buf) > ndn.MaxPacketSize {
			t.Fatalf("%d bytes in %d frames of %d bytes", size, out.Len(), len(out.Buf))
		}
		if got := receive(t, New(Config{}), 1, out); len(got) != 1 || len(got[0]) != size {
			t.Fatalf("%d bytes arrived badly", size)
		}
		if size == ndn.MaxPacketSize && l.Counters().OutShed != 1 {
			t.Error("shedding was not counted")
		}
	}
	l, out := New(Config{}), new(face.Frames)
	for _, c := range []struct {
		wire []byte
		f    *ndn.LpFields
	}{
		{element(ndn.TypeData, ndn.MaxPacketSize+1), nil},
		{nil, nil},
		{element(ndn.TypeInterest, ndn.MaxPacketSize), &ndn.LpFields{IsNack: true}},
	} {
		if err := l.Send(1, c.wire, c.f, out); !errors.Is(err, ErrOversize) || out.Len() != 0 || len(out.Buf) != 0 {
			t.Errorf("%d bytes: %v, %d frames", len(c.wire), err, out.Len())
		}
	}
	if n := l.Counters().OutOversize; n != 3 {
		t.Errorf("counted %d", n)
	}
	var p ndn.Packet
	if _, err := l.Receive(1, element(ndn.TypeLpPacket, ndn.MaxPacketSize+1), &p); !errors.Is(err, ErrOversize) {
		t.Errorf("error %v", err)
	}
}

func TestWhatMayNotBeReceived(t *testing.T) {
	i, d := interest(1), data(t, 1, 60)
	nh := ndn.LpFields{NextHopFace: 300, HasNextHopFace: true}
	for _, c := range []struct {
		name  string
		wire  []byte
		f     ndn.LpFields
		local bool
		want  error
	}{
		{"next hop, not enabled", i, nh, false, ErrFields},
		{"next hop, enabled", i, nh, true, nil},
		{"next hop on Data", d, nh, true, ErrFields},
		{"next hop on Nack", i, ndn.LpFields{IsNack: true, NextHopFace: 1, HasNextHopFace: true}, true, ErrFields},
		{"cache policy on Interest", i, ndn.LpFields{NoCache: true}, true, ErrFields},
		{"cache policy on Data", d, ndn.LpFields{NoCache: true}, true, nil},
		{"cache policy on Data, not enabled", d, ndn.LpFields{NoCache: true}, false, nil},
		{"cache policy on Nack", i, ndn.LpFields{IsNack: true, NoCache: true}, true, ErrFields},
		{"announcement on Interest", i, ndn.LpFields{Announcement: d}, false, ErrFields},
		{"announcement on Data", d, ndn.LpFields{Announcement: d}, false, nil},
		{"non-discovery on Interest", i, ndn.LpFields{NonDiscovery: true}, false, nil},
		{"non-discovery on Data", d, ndn.LpFields{NonDiscovery: true}, false, ErrFields},
		{"Nack of a Data", d, ndn.LpFields{IsNack: true}, false, ndn.ErrType},
		{"incoming face", i, ndn.LpFields{IncomingFace: 9}, true, nil},
	} {
		frame := ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &c.f}, c.wire)
		l := New(Config{LocalFields: c.local})
		var p ndn.Packet
		ok, err := l.Receive(1, frame, &p)
		if !errors.Is(err, c.want) || ok != (c.want == nil) {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
		if n := l.Counters(); n.InFields+n.InNetParse+n.InPackets != 1 {
			t.Errorf("%s: counted %+v", c.name, n)
		}
		if ok && (p.IncomingFace != 0 || p.NoCache && !c.local) {
			t.Errorf("%s: passed up", c.name)
		}
	}
	var p ndn.Packet
	app := New(Config{Application: true})
	frame := ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{IncomingFace: 9}}, d)
	if ok, err := app.Receive(1, frame, &p); !ok || err != nil || p.IncomingFace != 9 {
		t.Errorf("an application did not get its IncomingFaceId: %v %v %v", ok, err, p.IncomingFace)
	}
	l := New(Config{})
	for _, junk := range [][]byte{nil, {0}, {0x64}, {0x64, 0x01, 0xff}, element(0x80, 10), i[:5], append(i, 0)} {
		if ok, err := l.Receive(1, junk, &p); ok || err == nil {
			t.Errorf("%x was received", junk)
		}
	}
	if n := l.Counters().InParse; n != 7 {
		t.Errorf("counted %d", n)
	}
	// A header that a peer does not know but may ignore, and an idle packet.
	for _, h := range []string{"6400", "6407 fd039c03010203", "6413 fd039c00 500d 050b07030801410a0401020341"} {
		if _, err := l.Receive(1, unhex(h), &p); err != nil {
			t.Errorf("%s: %v", h, err)
		}
	}
	if _, err := l.Receive(1, unhex("6407 fd039d03010203"), &p); err == nil {
		t.Error("a header that may not be ignored was")
	}
}

// The control law of NFD and CoDel.
func TestCongestionMarks(t *testing.T) {
	l := New(Config{})
	marks := func(from, to ndn.Time, queue int) (at []float64) {
		for now := from; now < to; now += ms / 2 {
			l.Queue(now, queue)
			out := send(t, l, now, interest(1), nil)
			if out.Buf[0] == byte(ndn.TypeLpPacket) {
				at = append(at, float64(now-from)/float64(ms))
			}
		}
		return at
	}
	if m := marks(1, 1000*ms, 64<<10); m != nil {
		t.Errorf("marks at the threshold: %v", m)
	}
	got := marks(1000*ms, 1500*ms, 64<<10+1)
	want := 100.0
	for n, g := range got {
		if math.Abs(g-want) > 1 {
			t.Errorf("mark %d at %v ms instead of %v", n, g, want)
		}
		want += 100 / math.Sqrt(float64(n+2))
	}
	if len(got) < 5 || l.Counters().OutMarked != uint64(len(got)) {
		t.Errorf("%d marks, counted %d", len(got), l.Counters().OutMarked)
	}
	marks(1500*ms, 1501*ms, 0)
	if m := marks(1501*ms, 1600*ms, 1<<20); m != nil {
		t.Errorf("the interval did not begin anew: %v", m)
	}
	l.SetMarking(Marking{Off: true})
	if m := marks(1600*ms, 2000*ms, 1<<20); m != nil {
		t.Errorf("marks although off: %v", m)
	}
	l.SetMarking(Marking{Threshold: 10, Interval: time.Millisecond})
	if l.Marking().Threshold != 10 || l.Marking().Off {
		t.Error("settings are lost")
	}
}

func TestSetMTU(t *testing.T) {
	l := New(Config{Fragment: true})
	wire := data(t, 1, 3000)
	for _, mtu := range []int{8800, 1400, 1, 20000} {
		l.SetMTU(mtu)
		out := send(t, l, 1, wire, nil)
		for i := range out.Len() {
			if n := len(out.Frame(i)); n > l.MTU() {
				t.Errorf("frame of %d bytes with MTU %d", n, mtu)
			}
		}
	}
	l.SetLocalFields(true)
	if !l.LocalFields() || l.MTU() != ndn.MaxPacketSize || l.Reliable() {
		t.Error("settings are lost")
	}
}
