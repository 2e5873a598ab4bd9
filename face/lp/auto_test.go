package lp

import (
	"errors"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

func auto(offer bool) Config {
	return Config{Fragment: true, MTU: 1400, FirstSequence: 100, Reliability: Reliability{Auto: true, Offer: offer}}
}

// offered reports whether a frame has a TxSequence.
func offered(tb testing.TB, frame []byte) bool {
	tb.Helper()
	var p ndn.LpPacket
	if err := p.Parse(frame); err != nil {
		tb.Fatal(err)
	}
	return p.HasTx
}

// Two links that leave it to each other use the feature from the first
// acknowledgement of an offer on, whichever kind of packet it came with.
func TestAutoMeetsAuto(t *testing.T) {
	for _, wire := range [][]byte{interest(1), data(t, 1, 5000)} {
		a, b := New(auto(true)), New(auto(false))
		if got := receive(t, b, 1*ms, send(t, a, 1*ms, wire, nil)); len(got) != 1 || !b.Reliable() || a.Reliable() {
			t.Fatalf("%d packets, used by b %v, by a %v", len(got), b.Reliable(), a.Reliable())
		}
		now, acks := tick(t, b)
		receive(t, a, now, acks)
		if !a.Reliable() || !a.rel.heard || !b.rel.heard {
			t.Fatal("an acknowledgement did not turn it on")
		}
		if a.reas.cfg.Timeout < repairTime || b.reas.cfg.Timeout < repairTime {
			t.Error("fragments do not wait for repair")
		}
		// What is lost now is repaired, both ways.
		for _, l := range [][2]*Link{{a, b}, {b, a}} {
			send(t, l[0], now, data(t, 2, 5000), nil)
			var got [][]byte
			for i := 0; len(got) == 0 && i < 10; i++ {
				var frames *face.Frames
				now, frames = tick(t, l[0])
				got = receive(t, l[1], now, frames)
			}
			if len(got) != 1 {
				t.Fatal("not repaired")
			}
		}
	}
}

// A peer without the feature gets it offered, less and less often, and nothing
// waits for it.
func TestAutoMeetsNothing(t *testing.T) {
	a, b := New(auto(true)), New(Config{Fragment: true})
	n := 0
	for now := 1 * ms; now < 10_000*ms; now += 10 * ms {
		frames := send(t, a, now, interest(1), nil)
		if frames.Len() != 1 || len(receive(t, b, now, frames)) != 1 {
			t.Fatal("the packet did not come")
		}
		if offered(t, frames.Frame(0)) {
			n++
		}
		receive(t, a, now, send(t, b, now, data(t, 1, 100), nil))
	}
	if a.Deadline() != ndn.Never || a.Reliable() || a.Counters().Retransmitted > 0 {
		t.Error("something waits for a peer without the feature")
	}
	if n < firstOffers || n > firstOffers+11 {
		t.Errorf("offered %d times", n)
	}
	silent := New(auto(false))
	if offered(t, send(t, silent, 1, interest(1), nil).Frame(0)) {
		t.Error("offered without Offer")
	}
}

// SetReliable overrules what is left to the peer, and SetAuto leaves it again.
func TestAutoIsOverruled(t *testing.T) {
	a, b := New(auto(true)), New(auto(false))
	b.SetReliable(false)
	receive(t, b, 1, send(t, a, 1, interest(1), nil))
	if b.Reliable() {
		t.Error("on although it was turned off")
	}
	b.SetAuto(false)
	receive(t, b, 2, send(t, a, 2, interest(2), nil))
	if !b.Reliable() {
		t.Error("off although it is left to the peer")
	}
	send(t, b, 3, interest(3), nil)
	tx := b.rel.next
	b.mark.slow = true
	b.SetReliable(false)
	if b.mark.slow {
		t.Error("a queue is known of no acknowledgements")
	}
	b.SetReliable(true)
	if b.rel.next < tx {
		t.Error("numbers of transmissions are used again")
	}
}

// A peer that had the feature and now sends packets without it, having been
// started anew, is not waited for any more.
func TestPeerLosesTheFeature(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	receive(t, b, 1*ms, send(t, a, 1*ms, interest(1), nil))
	now, acks := tick(t, b)
	receive(t, a, now, acks)
	other := New(Config{Fragment: true})
	for range 40 {
		now += 10_000 * ms
		receive(t, other, now, send(t, a, now, interest(2), nil))
		receive(t, a, now, send(t, other, now, data(t, 2, 100), nil))
		for a.Deadline() != ndn.Never && a.Deadline() < now+9_000*ms {
			tick(t, a)
			for {
				if _, ok := a.GaveUp(); !ok {
					break
				}
			}
		}
	}
	before := a.Counters().Retransmitted
	send(t, a, now, interest(3), nil)
	if a.Deadline() != ndn.Never || a.Counters().Retransmitted != before || before > 3*deafAfter {
		t.Errorf("%d repetitions, something is due: %v", before, a.Deadline() != ndn.Never)
	}
	// Until it is heard again.
	if err := ack(a, now, a.rel.next-1); err != nil {
		t.Fatal(err)
	}
	send(t, a, now, interest(4), nil)
	if a.Deadline() == ndn.Never {
		t.Error("it is back, and not waited for")
	}
}

// A queue on the way of a reliable link, which the sender sees by nothing but
// the time of acknowledgements, is marked as one of its own would be. Time that
// little is under way in is none.
func TestDelayIsMarked(t *testing.T) {
	const base, queued = 50 * time.Millisecond, 80 * time.Millisecond
	cfg := Config{Reliability: Reliability{On: true, AckDelay: -1}}
	a, b := New(cfg), New(cfg)
	now := 1 * ms
	// A Data leaves in each ms, and is acknowledged after a round trip: 80 at
	// once are twice the threshold, of which 3/8 is in the queue.
	type sent struct {
		at     ndn.Time
		frames *face.Frames
	}
	var way []sent
	every, size := 1, 4500
	marks := func(rtt, d time.Duration) (n uint64) {
		n = a.Counters().OutMarked
		for i, end := 0, now.Add(d); now < end; i++ {
			if i%every == 0 {
				way = append(way, sent{now, send(t, a, now, data(t, 1, size), nil)})
			}
			for len(way) > 0 && now.Sub(way[0].at) >= rtt {
				receive(t, b, now, way[0].frames)
				frames := new(face.Frames)
				b.Tick(now, frames)
				receive(t, a, now, frames)
				way = way[1:]
			}
			now += 1 * ms
		}
		return a.Counters().OutMarked - n
	}
	if n := marks(base, 5*time.Second); n > 0 {
		t.Errorf("%d marks without a queue", n)
	}
	if n := marks(base+9*time.Millisecond, time.Second); n > 0 {
		t.Errorf("%d marks for what the peer may keep an acknowledgement", n)
	}
	if n := marks(queued, 120*time.Millisecond); n > 0 {
		t.Errorf("%d marks within the first interval", n)
	}
	// CoDel's law: 100 ms, then 100/√2, 100/√3 and so on.
	if n := marks(queued, time.Second); n < 8 || n > 50 {
		t.Errorf("%d marks in a second", n)
	}
	marks(base, 200*time.Millisecond)
	if n := marks(base, time.Second); n > 0 {
		t.Errorf("%d marks after the queue", n)
	}
	every = 4 // a quarter: 50 kB in the queue
	if n := marks(queued, 5*time.Second); n > 0 {
		t.Errorf("%d marks although little is under way", n)
	}
	every = 1
	// A path that has become longer is known as that after two periods at most.
	marks(queued, 2*delayPeriod)
	if n := marks(queued, time.Second); n > 0 {
		t.Errorf("%d marks on a path that is longer now", n)
	}
}

// A queue that was there before the link failed is not marked on what is sent
// when nothing has been under way for long.
func TestOldDelayIsForgotten(t *testing.T) {
	cfg := Config{Reliability: Reliability{On: true, AckDelay: -1}}
	a, b := New(cfg), New(cfg)
	now := 1 * ms
	var way []*face.Frames
	arrive := func() {
		receive(t, b, now, way[0])
		frames := new(face.Frames)
		b.Tick(now, frames)
		receive(t, a, now, frames)
		way = way[1:]
	}
	for i := range 1000 {
		way = append(way, send(t, a, now, data(t, 1, 4500), nil))
		// The first go through at once; then a queue stands.
		for n := 1 + min(i, 50)/50*70; len(way) >= n; {
			arrive()
		}
		now += 1 * ms
	}
	if a.Counters().OutMarked == 0 {
		t.Fatal("no marks of a queue")
	}
	for a.Deadline() != ndn.Never { // the link fails
		now, _ = tick(t, a)
	}
	n := a.Counters().OutMarked
	now = now.Add(time.Minute)
	for range 80 {
		send(t, a, now, data(t, 1, 4500), nil)
	}
	if n := a.Counters().OutMarked - n; n > 0 {
		t.Errorf("%d marks after a minute", n)
	}
}

// What is offered makes no packet too large for one frame, nor takes its fields.
func TestOfferNeedsNoRoom(t *testing.T) {
	for _, fragment := range []bool{true, false} {
		for size := 1300; size <= 1400; size++ {
			cfg := auto(true)
			cfg.Fragment = fragment
			plain := cfg
			plain.Reliability = Reliability{}
			a, b := New(cfg), New(plain)
			wire, fields := data(t, 1, size), &ndn.LpFields{PitToken: []byte{1, 2, 3, 4}, CongestionMark: 1}
			var x, y face.Frames
			errA, errB := a.Send(1, wire, fields, &x), b.Send(1, wire, fields, &y)
			if !errors.Is(errA, errB) || x.Len() != y.Len() {
				t.Errorf("%d bytes, fragments %v: %v in %d frames, not %v in %d", size, fragment, errA, x.Len(), errB, y.Len())
				continue
			}
			for i := range x.Len() {
				var p, q ndn.LpPacket
				if p.Parse(x.Frame(i)) != nil || q.Parse(y.Frame(i)) != nil {
					t.Fatal("no frames")
				}
				if len(p.PitToken) != len(q.PitToken) || p.CongestionMark != q.CongestionMark {
					t.Errorf("%d bytes, fragments %v: an offer took a field's place", size, fragment)
				}
			}
		}
	}
}

// What a window needed once is not kept for ever, and a peer that acknowledges
// when it likes does not have it kept for long.
func TestReliabilityForgetsAWindow(t *testing.T) {
	a := New(Config{Fragment: true, MTU: 1400, Reliability: Reliability{On: true}})
	now := 1 * ms
	for range 3000 {
		send(t, a, now, data(t, 1, 1300), nil)
	}
	now = now.Add(time.Hour)
	for tx := range uint64(3000) {
		if err := ack(a, now, tx); err != nil {
			t.Fatal(err)
		}
	}
	if a.rel.flying != 0 || a.rel.bytes != 0 {
		t.Fatalf("%d fragments, %d bytes in flight", a.rel.flying, a.rel.bytes)
	}
	kept := 0
	for f := a.rel.freeFrag; f != nil; f = f.next {
		kept++
	}
	for i := range a.rel.ring {
		if f := a.rel.ring[i].f; f != nil && f.body != nil {
			kept++ // perhaps again
		}
	}
	packets := 0
	for p := a.rel.freePkt; p != nil; p = p.next {
		packets++
	}
	if kept > 2*maxFree || kept < maxFree || packets != maxFree {
		t.Errorf("the memory of %d fragments and %d packets is kept", kept, packets)
	}
	if rto := a.rel.rtt.rto(); rto > mostRTO {
		t.Errorf("time-out of %v", rto)
	}
}

// heardOnce is a reliable link whose peer has shown the feature.
func heardOnce(t *testing.T) (*Link, ndn.Time) {
	t.Helper()
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	receive(t, b, 1*ms, send(t, a, 1*ms, interest(1), nil))
	now, acks := tick(t, b)
	receive(t, a, now, acks)
	if !a.rel.heard {
		t.Fatal("not heard")
	}
	return a, now
}

// fail sends an Interest that is lost, with all repetitions, and reports whether
// the link gave up on it.
func fail(t *testing.T, a *Link, now ndn.Time) (later ndn.Time, gaveUp bool) {
	t.Helper()
	send(t, a, now, interest(2), nil)
	for a.Deadline() != ndn.Never {
		now, _ = tick(t, a)
		for {
			_, ok := a.GaveUp()
			if !ok {
				break
			}
			gaveUp = true
		}
	}
	return now + 1*ms, gaveUp
}

// A link that fails for long is waited for all the time, although some packets of
// the peer came without the feature (others' on the same address, say), and keeps
// nothing of what it gave up.
func TestLongOutage(t *testing.T) {
	a, now := heardOnce(t)
	plain := New(Config{Fragment: true})
	for range deafAfter - 1 {
		receive(t, a, now, send(t, plain, now, data(t, 2, 100), nil))
	}
	for i := range 2000 {
		var ok bool
		if now, ok = fail(t, a, now); !ok {
			t.Fatalf("Interest %d was not waited for", i)
		}
	}
	if n := len(a.rel.ring); n > 2*history {
		t.Errorf("room for %d transmissions is kept", n)
	}
}

// A peer without the feature is deaf, not gone: that it answers nothing for long,
// as Interests for what is not there yet, is no reason to report each of them once
// the first has shown what the peer is. Where nothing at all comes, all are
// reported.
func TestDeafIsNotGone(t *testing.T) {
	const interests = 50
	for _, alive := range []bool{false, true} {
		l, plain := New(reliable(Reliability{})), New(Config{Fragment: true})
		for i := range interests {
			send(t, l, 1*ms, interest(byte(i)), nil)
		}
		if alive {
			receive(t, l, 2*ms, send(t, plain, 2*ms, data(t, 100, 100), nil))
		}
		told := 0
		for l.Deadline() != ndn.Never {
			tick(t, l)
			for _, ok := l.GaveUp(); ok; _, ok = l.GaveUp() {
				told++
			}
		}
		if want := map[bool]int{false: interests, true: 1}[alive]; told != want || l.rel.flying != 0 || !l.rel.deaf() {
			t.Errorf("alive %v: %d of %d Interests reported, %d in flight", alive, told, interests, l.rel.flying)
		}
	}
}

// A single packet that was given up does not make a peer deaf that was quick to
// drop the feature: that takes several time-outs.
func TestFewTimeoutsMeanNothing(t *testing.T) {
	a, now := heardOnce(t)
	plain := New(Config{Fragment: true})
	for range deafAfter {
		receive(t, a, now, send(t, plain, now, data(t, 2, 100), nil))
	}
	now, _ = fail(t, a, now) // four time-outs
	if _, ok := fail(t, a, now); !ok {
		t.Error("the second Interest was not waited for")
	}
}

// Where a round trip is longer than CoDel's interval, a queue must stand for a
// round trip until it is marked.
func TestLongLinkIsMarkedAfterARoundTrip(t *testing.T) {
	cfg := Marking{Threshold: 1000, Interval: 100 * time.Millisecond}
	var m marker
	var d queueDelay
	now := 1000 * ms
	m.delay(now, 400*time.Millisecond, 1<<20, &d, &cfg)
	for range slowSamples {
		m.delay(now, 600*time.Millisecond, 1<<20, &d, &cfg)
	}
	if !m.slow || m.now(now+399*ms, &cfg) || !m.now(now+400*ms, &cfg) {
		t.Errorf("slow %v, the first mark is due after %v", m.slow, m.next.Sub(now))
	}
}
