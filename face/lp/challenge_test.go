package lp

import (
	"testing"

	"ndnpop/face"
	"ndnpop/ndn"
)

// TestChallenge: a link sends a challenge when told to, its peer sends it back
// with the next packet, once, and both work with fragments and reliability.
func TestChallenge(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		cfg := Config{Fragment: true, MTU: 300, Reliability: Reliability{On: reliable}}
		a, b := New(cfg), New(cfg)
		var out face.Frames
		send := func(from, to *Link, size int) (challenges, responses int, answer uint64) {
			out.Reset()
			if err := from.Send(1, data(t, 1, size), nil, &out); err != nil {
				t.Fatal(err)
			}
			var p ndn.Packet
			for i := range out.Len() {
				var in ndn.LpPacket
				if err := in.Parse(out.Frame(i)); err != nil {
					t.Fatal(err)
				}
				if in.HasChallenge {
					challenges++
				}
				if in.HasResponse {
					responses++
				}
				ok, err := to.Receive(1, out.Frame(i), &p)
				if err != nil || ok != (i == out.Len()-1) {
					t.Fatalf("frame %d of %d: %v, %v", i, out.Len(), ok, err)
				}
				if n, ok := to.Response(); ok {
					answer = n
				}
			}
			return
		}
		for _, size := range []int{60, 2000} {
			if c, r, _ := send(a, b, size); c != 0 || r != 0 {
				t.Errorf("unasked: %d challenges, %d responses", c, r)
			}
			a.Challenge(42)
			if c, _, _ := send(a, b, size); c != 1 {
				t.Errorf("%d challenges", c)
			}
			if _, r, n := send(b, a, size); r != 1 || n != 42 {
				t.Errorf("%d responses, the last %d", r, n)
			}
			if _, r, _ := send(b, a, size); r != 0 {
				t.Errorf("%d responses again", r)
			}
		}
	}
}

// TestResponseYields: on a stream a packet that fits only without it is sent
// without.
func TestResponseYields(t *testing.T) {
	l := New(Config{})
	var p ndn.Packet
	w := ndn.AppendLpPacket(nil, &ndn.LpHeader{HasChallenge: true, Challenge: 1}, data(t, 1, 60))
	if ok, err := l.Receive(1, w, &p); !ok || err != nil {
		t.Fatal(ok, err)
	}
	var out face.Frames
	big := data(t, 1, ndn.MaxPacketSize-12)
	if err := l.Send(1, big, &ndn.LpFields{PitToken: []byte{1}}, &out); err != nil || len(out.Frame(0)) > ndn.MaxPacketSize {
		t.Errorf("%v, %d bytes", err, len(out.Frame(0)))
	}
}
