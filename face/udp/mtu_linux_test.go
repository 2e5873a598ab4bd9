package udp

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"ndnpop/face"
	"ndnpop/ndn"
)

// host runs functions in a network namespace of its own.
type host struct {
	ns  netns.NsHandle
	run chan func()
}

func newHost(t *testing.T) *host {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	h := &host{run: make(chan func())}
	ready := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		var err error
		h.ns, err = netns.New()
		ready <- err
		for f := range h.run {
			f()
		}
	}()
	if err := <-ready; err != nil {
		close(h.run)
		t.Skipf("no network namespaces here: %v", err)
	}
	t.Cleanup(func() {
		close(h.run)
		h.ns.Close()
	})
	return h
}

// do runs f in the namespace, and waits.
func (h *host) do(f func()) {
	done := make(chan struct{})
	h.run <- func() { defer close(done); f() }
	<-done
}

func (h *host) must(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	h.do(func() { err = f() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func up(name string, addrs ...string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		// No duplicate address detection, which takes a second.
		addr.Flags = 0x02
		if err := netlink.AddrAdd(l, addr); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(l)
}

func setMTU(name string, mtu int) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(l, mtu)
}

func defaultRoute(gw string) error {
	dst := "0.0.0.0/0"
	if net.ParseIP(gw).To4() == nil {
		dst = "::/0"
	}
	_, ipnet, err := net.ParseCIDR(dst)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Dst: ipnet, Gw: net.ParseIP(gw)})
}

func write(path, value string) error { return os.WriteFile(path, []byte(value), 0o644) }

// tally is a Receiver that tells the sizes of frames.
type tally struct{ frames chan int }

func (c *tally) Receive(frames [][]byte) {
	for _, f := range frames {
		c.frames <- len(f)
	}
}
func (c *tally) Flush()       {}
func (c *tally) Closed(error) {}

