package run

import (
	"net"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/ndn"
)

// TestAcknowledgesAtRest: a packet that nothing is sent back for is
// acknowledged as well, before its sender repeats it.
func TestAcknowledgesAtRest(t *testing.T) {
	f := start(t, Options{})
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{Reliable: ReliabilityOn})
	peer, err := net.Dial("udp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	link := lp.New(lp.Config{Reliability: lp.Reliability{On: true}})
	out := new(face.Frames)
	if err := link.Send(1, dataWire(t, ndn.MustName("/a/1"), 100), nil, out); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write(out.Frame(0)); err != nil {
		t.Fatal(err)
	}
	_ = peer.SetReadDeadline(time.Now().Add(patience))
	var p ndn.Packet
	for buf := make([]byte, ndn.MaxPacketSize); link.Counters().Acked == 0; {
		n, err := peer.Read(buf)
		if err != nil {
			t.Fatalf("no acknowledgement: %v", err)
		}
		if _, err := link.Receive(2, buf[:n], &p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReliabilityAuto: what is left to the peer is used with a peer elsewhere that
// begins with it, and with a stranger only once he is proven. A face that was
// dialled begins itself. Loopback addresses lose nothing.
func TestReliabilityAuto(t *testing.T) {
	const far, here = "udp4://192.0.2.7:6363", "udp4://127.0.0.1:6363"
	for _, c := range []struct {
		name              string
		uri               string
		stream, stranger  bool
		dialled           bool
		offers, takes     bool
		takesWhenProven   bool
		overruledByUpdate bool
	}{
		{name: "dialled", uri: far, dialled: true, offers: true, takes: true, takesWhenProven: true},
		{name: "made permanent", uri: far, stranger: true, dialled: true, offers: true, takes: true, takesWhenProven: true},
		{name: "on demand, no allowance", uri: far, takes: true, takesWhenProven: true},
		{name: "stranger", uri: far, stranger: true, takesWhenProven: true},
		{name: "loopback", uri: here, dialled: true},
		{name: "loopback, IPv6", uri: "udp6://[::1]:6363"},
		{name: "stream", uri: "tcp4://192.0.2.7:6363", stream: true, dialled: true},
		{name: "overruled", uri: far, dialled: true, overruledByUpdate: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fc := &netFace{link: lp.New(lp.Config{}), uri: c.uri, info: face.Info{RemoteURI: c.uri, Stream: c.stream}}
			fc.persistency = face.PersistencyOnDemand
			if c.dialled {
				fc.persistency = face.PersistencyPermanent
			}
			if c.stranger {
				fc.budget = testBudget(Allowance{})
			}
			fc.setReliable(ReliabilityAuto)
			if c.overruledByUpdate {
				off := ReliabilityOff
				if err := fc.update(FaceUpdate{Reliable: &off}); err != nil {
					t.Fatal(err)
				}
			}
			out := new(face.Frames)
			if err := fc.link.Send(1, interestWire("/a", 1), nil, out); err != nil {
				t.Fatal(err)
			}
			var p ndn.LpPacket
			if err := p.Parse(out.Frame(0)); err != nil || p.HasTx != c.offers {
				t.Errorf("offers: %v, %v", p.HasTx, err)
			}
			begin := func(now ndn.Time) bool {
				var p ndn.Packet
				frame := ndn.AppendLpPacket(nil, &ndn.LpHeader{HasTx: true, TxSequence: 7}, interestWire("/b", 2))
				ok, err := fc.link.Receive(now, frame, &p)
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				if fc.budget != nil {
					fc.budgetInLocked(now, frame, &p, ok)
				}
				return fc.link.Reliable()
			}
			begin(2)
			if got := begin(2); got != c.takes {
				t.Errorf("used with a peer that begins: %v", got)
			}
			if fc.budget != nil {
				fc.budget.prove(3)
				begin(4)
			}
			if got := begin(5); got != c.takesWhenProven {
				t.Errorf("used with a peer that begins and is proven: %v", got)
			}
		})
	}
}
