package lp

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

func reliable(r Reliability) Config {
	r.On = true
	return Config{Fragment: true, MTU: 1400, Reliability: r}
}

// tick is Tick at the deadline, and returns what it sent and when.
func tick(tb testing.TB, l *Link) (ndn.Time, *face.Frames) {
	tb.Helper()
	now := l.Deadline()
	if now == ndn.Never {
		tb.Fatal("nothing is due")
	}
	out := new(face.Frames)
	l.Tick(now, out)
	return now, out
}

func txOf(tb testing.TB, frame []byte) (tx uint64, acks []uint64) {
	tb.Helper()
	var p ndn.LpPacket
	if err := p.Parse(frame); err != nil {
		tb.Fatal(err)
	}
	for {
		a, ok := p.NextAck()
		if !ok {
			return p.TxSequence, acks
		}
		acks = append(acks, a)
	}
}

func ack(l *Link, now ndn.Time, txs ...uint64) error {
	var p ndn.Packet
	_, err := l.Receive(now, ndn.AppendLpPacket(nil, &ndn.LpHeader{Acks: txs}, nil), &p)
	return err
}

func TestAcksRideOrGoAlone(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	receive(t, b, 1*ms, send(t, a, 1*ms, interest(1), nil))
	receive(t, b, 2*ms, send(t, a, 2*ms, interest(2), nil))
	if d := b.Deadline(); d != 6*ms {
		t.Errorf("deadline %d", d)
	}
	// A packet the other way takes both along.
	back := send(t, b, 3*ms, data(t, 1, 100), nil)
	if _, acks := txOf(t, back.Buf); !slices.Equal(acks, []uint64{0, 1}) {
		t.Errorf("acks %v", acks)
	}
	receive(t, a, 4*ms, back)
	if c := a.Counters(); c.Acked != 2 {
		t.Errorf("acked %d", c.Acked)
	}
	// Nothing goes the other way now: after 5 ms the ack goes alone, under no
	// TxSequence.
	now, idle := tick(t, a)
	if want := unhex("640c fd0344080000000000000000"); now != 9*ms || !bytes.Equal(idle.Buf, want) {
		t.Errorf("at %d: %x", now, idle.Buf)
	}
	receive(t, b, now, idle)
	if a.Deadline() != ndn.Never || b.Deadline() != ndn.Never {
		t.Error("something is still due")
	}
}

func TestManyAcksDoNotWait(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{AckDelay: time.Hour}))
	for i := range 300 {
		receive(t, b, ndn.Time(i+1), send(t, a, ndn.Time(i+1), interest(byte(i)), nil))
	}
	if b.Deadline() > 300 {
		t.Fatal("acks of more than a frame wait")
	}
	var out face.Frames
	b.Tick(300, &out)
	for i := range out.Len() {
		if len(out.Frame(i)) > 1400 {
			t.Error("frame too large")
		}
	}
	receive(t, a, 300, &out)
	if n := a.Counters().Acked; n != 300 {
		t.Errorf("acked %d", n)
	}
	now := New(reliable(Reliability{AckDelay: -1}))
	receive(t, now, 5, send(t, a, 5, interest(1), nil))
	if now.Deadline() != 5 {
		t.Error("an ack without delay waits")
	}
}

func TestThreeLaterAcksMeanLoss(t *testing.T) {
	l := New(reliable(Reliability{}))
	first := send(t, l, 1*ms, interest(0), nil)
	for i := range 3 {
		send(t, l, 1*ms, interest(byte(i+1)), nil)
	}
	for i, tx := range []uint64{1, 2} {
		if err := ack(l, ndn.Time(2+i)*ms, tx); err != nil {
			t.Fatal(err)
		}
	}
	if l.Deadline() <= 3*ms {
		t.Fatal("lost too early")
	}
	ack(l, 4*ms, 3)
	now, again := tick(t, l)
	if now != 4*ms || again.Len() != 1 || l.Counters().Retransmitted != 1 {
		t.Fatalf("at %d: %d frames", now, again.Len())
	}
	// The same Sequence and content under a new TxSequence.
	tx, _ := txOf(t, again.Buf)
	var p, q ndn.LpPacket
	if err := errors.Join(p.Parse(first.Buf), q.Parse(again.Buf)); err != nil {
		t.Fatal(err)
	}
	if tx != 4 || p.Sequence != q.Sequence || !bytes.Equal(p.Fragment, q.Fragment) {
		t.Errorf("tx %d, %+v", tx, q)
	}
	// The acknowledgement of the first transmission is late, but says that the
	// fragment came; that of the second says nothing new.
	ack(l, 5*ms, 0)
	if l.Counters().Acked != 4 || l.rel.flying != 0 {
		t.Error("a late ack was not counted")
	}
	ack(l, 5*ms, 0, 4, 99, math.MaxUint64)
	if l.Counters().Acked != 4 || l.Deadline() != ndn.Never {
		t.Errorf("%+v", l.Counters())
	}
}

