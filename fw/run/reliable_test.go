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
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{Reliable: true})
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
