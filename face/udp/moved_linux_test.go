package udp

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"ndnpop/face"
	"ndnpop/ndn"
)

// TestAddressGone: a connected socket ends, and says why, when the host has the
// address no more that it sends from. It would hear nothing.
func TestAddressGone(t *testing.T) {
	for _, c := range []struct{ from, to, fromNet, toNet string }{
		{"10.9.9.1", "10.9.9.2", "10.9.9.1/32", "10.9.9.2/32"},
		{"fd09:9::1", "fd09:9::2", "fd09:9::1/128", "fd09:9::2/128"},
	} {
		h := newHost(t)
		h.must(t, "addresses", func() error { return up("lo", c.fromNet, c.toNet) })
		// Somebody has the port, so that nobody refuses.
		h.must(t, "listen", func() error {
			l, err := net.ListenPacket("udp", net.JoinHostPort(c.to, "6363"))
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		})
		var d *connected
		h.must(t, "dial", func() error {
			s, err := Dial(net.JoinHostPort(c.to, "6363"), Options{Local: net.JoinHostPort(c.from, "0")})
			if err == nil {
				d = s.(*connected)
			}
			return err
		})
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(&tally{}) }()
		look := func() (dropped int) {
			d.mu.Lock()
			d.checked = time.Now().Add(-2 * lookEvery) // as if a while had passed
			d.mu.Unlock()
			h.do(func() { dropped = d.Send(&face.Frames{Buf: []byte{byte(ndn.TypeData), 0}, Ends: []int{2}}) })
			return dropped
		}
		if n := look(); n != 0 {
			t.Fatalf("from %s nothing is sent", c.from)
		}
		h.must(t, "removal", func() error {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			a, err := netlink.ParseAddr(c.fromNet)
			if err != nil {
				return err
			}
			return netlink.AddrDel(lo, a)
		})
		look()
		select {
		case err := <-ended:
			if !errors.Is(err, errMoved) {
				t.Errorf("from %s: %v", c.from, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("from %s: it goes on", c.from)
			_ = d.Close()
			<-ended
		}
	}
}