// A path with a narrow link behind a router: ICMP lowers the MTU of the face,
// which lives, and what fits gets through. Then the link widens.
func TestMTUFollowsThePath(t *testing.T) {
	for _, c := range []struct {
		name         string
		a, ra, rb, b string
		overhead     int
		listens      bool // the sender is a peer of a Listener
	}{
		{"4", "10.9.1.1/24", "10.9.1.2/24", "10.9.2.2/24", "10.9.2.1/24", 28, false},
		{"6", "fd09:1::1/64", "fd09:1::2/64", "fd09:2::2/64", "fd09:2::1/64", 48, false},
		{"4 listener", "10.9.1.1/24", "10.9.1.2/24", "10.9.2.2/24", "10.9.2.1/24", 28, true},
		{"6 listener", "fd09:1::1/64", "fd09:1::2/64", "fd09:2::2/64", "fd09:2::1/64", 48, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, r, b := newHost(t), newHost(t), newHost(t)
			veth := func(x, y *host, nx, ny string) {
				r.must(t, "link", func() error {
					v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: nx, MTU: 9000}, PeerName: ny, PeerMTU: 9000}
					if err := netlink.LinkAdd(v); err != nil {
						return err
					}
					for name, h := range map[string]*host{nx: x, ny: y} {
						if h == r {
							continue
						}
						l, err := netlink.LinkByName(name)
						if err == nil {
							err = netlink.LinkSetNsFd(l, int(h.ns))
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			veth(a, r, "a0", "ra0")
			veth(b, r, "b0", "rb0")
			ip := func(s string) string { i, _, _ := net.ParseCIDR(s); return i.String() }
			a.must(t, "a", func() error { return up("a0", c.a) })
			b.must(t, "b", func() error { return up("b0", c.b) })
			r.must(t, "r", func() error {
				if err := up("ra0", c.ra); err != nil {
					return err
				}
				if err := up("rb0", c.rb); err != nil {
					return err
				}
				if err := write("/proc/sys/net/ipv4/ip_forward", "1"); err != nil {
					t.Skipf("cannot forward: %v", err)
				}
				return write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
			})
			a.must(t, "route", func() error { return defaultRoute(ip(c.ra)) })
			b.must(t, "route", func() error { return defaultRoute(ip(c.rb)) })
			// The narrow link.
			r.must(t, "mtu", func() error { return setMTU("rb0", 1500) })

			// d sends from a to b.
			d, got, ended := link(t, a, b, ip(c.a), ip(c.b), c.listens)

			send := func(size, n int) (dropped int) {
				var f face.Frames
				for range n {
					f.Buf = append(f.Buf, make([]byte, size)...)
					f.Buf[len(f.Buf)-size] = byte(ndn.TypeData)
					f.End()
				}
				a.do(func() { dropped = d.Send(&f) })
				return dropped
			}
			mtu := func() (m int) { a.do(func() { m = d.MTU() }); return m }
			if m := mtu(); m != ndn.MaxPacketSize {
				t.Fatalf("MTU %d at first", m)
			}
			want := 1500 - c.overhead
			for end := time.Now().Add(10 * time.Second); mtu() != want; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("MTU %d, not %d", mtu(), want)
				}
				send(8000, 1)
			}
			// Also of too large frames in a batch only these are lost.
			if n := send(8000, 5); n != 5 {
				t.Errorf("%d of 5 too large frames were dropped", n)
			}
			if n := send(mtu(), 20); n != 0 {
				t.Errorf("%d of 20 frames that fit were dropped", n)
			}
			for i := range 20 {
				select {
				case n := <-got.frames:
					if n != want {
						t.Errorf("frame of %d bytes", n)
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("%d of 20 frames arrived", i)
				case err := <-ended:
					ended <- err
					t.Fatalf("the face ended: %v", err)
				}
			}
			// Our own link narrows further, and widens.
			a.must(t, "mtu", func() error { return setMTU("a0", 1300) })
			send(want, 2)
			if m := mtu(); m != 1300-c.overhead {
				t.Errorf("MTU %d behind a link of 1300", m)
			}
			a.must(t, "mtu", func() error { return setMTU("a0", 9000) })
			e := endpointOf(d)
			e.mu.Lock()
			e.checked = time.Time{} // as if half a minute had passed
			e.mu.Unlock()
			send(100, 1)
			// The kernel may still remember the router's word, for ten minutes.
			if m := mtu(); m <= 1300-c.overhead {
				t.Errorf("MTU %d after the link widened", m)
			}
		})
	}
}

func endpointOf(tr face.Transport) *endpoint {
	if p, ok := tr.(*peer); ok {
		return &p.endpoint
	}
	return &tr.(*connected).endpoint
}

// link makes a face from a to b, and serves both its ends until the test ends.
// One of them listens.
func link(t *testing.T, a, b *host, ipA, ipB string, aListens bool) (tx face.Transport, got *tally, ended chan error) {
	t.Helper()
	lh, dh, addr := b, a, net.JoinHostPort(ipB, "6363")
	if aListens {
		lh, dh, addr = a, b, net.JoinHostPort(ipA, "6363")
	}
	var l *Listener
	var d face.Server
	lh.must(t, "listen", func() (err error) {
		l, err = Listen(addr, Options{})
		return err
	})
	dh.must(t, "dial", func() (err error) {
		d, err = Dial(addr, Options{})
		return err
	})
	ended = make(chan error, 2)
	got = &tally{frames: make(chan int, 1000)}
	accepted := make(chan face.Transport, 1)
	ignore := &tally{frames: make(chan int, 1000)}
	lr, dr := face.Receiver(got), face.Receiver(ignore)
	if aListens {
		lr, dr = ignore, got
	}
	go func() {
		ended <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr
			return lr, nil
		})
	}()
	go func() { ended <- d.Serve(dr) }()
	t.Cleanup(func() { d.Close(); l.Close(); <-ended; <-ended })
	if !aListens {
		return d, got, ended
	}
	// What comes before the neighbours know each other may be lost.
	for end := time.Now().Add(10 * time.Second); ; {
		dh.do(func() { d.Send(&face.Frames{Buf: []byte{byte(ndn.TypeData), 0}, Ends: []int{2}}) })
		select {
		case tx = <-accepted:
			return tx, got, ended
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("no peer")
		}
	}
}