func TestTimeoutBackOffAndGivingUp(t *testing.T) {
	l := New(reliable(Reliability{MaxRetx: 5}))
	// RTT 20 ms: the RTO is 40 ms after some samples.
	for i := range 40 {
		at := ndn.Time(i+1) * 100 * ms
		send(t, l, at, interest(1), nil)
		ack(l, at+20*ms, uint64(i))
	}
	start := 10000 * ms
	wire := interest(77)
	send(t, l, start, wire, nil)
	last, want := start, 40*time.Millisecond
	for i := range 5 {
		now, out := tick(t, l)
		if got := now.Sub(last); got < want-time.Millisecond || got > want+want/10 || out.Len() != 1 {
			t.Errorf("transmission %d after %v instead of %v, %d frames", i+2, got, want, out.Len())
		}
		last, want = now, want*3/2
	}
	if _, ok := l.GaveUp(); ok {
		t.Error("gave up too early")
	}
	if _, out := tick(t, l); out.Len() != 0 {
		t.Error("sent after giving up")
	}
	got, ok := l.GaveUp()
	if !ok || !bytes.Equal(got, wire) {
		t.Errorf("gave up on %x %v", got, ok)
	}
	if _, ok := l.GaveUp(); ok || l.Deadline() != ndn.Never || l.Counters().RetxExhausted != 1 {
		t.Errorf("%v %+v", ok, l.Counters())
	}
	// Of Data and Nacks nobody is told.
	send(t, l, 20000*ms, data(t, 1, 5000), nil)
	send(t, l, 20000*ms, interest(1), &ndn.LpFields{IsNack: true})
	for l.Deadline() != ndn.Never {
		tick(t, l)
	}
	if _, ok := l.GaveUp(); ok || l.Counters().RetxExhausted != 3 || l.rel.flying != 0 {
		t.Errorf("%v %+v", ok, l.Counters())
	}
}

// A peer without the feature gets what others get, after a few packets. Once
// it has it, its acknowledgements count.
func TestPeerThatDoesNotAcknowledge(t *testing.T) {
	for _, cfg := range []Reliability{{}, {StopAndWait: true, MaxRetx: 5}, {Window: 4, MaxRetx: 8, Queue: 500}} {
		l := New(reliable(cfg))
		now, out := 1*ms, new(face.Frames)
		first, told := true, false
		for i := range 200 {
			out.Reset()
			wire := data(t, byte(i), 1000)
			if i == 0 {
				wire = interest(1)
			}
			err := l.Send(now, wire, nil, out)
			if deaf := l.rel.deaf(); deaf && (err != nil || out.Len() != 1) {
				t.Fatalf("%+v: packet %d: %v, %d frames", cfg, i, err, out.Len())
			} else if deaf && first {
				first = false
				if _, told = l.GaveUp(); !told {
					t.Errorf("%+v: nobody was told that the first Interest was given up", cfg)
				}
			}
			for now = now.Add(50 * time.Millisecond); l.Deadline() <= now; {
				out.Reset()
				l.Tick(l.Deadline(), out)
			}
		}
		if first || l.rel.flying != 0 || l.rel.queued != 0 || l.Deadline() != ndn.Never {
			t.Errorf("%+v: deaf %v, %d in flight, %d queued", cfg, !first, l.rel.flying, l.rel.queued)
		}
		before := l.Counters().RetxExhausted
		ack(l, now, l.rel.next-1)
		if send(t, l, now, interest(7), nil); l.rel.flying != 1 {
			t.Errorf("%+v: not reliable after an acknowledgement", cfg)
		}
		for l.Deadline() != ndn.Never {
			tick(t, l)
		}
		if l.Counters().RetxExhausted != before+1 {
			t.Errorf("%+v: %+v", cfg, l.Counters())
		}
	}
}

