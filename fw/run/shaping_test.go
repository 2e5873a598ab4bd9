package run

import (
	"fmt"
	"net"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/ndn"
)

// TestInterestsAreShaped: Interests wait for what the link can bring back, leave
// without anything else happening, and are refused when too many wait.
func TestInterestsAreShaped(t *testing.T) {
	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	f := start(t, Options{})
	const waiting, sent = 5, 30
	info, err := f.CreateFace(FaceSpec{
		URI: "udp4://" + peer.LocalAddr().String(), Persistency: face.PersistencyPermanent,
		Shaping: lp.Shaping{Out: 80_000, In: 80_000, Queue: waiting}, // ten Data a second
	})
	if err != nil {
		t.Fatal(err)
	}
	addRoute(t, f, "/far", info.ID)
	a, _ := memApp(t, f, nil)
	_ = peer.SetReadDeadline(time.Now().Add(patience))
	link := lp.New(lp.Config{})
	var p ndn.Packet
	buf := make([]byte, ndn.MaxPacketSize)
	next := func() (from net.Addr, got *ndn.Interest) {
		for {
			n, addr, err := peer.ReadFrom(buf)
			if err != nil {
				return nil, nil
			}
			if ok, _ := link.Receive(1, buf[:n], &p); ok && p.Kind == ndn.KindInterest {
				return addr, &p.Interest
			}
		}
	}
	// The first exchange shows how large Data are.
	a.interest("/far/first", 1)
	addr, in := next()
	if in == nil {
		t.Fatal("the first Interest did not come")
	}
	var out face.Frames
	if err := link.Send(1, dataWire(t, in.Name, 900), &ndn.LpFields{PitToken: p.PitToken}, &out); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.WriteTo(out.Frame(0), addr); err != nil {
		t.Fatal(err)
	}
	a.expect(ndn.KindData, "/far/first")
	for i := range sent {
		a.interest(fmt.Sprintf("/far/%d", i), uint32(i+2))
	}
	// Those that found no room come back at once; the others leave in their turn.
	refused, came := 0, 0
	for ; refused+came < sent; came++ {
		if _, in := next(); in == nil {
			t.Fatalf("%d of %d came and %d were refused", came, sent, refused)
		}
		for more := true; more; {
			select {
			case p := <-a.in:
				if p.kind == ndn.KindNack && p.reason == ndn.NackCongestion {
					refused++
				}
			default:
				more = false
			}
		}
	}
	if refused == 0 || came <= waiting {
		t.Errorf("%d came, %d were refused", came, refused)
	}
	i, ok := f.Face(info.ID)
	if !ok || i.Counters.Drops.OutQueue < uint64(refused) {
		t.Errorf("drops %+v", i.Counters.Drops)
	}
	none := lp.Shaping{}
	if _, err := f.UpdateFace(info.ID, FaceUpdate{Shaping: &none}); err != nil {
		t.Fatal(err)
	}
	for i := range sent {
		a.interest(fmt.Sprintf("/far/again/%d", i), uint32(1000+i))
	}
	for got := range sent {
		if _, in := next(); in == nil {
			t.Fatalf("not shaped any more, %d Interests", got)
		}
	}
}
