package lp

import (
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// heard is a reliable link whose peer has acknowledged packet 0, at 1 ms.
func heard(t *testing.T, r Reliability) *Link {
	t.Helper()
	l := New(reliable(r))
	send(t, l, 1*ms, interest(0), nil)
	ack(l, 1*ms, 0)
	if l.rel.flying != 0 || !l.rel.heard {
		t.Fatal("not acknowledged")
	}
	return l
}

// A repetition is judged by what is acknowledged after it, as any transmission.
func TestRepetitionIsJudgedAnew(t *testing.T) {
	l := New(reliable(Reliability{}))
	for i := range byte(4) {
		send(t, l, 1*ms, interest(i), nil)
	}
	ack(l, 2*ms, 1, 2, 3)
	tick(t, l) // 0 is sent again as 4
	for tx := uint64(5); tx < 8; tx++ {
		send(t, l, 3*ms, interest(byte(tx)), nil)
		ack(l, 4*ms, tx)
		if got, want := l.rel.lost.head != nil, tx == 7; got != want {
			t.Errorf("acknowledged up to %d: lost %v", tx, got)
		}
	}
}

// What is acknowledged late, when it waits to be sent again, is not sent again; and
// it counts once.
func TestLateAckSparesTheRepetition(t *testing.T) {
	l := New(reliable(Reliability{}))
	for i := range byte(4) {
		send(t, l, 1*ms, interest(i), nil)
	}
	ack(l, 2*ms, 1, 2, 3)
	if l.rel.lost.head == nil {
		t.Fatal("not lost")
	}
	ack(l, 2*ms, 0, 0)
	if _, out := tick(t, l); out.Len() != 0 || l.Counters().Retransmitted != 0 || l.Counters().Acked != 4 {
		t.Errorf("%d frames, %+v", out.Len(), l.Counters())
	}
}

// An acknowledgement of a transmission that has not been, or was long ago, is none of
// another one that is kept at its place.
func TestAckOfNothing(t *testing.T) {
	l := New(reliable(Reliability{}))
	send(t, l, 1*ms, interest(0), nil)
	for _, tx := range []uint64{1, history, 2 * history, 1 << 63} {
		ack(l, 2*ms, tx)
	}
	if l.rel.flying != 1 || l.Counters().Acked != 0 {
		t.Errorf("%d in flight, %+v", l.rel.flying, l.Counters())
	}
}

// The acknowledgement of a transmission before the last two says that the packet
// came, but not how long it took: when that one left is not known any more.
func TestOldAckIsNoSample(t *testing.T) {
	l := New(reliable(Reliability{}))
	send(t, l, 1*ms, interest(0), nil)
	tick(t, l)
	now, _ := tick(t, l)
	ack(l, now, 0)
	if l.rel.flying != 0 || l.rel.rtt.ok {
		t.Errorf("%d in flight, sampled %v", l.rel.flying, l.rel.rtt.srtt)
	}
}

// With a fragment its packet is given up, and what else of it is in flight.
func TestGivenUpAsAWhole(t *testing.T) {
	l := New(reliable(Reliability{MaxRetx: 1}))
	l.rel.hear()
	if out := send(t, l, 1*ms, data(t, 1, 6000), nil); out.Len() != 5 {
		t.Fatalf("%d fragments", out.Len())
	}
	ack(l, 11*ms, 1, 2, 3)
	tick(t, l) // 0 leaves again, as 5, and times out long before 4 does
	if _, out := tick(t, l); out.Len() != 0 || l.Counters().RetxExhausted != 1 {
		t.Fatalf("%d frames, %+v", out.Len(), l.Counters())
	}
	if l.rel.flying != 0 || l.rel.bytes != 0 || l.Deadline() != ndn.Never {
		t.Errorf("%d in flight", l.rel.flying)
	}
}

// Interests that were given up and that nobody asks for do not fill memory.
func TestGivenUpIsBounded(t *testing.T) {
	l := heard(t, Reliability{MaxRetx: 1})
	for range maxGivenUp + 100 {
		send(t, l, 2*ms, interest(1), nil)
	}
	for l.Deadline() != ndn.Never {
		tick(t, l)
	}
	n := 0
	for {
		if _, ok := l.GaveUp(); !ok {
			break
		}
		n++
	}
	if n != maxGivenUp || l.Counters().RetxExhausted != maxGivenUp+100 {
		t.Errorf("%d of %d", n, l.Counters().RetxExhausted)
	}
}

// Whatever acknowledgements say, a loss is noticed within four seconds.
func TestTimeoutIsBounded(t *testing.T) {
	l := New(reliable(Reliability{}))
	at := 1 * ms
	send(t, l, at, interest(0), nil)
	ack(l, at.Add(time.Hour), 0)
	at = at.Add(2 * time.Hour)
	send(t, l, at, interest(1), nil)
	if d := l.Deadline().Sub(at); d != 4*time.Second {
		t.Errorf("a timeout of %v", d)
	}
}

// A frame is known for as long as its sender may repeat it: with back-off four
// seconds for three repetitions.
func TestDuplicatesAreKnown(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	frames := send(t, a, 1*ms, interest(1), nil)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {3900 * time.Millisecond, 0}, {8000 * time.Millisecond, 1}} {
		if got := receive(t, b, (1 * ms).Add(c.after), frames); len(got) != c.want {
			t.Errorf("after %v: %d packets, want %d", c.after, len(got), c.want)
		}
	}
}

// What is new waits behind what is to be sent again, and behind what waits.
func TestSendsInTurn(t *testing.T) {
	l := New(reliable(Reliability{Window: 4}))
	for i := range byte(4) {
		send(t, l, 1*ms, interest(i), nil)
	}
	ack(l, 2*ms, 1, 2, 3) // 0 is lost, the window open
	var out face.Frames
	for i := range byte(2) {
		if err := l.Send(2*ms, interest(10+i), nil, &out); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() != 0 {
		t.Fatal("what is new overtakes a repetition")
	}
	waits := New(reliable(Reliability{StopAndWait: true}))
	send(t, waits, 1*ms, interest(0), nil)
	for i := range byte(2) {
		if waits.Send(2*ms, interest(1+i), nil, &out); out.Len() != 0 {
			t.Fatal("what is new overtakes what waits")
		}
		ack(waits, 2*ms, 0)
	}
	_, sent := tick(t, l)
	var p [3]string
	for i := range min(3, sent.Len()) {
		got := receive(t, New(reliable(Reliability{})), 3*ms, &face.Frames{Buf: sent.Frame(i), Ends: []int{len(sent.Frame(i))}})
		p[i] = string(got[0])
	}
	if sent.Len() != 3 || p != [3]string{string(interest(0)), string(interest(10)), string(interest(11))} {
		t.Errorf("%d frames: %x", sent.Len(), p)
	}
}

// Acknowledgements ride as far as there is room beside a fragment.
func TestAcksLeaveRoom(t *testing.T) {
	a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
	for i := range byte(50) {
		receive(t, b, 1*ms, send(t, a, 1*ms, interest(i), nil))
	}
	acks := 0
	for _, size := range []int{1000, 5000} {
		out := send(t, b, 2*ms, data(t, 1, size), nil)
		for i := range out.Len() {
			if n := len(out.Frame(i)); n > 1400 {
				t.Errorf("a frame of %d bytes", n)
			}
			_, rode := txOf(t, out.Frame(i))
			acks += len(rode)
		}
	}
	if acks != 50 {
		t.Errorf("%d acknowledgements rode", acks)
	}
}