func TestBackOffHasACap(t *testing.T) {
	l := New(reliable(Reliability{MaxRetx: 20}))
	send(t, l, 1, interest(1), nil)
	for range 20 {
		before := l.Deadline()
		tick(t, l)
		if d := l.Deadline().Sub(before); d > time.Second {
			t.Fatalf("back-off of %v", d)
		}
	}
}

func TestWindowAndQueue(t *testing.T) {
	for _, c := range []struct {
		cfg    Reliability
		window int
	}{{Reliability{Window: 4}, 4}, {Reliability{StopAndWait: true, Window: 9}, 1}} {
		l := New(reliable(c.cfg))
		out := new(face.Frames)
		sent, refused := 0, 0
		for i := range 100 {
			switch err := l.Send(1*ms, interest(byte(i)), nil, out); {
			case err == nil:
				sent++
			case errors.Is(err, ErrQueueFull):
				refused++
			default:
				t.Fatal(err)
			}
		}
		if out.Len() != c.window || sent != c.window+50 || l.Counters().OutQueue != uint64(refused) {
			t.Errorf("%d frames, %d sent, %d refused", out.Len(), sent, refused)
		}
		// Each acknowledgement lets one more go, in order.
		for i := range sent {
			now := ndn.Time(i+2) * ms
			ack(l, now, uint64(i))
			out.Reset()
			l.Tick(now, out)
			if rest := sent - c.window - i; out.Len() != min(1, max(0, rest)) {
				t.Fatalf("%d frames after ack %d", out.Len(), i)
			}
			if out.Len() == 1 {
				var p ndn.LpPacket
				if err := p.Parse(out.Buf); err != nil || p.Sequence != uint64(i+c.window) {
					t.Fatalf("sequence %d after ack %d", p.Sequence, i)
				}
			}
		}
		if l.Deadline() != ndn.Never {
			t.Error("something is still due")
		}
	}
}

