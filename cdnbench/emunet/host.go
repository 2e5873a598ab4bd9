//go:build linux

package emunet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Host is a machine of the emulated network: a network namespace with lo up.
// Its methods may be called from any goroutine.
type Host struct {
	net  *Network
	name string
	id   string // as in /proc/PID/ns/net

	life sync.RWMutex // guards the handles, which are gone after close
	ns   netns.NsHandle
	nl   *netlink.Handle

	// Children start on the host's own thread: it lives as long as the Network,
	// so they can be told to die with it.
	calls chan func()
	ended <-chan struct{}

	mu    sync.Mutex
	links []*End
	cmds  []*Cmd
	cc    string
}

// newHost creates the namespace and the thread that stays in it.
func newHost(n *Network, name string) (h *Host, err error) {
	h = &Host{net: n, name: name, ns: netns.None(), calls: make(chan func())}
	ready := make(chan error)
	h.ended = onThread(func() bool {
		var err error
		h.ns, err = netns.NewNamed(n.prefix + name)
		if err != nil {
			err = fmt.Errorf("create namespace: %w", err)
		}
		ready <- err
		if err != nil {
			return false
		}
		for f := range h.calls {
			f()
		}
		return false
	})
	if err := <-ready; err != nil {
		return nil, errors.Join(err, removeNamespace(n.prefix+name))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.id, err = nsID(filepath.Join(nsDir, n.prefix+name)); err != nil {
		return h, err
	}
	if h.nl, err = netlink.NewHandleAt(h.ns, unix.NETLINK_ROUTE); err != nil {
		return h, fmt.Errorf("netlink: %w", err)
	}
	lo, err := h.nl.LinkByName("lo")
	if err == nil {
		err = h.nl.LinkSetUp(lo)
	}
	if err != nil {
		return h, fmt.Errorf("lo: %w", err)
	}
	return h, h.defaults()
}

// defaults make runs repeatable: nothing is sent that nobody asked for, no TCP
// connection learns from an earlier one, and a pulled cable refuses at once.
func (h *Host) defaults() error {
	for _, s := range [][2]string{
		{"net.ipv4.tcp_no_metrics_save", "1"},
		{"net.ipv4.conf.all.rp_filter", "0"}, // asymmetric paths are allowed
		{"net.ipv4.conf.default.rp_filter", "0"},
		{"net.ipv4.conf.all.ignore_routes_with_linkdown", "1"},
		{"net.ipv4.conf.default.ignore_routes_with_linkdown", "1"},
	} {
		if err := h.Sysctl(s[0], s[1]); err != nil {
			return err
		}
	}
	// Router solicitations and listener reports; no IPv6 at all is fine too.
	if err := h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// close kills what runs in the host and removes it.
func (h *Host) close() error {
	errs := []error{removeNamespace(h.net.prefix + h.name)}
	h.mu.Lock()
	cmds := slices.Clone(h.cmds)
	h.mu.Unlock()
	for _, c := range cmds {
		c.Wait() // they are dead: the status is for whoever asks
	}
	close(h.calls)
	<-h.ended
	h.life.Lock()
	defer h.life.Unlock()
	if h.nl != nil {
		h.nl.Close()
		h.nl = nil
	}
	return errors.Join(append(errs, h.ns.Close())...)
}

// netlink runs f with the handle of the host. A handle that was closed would
// work on the namespace of the caller.
func (h *Host) netlink(f func(*netlink.Handle) error) error {
	h.life.RLock()
	defer h.life.RUnlock()
	if h.nl == nil {
		return ErrClosed
	}
	return f(h.nl)
}

// enter moves the calling thread into the host.
func (h *Host) enter() error {
	h.life.RLock()
	defer h.life.RUnlock()
	if !h.ns.IsOpen() {
		return ErrClosed
	}
	return netns.Set(h.ns)
}

// Name returns the name given to AddHost.
func (h *Host) Name() string { return h.name }

// Namespace returns the name of the network namespace, for `ip netns exec`.
func (h *Host) Namespace() string { return h.net.prefix + h.name }

// Ends returns the host's ends of links, in the order in which they were added.
func (h *Host) Ends() []*End {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.links)
}

// Addr returns the address of the host's first link, the zero Addr without one.
func (h *Host) Addr() netip.Addr {
	if e := h.Ends(); len(e) > 0 {
		return e[0].Prefix.Addr()
	}
	return netip.Addr{}
}

// Do runs f on a thread that is in the host. Sockets opened by f stay there;
// goroutines started by f do not run there, so a Dial must be of a literal
// address, and a dialling or listening library must not start its own.
func (h *Host) Do(f func() error) error { return inNamespace(h.enter, f) }

// onHostThread runs f on the host's own thread.
func (h *Host) onHostThread(f func() error) (err error) {
	if h.net.closed() {
		return ErrClosed
	}
	done := make(chan struct{})
	select {
	case h.calls <- func() { err = f(); close(done) }:
		<-done
		return err
	case <-h.ended:
		return ErrClosed
	}
}

// Sysctl sets a parameter of the host, as sysctl(8): "net.ipv4.tcp_rmem". A few
// are refused outside the first namespace or are missing from it; the congestion
// control is set with SetCongestionControl.
func (h *Host) Sysctl(key, value string) error {
	path := "/proc/sys/" + strings.ReplaceAll(key, ".", "/")
	err := h.Do(func() error { return os.WriteFile(path, []byte(value), 0) })
	if err != nil {
		return fmt.Errorf("sysctl %s = %s in %s: %w", key, value, h.name, err)
	}
	return nil
}

// SetTCPBuffers sets the largest send and receive buffer of TCP in bytes and
// leaves the others at the kernel's values.
func (h *Host) SetTCPBuffers(receive, send int) error {
	if err := h.Sysctl("net.ipv4.tcp_rmem", fmt.Sprintf("4096 131072 %d", receive)); err != nil {
		return err
	}
	return h.Sysctl("net.ipv4.tcp_wmem", fmt.Sprintf("4096 16384 %d", send))
}

// Route is a path to a destination.
type Route struct {
	Dst        netip.Prefix
	Via        netip.Addr // the neighbour's address on a shared link
	Congestion string     // TCP congestion control; empty: that of SetCongestionControl
	InitCwnd   int        // first congestion window in segments; 0 is the kernel's
}

// AddRoute adds a route or replaces the one to the same destination.
func (h *Host) AddRoute(r Route) error {
	h.mu.Lock()
	if r.Congestion == "" {
		r.Congestion = h.cc
	}
	h.mu.Unlock()
	err := h.netlink(func(nl *netlink.Handle) error {
		return nl.RouteReplace(&netlink.Route{Dst: ipNet(r.Dst), Gw: r.Via.AsSlice(), Congctl: r.Congestion, InitCwnd: r.InitCwnd})
	})
	if err != nil {
		return fmt.Errorf("route to %s via %s in %s: %w", r.Dst, r.Via, h.name, err)
	}
	return nil
}

// SetCongestionControl makes new TCP connections of the host, dialled and
// accepted, use an algorithm, on all routes that exist now or are added with
// AddRoute. An unknown one fails and lists the choices.
func (h *Host) SetCongestionControl(name string) error {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return err
	}
	choices := strings.Fields(string(b))
	slices.Sort(choices)
	if !slices.Contains(choices, name) {
		return fmt.Errorf("congestion control %q: this kernel has %s", name, strings.Join(choices, ", "))
	}
	h.mu.Lock()
	h.cc = name
	h.mu.Unlock()
	if err := h.changeRoutes(func(r *netlink.Route) { r.Congctl = name }); err != nil {
		return fmt.Errorf("congestion control %s in %s: %w", name, h.name, err)
	}
	return nil
}

