package lp

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

func frag(seq, index, count uint64, hasSeq bool, payload []byte) []byte {
	var f []byte
	if hasSeq {
		f = append(f, unhex("5108")...)
		for i := 56; i >= 0; i -= 8 {
			f = append(f, byte(seq>>i))
		}
	}
	f = ndn.AppendNatTLV(f, ndn.TypeLpFragIndex, index)
	f = ndn.AppendNatTLV(f, ndn.TypeLpFragCount, count)
	f = ndn.AppendTLV(f, ndn.TypeLpFragment, payload)
	return ndn.AppendTLV(nil, ndn.TypeLpPacket, f)
}

func TestHostileFragments(t *testing.T) {
	l := New(Config{})
	var p ndn.Packet
	for i, c := range []struct {
		frame []byte
		want  error
	}{
		{frag(1, 0, 1<<62, true, []byte{1}), ErrFragment},
		{frag(1, 0, math.MaxUint64, true, []byte{1}), ErrFragment},
		{frag(1, 0, MaxFragments+1, true, []byte{1}), ErrFragment},
		{frag(1, 1<<62, 1<<62+1, true, []byte{1}), ErrFragment},
		{frag(1, 2, 2, true, []byte{1}), ErrFragment},
		{frag(1, 1, 1, true, []byte{1}), ErrFragment},
		{frag(1, 0, 0, true, []byte{1}), ErrFragment},
		{frag(1, 0, 2, false, []byte{1}), ErrFragment},
		{frag(1, 0, 2, true, []byte{5, 4}), nil},
		{frag(2, 1, 3, true, []byte{1}), ErrFragment}, // another count
		{frag(3, 2, 3, true, []byte{1}), ErrFragment}, // and an index beyond the first one
		{frag(1, 0, 2, true, []byte{5, 4}), nil},      // again
		{frag(10, 0, 3, true, make([]byte, 5000)), nil},
		{frag(11, 1, 3, true, make([]byte, 5000)), ErrOversize},
		{frag(0, 1, 2, true, []byte{1}), nil}, // wraps
		{frag(math.MaxUint64, 0, 2, true, []byte{1}), ndn.ErrTruncated},
		{frag(20, 0, MaxFragments, true, []byte{1}), nil},
	} {
		ok, err := l.Receive(1, c.frame, &p)
		if ok || !errors.Is(err, c.want) {
			t.Errorf("%d: %v %v", i, ok, err)
		}
	}
	c := l.Counters()
	if c.InFragment != 10 || c.InDuplicate != 1 || c.InOversize != 1 || c.InNetParse != 1 {
		t.Errorf("%+v", c)
	}
}

// A peer that never completes a packet holds a bounded number, for a bounded
// time.
func TestReassemblyIsBounded(t *testing.T) {
	l := New(Config{Reassembly: Reassembly{Packets: 10, Timeout: time.Second}})
	var p ndn.Packet
	for i := range uint64(1000) {
		if _, err := l.Receive(ndn.Time(i)+1, frag(i*5, 0, 5, true, []byte{1}), &p); err != nil {
			t.Fatal(err)
		}
	}
	if c := l.Counters(); c.InReassemblyMax != 990 || l.reas.n != 10 {
		t.Errorf("%d incomplete, %d dropped", l.reas.n, c.InReassemblyMax)
	}
	var out face.Frames
	first := ndn.Time(time.Second) + 991
	if d := l.Deadline(); d != first {
		t.Errorf("deadline %d instead of %d", d, first)
	}
	l.Tick(first, &out)
	if l.reas.n != 9 {
		t.Errorf("%d incomplete", l.reas.n)
	}
	l.Tick(first+100, &out)
	if c := l.Counters(); l.reas.n != 0 || c.InReassemblyOld != 10 || l.Deadline() != ndn.Never || out.Len() != 0 {
		t.Errorf("%d incomplete, %+v", l.reas.n, c)
	}
}

// Memory follows what peers have sent, not what they announced, and does not
// outlast the time that incomplete packets have.
func TestReassemblyMemory(t *testing.T) {
	var p ndn.Packet
	var out face.Frames
	links := make([]*Link, 200)
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i := range links {
		links[i] = New(Config{})
	}
	before := held()
	for _, l := range links {
		for i := range uint64(128) {
			if _, err := l.Receive(1, frag(i*MaxFragments, 0, MaxFragments, true, []byte{1}), &p); err != nil {
				t.Fatal(err)
			}
		}
	}
	const packets = 200 * 128
	if n := (held() - before) / packets; n > 3000 {
		t.Errorf("%d bytes for a fragment of one byte", n)
	}
	for _, l := range links {
		l.Tick(l.Deadline(), &out)
	}
	if n := (held() - before) / int64(len(links)); n > 16<<10 {
		t.Errorf("%d bytes held for a peer that is quiet", n)
	}
	runtime.KeepAlive(links)
}