// The states of Lien and Yu's One-Hop TCP: one packet waits for its
// acknowledgement, is sent again five times at growing intervals, and is then
// purged for the next. A repetition is dropped and acknowledged.
func TestHopByHopStopsAndWaits(t *testing.T) {
	r := HopByHop()
	r.StopAndWait, r.AckDelay = true, -1
	a, b := New(reliable(r)), New(reliable(r))
	out := new(face.Frames)
	for i := range 3 {
		if err := a.Send(1*ms, interest(byte(i)), nil, out); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() != 1 {
		t.Fatalf("%d packets at once", out.Len())
	}
	// Done at the acknowledgement: the next leaves.
	receive(t, b, 2*ms, out)
	_, acks := tick(t, b)
	if receive(t, a, 3*ms, acks); a.Deadline() != 3*ms {
		t.Fatal("the next does not leave at once")
	}
	_, out = tick(t, a)
	// Its acknowledgements are lost: the repetition is acknowledged, too, and
	// passed up once only.
	if got := receive(t, b, 4*ms, out); len(got) != 1 || !bytes.Equal(got[0], interest(1)) {
		t.Fatalf("%x", got)
	}
	tick(t, b)
	var last time.Duration
	for i := range 5 {
		was := a.Deadline()
		now, again := tick(t, a)
		if again.Len() != 1 {
			t.Fatalf("repetition %d: %d frames", i+1, again.Len())
		}
		if got := receive(t, b, now, again); len(got) != 0 {
			t.Fatal("a repetition was passed up")
		}
		if _, out := tick(t, b); out.Len() != 1 {
			t.Fatal("a repetition was not acknowledged")
		}
		if d := a.Deadline().Sub(was); d < last {
			t.Errorf("interval %v after %v", d, last)
		} else {
			last = d
		}
	}
	// Purged: the forwarder hears of it, and the third leaves.
	_, out = tick(t, a)
	wire, ok := a.GaveUp()
	if !ok || !bytes.Equal(wire, interest(1)) {
		t.Errorf("gave up on %x, %v", wire, ok)
	}
	if got := receive(t, b, a.Deadline(), out); len(got) != 1 || !bytes.Equal(got[0], interest(2)) {
		t.Errorf("after giving up: %x", got)
	}
	if c := b.Counters(); c.InDuplicate != 5 || c.OutAcks != 7 || c.OutFrames != 7 {
		t.Errorf("%+v", c)
	}
}

// Two links over a channel that loses, repeats and reorders: everything comes
// out exactly once and unchanged, except what the sender gave up.
func TestReliableOverLossyLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		loss := rapid.IntRange(0, 30).Draw(t, "loss")
		cfg := reliable(Reliability{
			MaxRetx: 8, Window: rapid.SampledFrom([]int{0, 1, 4, 64}).Draw(t, "window"), Queue: 1000,
			StopAndWait: rapid.IntRange(0, 4).Draw(t, "stop and wait") == 0,
			AckDelay:    rapid.SampledFrom([]time.Duration{0, -1}).Draw(t, "ack delay"),
		})
		cfg.FirstSequence = -rapid.Uint64Range(0, 300).Draw(t, "first")
		rng := rand.New(rand.NewPCG(seed, 7))
		ends := [2]*Link{New(cfg), New(cfg)}
		type flight struct {
			at    ndn.Time
			frame []byte
		}
		var air [2][]flight // towards each end
		now := ndn.Time(1)
		carry := func(to int, out *face.Frames) {
			for i := range out.Len() {
				for range 1 + rng.IntN(20)/19 {
					if rng.IntN(100) >= loss {
						air[to] = append(air[to], flight{now + 5*ms + ndn.Time(rng.IntN(int(3*ms))), bytes.Clone(out.Frame(i))})
					}
				}
			}
			out.Reset()
		}
		const packets = 60
		var got [2][packets]int
		gaveUp, most := [2]int{}, [2]int{}
		var out face.Frames
		next := [2]int{}
		for {
			for e, l := range ends {
				if next[e] < packets {
					wire := data(&testing.T{}, byte(next[e]), 100+next[e]*60)
					if next[e]%3 == 0 {
						wire = interest(byte(next[e]))
					}
					if err := l.Send(now, wire, &ndn.LpFields{PitToken: []byte{byte(next[e])}, HasPathTag: true, NonDiscovery: next[e]%3 == 0}, &out); err != nil {
						t.Fatal(err)
					}
					next[e]++
					carry(1-e, &out)
				}
			}
			// The earliest event.
			at := min(ends[0].Deadline(), ends[1].Deadline())
			for e := range air {
				for _, f := range air[e] {
					at = min(at, f.at)
				}
			}
			if next[0] < packets {
				at = min(at, now+2*ms)
			}
			if at == ndn.Never {
				break
			}
			if at > ndn.Time(time.Hour) {
				t.Fatal("no end")
			}
			now = max(now, at)
			for e, l := range ends {
				due := air[e][:0:0]
				air[e] = slices.DeleteFunc(air[e], func(f flight) bool {
					if f.at <= now {
						due = append(due, f)
					}
					return f.at <= now
				})
				for _, f := range due {
					var p ndn.Packet
					ok, err := l.Receive(now, f.frame, &p)
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						continue
					}
					n := int(p.PitToken[0])
					got[e][n]++
					want := data(&testing.T{}, byte(n), 100+n*60)
					if n%3 == 0 {
						want = interest(byte(n))
					}
					if !bytes.Equal(p.Wire(), want) || !p.HasPathTag || p.NonDiscovery != (n%3 == 0) {
						t.Fatal("a packet has changed")
					}
				}
				l.Tick(now, &out)
				most[e] = max(most[e], l.rel.flying)
				carry(1-e, &out)
				for {
					if _, ok := l.GaveUp(); !ok {
						break
					}
					gaveUp[e]++
				}
			}
		}
		for e := range ends {
			missing := 0
			for _, n := range got[e] {
				if n == 0 {
					missing++
				}
				if n > 1 {
					t.Fatal("a packet came twice")
				}
			}
			if w := cfg.Reliability.Window; most[e] > w && w > 0 || most[e] > 1 && cfg.Reliability.StopAndWait {
				t.Fatalf("%d fragments unacknowledged at once", most[e])
			}
			sender := ends[1-e].Counters()
			if missing > int(sender.RetxExhausted)+int(ends[e].Counters().InReassemblyOld) {
				t.Fatalf("%d missing, %d given up", missing, sender.RetxExhausted)
			}
			if loss == 0 && missing+gaveUp[e] > 0 {
				t.Fatalf("%d missing, %d given up without loss", missing, gaveUp[e])
			}
			if r := ends[e].rel; r.flying != 0 || r.queue.head != nil || r.lost.head != nil || r.queued != 0 || len(r.acks) != 0 {
				t.Fatal("state is left over")
			}
		}
	})
}