// SetInitCwnd makes new TCP connections of the host, dialled and accepted, start
// with so many segments, on all routes that exist now; 0 is the kernel's number.
func (h *Host) SetInitCwnd(segments int) error {
	if err := h.changeRoutes(func(r *netlink.Route) { r.InitCwnd = segments }); err != nil {
		return fmt.Errorf("first window of %d in %s: %w", segments, h.name, err)
	}
	return nil
}

// changeRoutes changes all routes but those to groups and neighbours' own.
func (h *Host) changeRoutes(change func(*netlink.Route)) error {
	return h.netlink(func(nl *netlink.Handle) error {
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			routes, err := nl.RouteList(nil, family)
			if err != nil {
				return err
			}
			for _, r := range routes {
				if r.Dst != nil && (r.Dst.IP.IsMulticast() || r.Dst.IP.IsLinkLocalUnicast()) {
					continue
				}
				change(&r)
				if err := nl.RouteReplace(&r); err != nil {
					return fmt.Errorf("route to %s: %w", r.Dst, err)
				}
			}
		}
		return nil
	})
}

// AddAddress adds an address to a device, such as "lo" or that of an End.
func (h *Host) AddAddress(device string, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		if err := h.Sysctl("net.ipv6.conf."+device+".disable_ipv6", "0"); err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
	}
	err := h.netlink(func(nl *netlink.Handle) error {
		l, err := nl.LinkByName(device)
		if err != nil {
			return err
		}
		return nl.AddrReplace(l, a)
	})
	if err != nil {
		return fmt.Errorf("address %s on %s in %s: %w", p, device, h.name, err)
	}
	return nil
}

// Processes lists the processes in the host, however they were started.
func (h *Host) Processes() ([]int, error) { return processesIn(h.id) }

// Signal sends sig to every process in the host and returns to how many:
// SIGKILL is a crash, SIGSTOP a freeze that leaves the kernel answering.
func (h *Host) Signal(sig unix.Signal) (int, error) { return signalIn(h.id, sig) }

// Ended returns a channel that gets the time at which the last of the processes
// that are in the host now has ended. From then on the kernel refuses what comes
// for their sockets, and not before: it takes back the memory of a process that is
// killed first, page by page (do_exit, Linux kernel/exit.c).
func (h *Host) Ended() (<-chan time.Time, error) {
	fds, err := pidfdsIn(h.id)
	if err != nil {
		return nil, err
	}
	ended := make(chan time.Time, 1)
	go func() {
		for _, fd := range fds {
			wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			for {
				if _, err := unix.Poll(wait, -1); err != unix.EINTR {
					break
				}
			}
			unix.Close(fd)
		}
		ended <- time.Now()
	}()
	return ended, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	p = p.Masked()
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