// Packets in fragments that arrive in any order, some of them twice and some
// never: what is complete comes out once and unchanged, with the fields of
// the first fragment, and nothing else does.
func TestReassemblyInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		// Around 2^64.
		l := New(Config{MTU: 200 + rng.IntN(1500), Fragment: true, FirstSequence: -uint64(rng.IntN(200))})
		type sent struct {
			wire, token  []byte
			frames, lost int
			got          bool
		}
		var packets []sent
		type frame struct {
			b   []byte
			pkt int
		}
		var frames []frame
		for n := range 40 {
			s := sent{wire: data(&testing.T{}, byte(n), 2000+rng.IntN(6000)), token: []byte{byte(n), 1, 2}}
			var out face.Frames
			if err := l.Send(1, s.wire, &ndn.LpFields{PitToken: s.token}, &out); err != nil {
				t.Fatal(err)
			}
			s.frames = out.Len()
			for i := range out.Len() {
				switch r := rng.IntN(60); {
				case r == 0:
					s.lost++
				case r == 1 && i == 0:
					// Never all of a packet: that would be the packet again.
					frames = append(frames, frame{out.Frame(i), n}, frame{out.Frame(i), n})
				default:
					frames = append(frames, frame{out.Frame(i), n})
				}
			}
			packets = append(packets, s)
		}
		rng.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
		r := New(Config{})
		var p ndn.Packet
		for _, f := range frames {
			ok, err := r.Receive(1, bytes.Clone(f.b), &p)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			s := &packets[f.pkt]
			if s.got || s.lost > 0 {
				t.Fatalf("packet %d came out: got %v, lost %d", f.pkt, s.got, s.lost)
			}
			s.got = true
			if !bytes.Equal(p.Wire(), s.wire) || !bytes.Equal(p.PitToken, s.token) {
				t.Fatalf("packet %d has changed", f.pkt)
			}
		}
		for n, s := range packets {
			if s.got != (s.lost == 0) {
				t.Fatalf("packet %d: got %v, lost %d", n, s.got, s.lost)
			}
		}
	})
}

// A mark on any fragment counts for the packet, and an announcement survives.
func TestFieldsOfFragments(t *testing.T) {
	d := data(t, 1, 100)
	ann := data(t, 2, 70)
	first := ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{Announcement: ann}, HasSequence: true, Sequence: 4, FragCount: 2}, d[:50])
	second := ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &ndn.LpFields{CongestionMark: 3}, HasSequence: true, Sequence: 5, FragIndex: 1, FragCount: 2}, d[50:])
	for _, order := range [][2][]byte{{first, second}, {second, first}} {
		l := New(Config{})
		var p ndn.Packet
		if ok, err := l.Receive(1, order[0], &p); ok || err != nil {
			t.Fatal(ok, err)
		}
		ok, err := l.Receive(1, order[1], &p)
		if !ok || err != nil || p.CongestionMark != 3 || !bytes.Equal(p.Announcement, ann) || !bytes.Equal(p.Wire(), d) {
			t.Errorf("%v %v %+v", ok, err, p.LpFields)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(interest(1), uint8(0))
	f.Add(frag(1, 0, 2, true, []byte{5, 4}), uint8(1))
	f.Add(append(frag(1, 0, 2, true, []byte{5, 4}), frag(3, 2, 3, true, []byte{5})...), uint8(0))
	f.Add(unhex("6411fd034408000000000000000150"), uint8(3))
	f.Add(unhex("64235108000000000000000962 fd0348080000000000000009500b07030801410a0401020341"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, mode uint8) {
		l := New(Config{LocalFields: mode&1 != 0, Reliability: Reliability{On: mode&2 != 0}, Reassembly: Reassembly{Packets: 4}})
		var p ndn.Packet
		var out face.Frames
		_ = l.Send(1, interest(9), nil, &out)
		// The input is several frames, one after another.
		now := ndn.Time(1)
		for len(in) > 0 {
			n := min(len(in), ndn.MaxPacketSize)
			if size, err := ndn.PacketSize(in, ndn.MaxPacketSize); err == nil && size > 0 && size <= len(in) {
				n = size
			}
			if ok, err := l.Receive(now, in[:n], &p); ok && (err != nil || len(p.Wire()) == 0 || len(p.Wire()) > ndn.MaxPacketSize) {
				t.Fatal("bad packet", err)
			}
			in = in[n:]
			now += ms
			l.Tick(now, &out)
		}
		l.Tick(now.Add(time.Hour), &out)
		for i := range out.Len() {
			if len(out.Frame(i)) > ndn.MaxPacketSize {
				t.Fatal("frame too large")
			}
		}
	})
}

// TestSendersApart: on a link with several senders equal numbers of two of
// them are not one packet.
func TestSendersApart(t *testing.T) {
	l := New(Config{})
	var p ndn.Packet
	a, b := data(t, 1, 1000), data(t, 2, 1000)
	for _, f := range []struct {
		sender uint64
		frame  []byte
		want   []byte
	}{
		{1, frag(5, 0, 2, true, a[:500]), nil},
		{2, frag(6, 1, 2, true, b[500:]), nil},
		{1, frag(6, 1, 2, true, a[500:]), a},
		{2, frag(5, 0, 2, true, b[:500]), b},
	} {
		ok, err := l.ReceiveFrom(1, f.sender, f.frame, &p)
		if err != nil || ok != (f.want != nil) || ok && !bytes.Equal(p.Wire(), f.want) {
			t.Errorf("sender %d: %v, %v", f.sender, ok, err)
		}
	}
}
