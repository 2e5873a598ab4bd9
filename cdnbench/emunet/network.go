//go:build linux

package emunet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/ndn"

	"golang.org/x/sys/unix"
)

// Errors that callers test for.
var (
	// ErrUnsupported is wrapped by the error of Supported.
	ErrUnsupported = errors.New("network emulation is not possible here")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the emulated network is closed")
	// ErrOverload is wrapped by the error of Verify.
	ErrOverload = errors.New("the emulator was overloaded")
)

// Emulator says what carries the packets.
type Emulator string

// The emulators. Auto is netem where the kernel has it and TUN elsewhere. Netem
// takes neither a seed nor Params.Burst, Reorder and Overhead.
const (
	Auto  Emulator = ""
	TUN   Emulator = "tun"
	Netem Emulator = "netem"
)

// Options of a Network. The zero value is good.
type Options struct {
	Emulator Emulator
	Seed     uint64 // of losses and jitter
	// Plain passes one IP packet at a time, without super-packets: slower, and
	// the same cost for every protocol.
	Plain bool
	// Spin busy-waits this long before each deadline: it takes a core and
	// saves some 100 µs of delay per link.
	Spin time.Duration
}

// Network is a set of hosts and links. Its methods may be called from any
// goroutine, except that building it (AddHost, AddLink) is for one.
type Network struct {
	opts   Options
	prefix string
	driver *driver // nil with netem
	shut   atomic.Bool

	mu    sync.Mutex
	hosts []*Host
	links []*Link
}

// Supported says why networks cannot be emulated here, wrapping ErrUnsupported,
// or returns nil. It tries, as nothing else is a sure sign.
func Supported() error {
	n, err := New(Options{Emulator: TUN})
	if err != nil {
		return unsupported(err)
	}
	a, err := n.AddHost("a")
	if err == nil {
		_, err = n.AddLink(a, a, LinkConfig{})
	}
	return unsupported(errors.Join(err, n.Close()))
}

func unsupported(err error) error {
	switch {
	case err == nil:
		return nil
	case unix.Geteuid() != 0:
		return fmt.Errorf("%w: it needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): %w", ErrUnsupported, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
}

// New returns an empty network, after cleaning up what killed processes left.
func New(o Options) (*Network, error) {
	switch o.Emulator {
	case TUN, Netem:
	case Auto:
		o.Emulator = TUN
		if haveNetem() == nil {
			o.Emulator = Netem
		}
	default:
		return nil, fmt.Errorf("emulator %q: want %s or %s, or nothing for the best here", o.Emulator, TUN, Netem)
	}
	if o.Emulator == Netem {
		if err := haveNetem(); err != nil {
			return nil, fmt.Errorf("%w: netem: %w", ErrUnsupported, err)
		}
	}
	if _, err := CleanLeftovers(); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	own, err := ownPrefix()
	if err != nil {
		return nil, err
	}
	n := &Network{opts: o, prefix: own + strings.ToLower(rand.Text()[:6]) + "-"}
	if o.Emulator == TUN {
		if n.driver, err = newDriver(!o.Plain, o.Spin); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Emulator says which emulator is in use.
func (n *Network) Emulator() Emulator { return n.opts.Emulator }

func (n *Network) closed() bool { return n.shut.Load() }

// Close kills the processes in the hosts and removes everything. Closing again
// does nothing.
func (n *Network) Close() error {
	if n.shut.Swap(true) {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, h.close())
	}
	if n.driver != nil {
		errs = append(errs, n.driver.close())
	}
	for _, l := range n.links {
		errs = append(errs, l.medium.close())
	}
	return errors.Join(errs...)
}

// AddHost creates a host. The name is made of letters, digits, '-', '_' and '.'.
func (n *Network) AddHost(name string) (*Host, error) {
	if n.closed() {
		return nil, ErrClosed
	}
	ok := name != "" && len(name) <= 64
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c))
	}
	if !ok {
		return nil, fmt.Errorf("host name %q: want 1 to 64 letters, digits, '-', '_' or '.'", name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if h.name == name {
			return nil, fmt.Errorf("host %s exists already", name)
		}
	}
	h, err := newHost(n, name)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// Links returns the links in the order in which they were added.
func (n *Network) Links() []*Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*Link(nil), n.links...)
}