func TestSetReliable(t *testing.T) {
	l := New(reliable(Reliability{}))
	send(t, l, 1, interest(1), nil)
	l.SetReliable(true)
	if l.Deadline() == ndn.Never {
		t.Error("turning on what is on forgot something")
	}
	l.SetReliable(false)
	if out := send(t, l, 1, interest(1), nil); l.Reliable() || l.Deadline() != ndn.Never || !bytes.Equal(out.Buf, interest(1)) {
		t.Error("still reliable")
	}
	// Numbers and acknowledgements are ignored then.
	var p ndn.Packet
	frame := send(t, New(reliable(Reliability{})), 1, interest(2), nil)
	for range 2 {
		if ok, err := l.Receive(1, frame.Buf, &p); !ok || err != nil {
			t.Error(ok, err)
		}
	}
	if _, ok := l.GaveUp(); ok || ack(l, 1, 5) != nil {
		t.Error("not ignored")
	}
	l.SetReliable(true)
	if !l.Reliable() {
		t.Error("not reliable")
	}
}

// A peer without the feature's timer does not fill memory.
func TestAcksAreBounded(t *testing.T) {
	l := New(reliable(Reliability{}))
	var p ndn.Packet
	for i := range uint64(3 * maxAcks) {
		h := ndn.LpHeader{HasSequence: true, Sequence: i, HasTx: true, TxSequence: i}
		if _, err := l.Receive(1, ndn.AppendLpPacket(nil, &h, interest(1)), &p); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.rel.acks) != maxAcks || l.Counters().AcksDropped != 2*maxAcks {
		t.Errorf("%d wait, %d dropped", len(l.rel.acks), l.Counters().AcksDropped)
	}
}

// A link whose first packet is lost learns its RTT from the repetition: the
// acknowledgement says which transmission came.
func TestRepetitionsGiveSamples(t *testing.T) {
	l := New(reliable(Reliability{}))
	send(t, l, 1*ms, interest(0), nil)
	now, _ := tick(t, l)
	ack(l, now.Add(20*time.Millisecond), 1)
	at := now.Add(time.Second)
	send(t, l, at, interest(1), nil)
	if d := l.Deadline().Sub(at); d < 40*time.Millisecond || d > 100*time.Millisecond {
		t.Errorf("time-out of %v on a link of 20 ms", d)
	}
}

// A link that became slower than its time-out learns that from acknowledgements
// that come after the repetition, and stops repeating.
func TestLateAcksAreHeard(t *testing.T) {
	l := New(reliable(Reliability{StopAndWait: true}))
	at := ndn.Time(time.Second)
	exchange := func(rtt time.Duration) {
		tx := l.rel.next
		send(t, l, at, interest(1), nil)
		end := at.Add(rtt)
		for l.Deadline() < end {
			tick(t, l)
		}
		ack(l, end, tx)
		at = at.Add(time.Second)
		for l.Deadline() < at {
			tick(t, l)
		}
	}
	for range 20 {
		exchange(3 * time.Millisecond)
	}
	for range 20 {
		exchange(25 * time.Millisecond)
	}
	if n := l.Counters().Retransmitted; n == 0 || n > 6 {
		t.Errorf("%d repetitions", n)
	}
	if c := l.Counters(); c.Acked != 40 || c.RetxExhausted > 0 || l.rel.flying != 0 {
		t.Errorf("%+v", c)
	}
}

// Consumers repeat after a second: the link's first repair comes before.
func TestFirstRepairComesBeforeTheConsumers(t *testing.T) {
	l := New(reliable(Reliability{}))
	send(t, l, 1000*ms, interest(1), nil)
	if at, out := tick(t, l); at != 1250*ms || out.Len() != 1 {
		t.Errorf("%d frames at %v", out.Len(), at)
	}
}

// A peer that starts anew counts from the same Sequence as before.
func TestDuplicatesAreForgotten(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	frames := send(t, a, 1000*ms, interest(1), nil)
	for _, c := range []struct {
		at   ndn.Time
		want int
	}{{1000 * ms, 1}, {1500 * ms, 0}, {60000 * ms, 1}, {60001 * ms, 0}} {
		if got := receive(t, b, c.at, frames); len(got) != c.want {
			t.Errorf("at %v: %d packets, want %d", c.at, len(got), c.want)
		}
	}
}