// Reset drops what is under way, clears all counters, and starts losses and
// jitter anew from a seed: for the next arm of a comparison.
func (n *Network) Reset(seed uint64) error {
	for _, l := range n.Links() {
		if err := l.reset(seed); err != nil {
			return err
		}
	}
	return nil
}

// Verify says, wrapping ErrOverload, why the run since the last Reset does not
// count: packets were lost for lack of time or memory, or one direction
// delivered a hundred packets or more and more than a hundredth of them later than
// by 5 % of its delay and 1 ms. The user discards such a run.
func (n *Network) Verify() error {
	var errs []error
	if n.driver != nil {
		n.driver.do(func(ndn.Time) { errs = append(errs, n.driver.err) })
	}
	for _, l := range n.Links() {
		for _, d := range []Direction{AB, BA} {
			c, err := l.Counters(d)
			if err != nil {
				return err
			}
			if lost := c.OverloadDrops + c.WriteErrors + c.DeviceDrops; lost > 0 {
				errs = append(errs, fmt.Errorf("%w: %s lost %d packets (%d in the device, %d for memory, %d refused)",
					ErrOverload, l.name(d), lost, c.DeviceDrops, c.OverloadDrops, c.WriteErrors))
			}
			if limit := lateLimit(l.Params(d).Delay); c.late(limit) {
				errs = append(errs, fmt.Errorf("%w: %s was %v late at the 99th percentile, limit %v", ErrOverload, l.name(d), c.LateP99, limit))
			}
		}
	}
	return errors.Join(errs...)
}

// lateLimit is by how much a direction with this delay may be late.
func lateLimit(delay time.Duration) time.Duration { return max(delay/20, time.Millisecond) }

// late reports whether a hundredth of the packets were later than a limit. That
// means nothing for fewer than a hundred, as on a link that only keeps connections
// open.
func (c Counters) late(limit time.Duration) bool {
	return c.OutPackets >= 100 && c.LateP99 > limit
}

// RouteAll gives every host routes to all subnets of links, by the fewest hops,
// among equals over the link added first, and makes hosts with several links
// forward. It replaces routes to the same destinations and adds to the rest.
func (n *Network) RouteAll() error {
	links := n.Links()
	for _, h := range n.hosts {
		if len(h.Ends()) > 1 {
			for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
				if err := h.Sysctl(key, "1"); err != nil && key == "net.ipv4.ip_forward" {
					return err
				}
			}
		}
		hops, first := h.reach()
		for _, l := range links {
			near := l.A
			if d, ok := hops[l.B.Host]; ok {
				if e, ok := hops[l.A.Host]; !ok || d < e {
					near = l.B
				}
			}
			via := first[near.Host]
			if via == nil { // ours, or out of reach
				continue
			}
			if via.Prefix.Addr().Is4() != l.A.Prefix.Addr().Is4() {
				return fmt.Errorf("no route from %s to %s: it would mix IPv4 and IPv6", h.name, l.A.Prefix)
			}
			if err := h.AddRoute(Route{Dst: l.A.Prefix, Via: via.Prefix.Addr()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach finds, breadth first, how many hops every other host is away and over
// which neighbour's end. The host itself is 0 hops away over none.
func (h *Host) reach() (hops map[*Host]int, first map[*Host]*End) {
	hops, first = map[*Host]int{h: 0}, map[*Host]*End{}
	for queue := []*Host{h}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, e := range at.Ends() {
			to := e.peer()
			if _, known := hops[to.Host]; known {
				continue
			}
			hops[to.Host] = hops[at] + 1
			if first[to.Host] = first[at]; at == h {
				first[to.Host] = to
			}
			queue = append(queue, to.Host)
		}
	}
	return hops, first
}

// subnet is the i-th of the subnets for links without addresses of their own.
func subnet(i int) (a, b netip.Prefix) {
	x := [4]byte{10, byte(77 + i>>8), byte(i), 1}
	y := x
	y[3] = 2
	return netip.PrefixFrom(netip.AddrFrom4(x), 24), netip.PrefixFrom(netip.AddrFrom4(y), 24)
}
