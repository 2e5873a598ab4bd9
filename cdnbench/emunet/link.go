//go:build linux

package emunet

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"ndnpop/ndn"
	"ndnpop/sim/line"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Params describe one direction of a link.
type Params = line.Params

// GilbertElliott is loss in bursts.
type GilbertElliott = line.GilbertElliott

// Direction is one of the two of a link.
type Direction int

// The directions.
const (
	AB Direction = iota
	BA
)

func (d Direction) String() string { return [...]string{"a to b", "b to a"}[d] }

// LinkConfig describes a link between hosts a and b. The zero value is
// unlimited and without delay.
type LinkConfig struct {
	AB, BA Params
	MTU    int // bytes of an IP packet; 0 is 1500
	// The addresses of the ends with the length of their subnet; unset ones are
	// 10.77.i.1/24 and 10.77.i.2/24 for the link with index i.
	AddrA, AddrB netip.Prefix
}

// Counters of one direction since the last Reset.
type Counters struct {
	line.Counters
	WriteErrors int64 // pieces that the receiving device refused
	DeviceDrops int64 // packets that the sending device dropped: the emulator was too slow
}

// medium is what carries the packets of one link.
type medium interface {
	set(d Direction, p Params) error
	setState(s line.State) error
	counters(d Direction) (Counters, error)
	reset(seed uint64) error
	close() error
}

// End is where a link meets a host.
type End struct {
	Host   *Host
	Device string
	Prefix netip.Prefix // address and length of the subnet
	link   *Link
}

func (e *End) peer() *End {
	if e.link.A == e {
		return e.link.B
	}
	return e.link.A
}

// Link is a cable between two hosts. Its methods may be called from any
// goroutine while traffic flows.
type Link struct {
	A, B   *End
	medium medium

	mu     sync.Mutex
	params [2]Params
	state  line.State
}

// AddLink connects two hosts, and is up when it returns.
func (n *Network) AddLink(a, b *Host, c LinkConfig) (*Link, error) {
	if n.closed() {
		return nil, ErrClosed
	}
	if err := errors.Join(c.AB.Validate(), c.BA.Validate()); err != nil {
		return nil, err
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	index := len(n.links)
	if pa, pb := subnet(index); !c.AddrA.IsValid() && !c.AddrB.IsValid() {
		c.AddrA, c.AddrB = pa, pb
	}
	if !c.AddrA.IsValid() || !c.AddrB.IsValid() || c.AddrA.Masked() != c.AddrB.Masked() {
		return nil, fmt.Errorf("link addresses %s and %s are not in one subnet", c.AddrA, c.AddrB)
	}
	l := &Link{params: [2]Params{c.AB, c.BA}}
	l.A = a.newEnd(l, c.AddrA)
	l.B = b.newEnd(l, c.AddrB)
	var err error
	if n.driver != nil {
		l.medium, err = newTunMedium(n, l, c, index)
	} else {
		l.medium, err = newNetemMedium(l, c)
	}
	if err == nil {
		err = errors.Join(l.A.configure(c.MTU), l.B.configure(c.MTU))
		if err != nil {
			err = errors.Join(err, l.medium.close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("link %s to %s: %w", a.name, b.name, err)
	}
	for _, e := range []*End{l.A, l.B} {
		e.Host.mu.Lock()
		e.Host.links = append(e.Host.links, e)
		e.Host.mu.Unlock()
	}
	n.links = append(n.links, l)
	return l, nil
}

// newEnd chooses the name of the device: eth0, eth1, ... in each host.
func (h *Host) newEnd(l *Link, p netip.Prefix) *End {
	k := len(h.Ends())
	if l.A != nil && l.A.Host == h {
		k++
	}
	return &End{Host: h, Device: fmt.Sprintf("eth%d", k), Prefix: p, link: l}
}

// configure gives the device its address and sets it up.
func (e *End) configure(mtu int) error {
	return errors.Join(
		e.device(func(nl *netlink.Handle, d netlink.Link) error { return nl.LinkSetMTU(d, mtu) }),
		e.Host.AddAddress(e.Device, e.Prefix),
		e.device((*netlink.Handle).LinkSetUp),
	)
}

// device runs f on the end's device.
func (e *End) device(f func(nl *netlink.Handle, d netlink.Link) error) error {
	return e.Host.netlink(func(nl *netlink.Handle) error {
		d, err := nl.LinkByName(e.Device)
		if err == nil {
			err = f(nl, d)
		}
		if err != nil {
			return fmt.Errorf("device %s in %s: %w", e.Device, e.Host.name, err)
		}
		return nil
	})
}

func (l *Link) name(d Direction) string {
	if d == AB {
		return l.A.Host.name + " to " + l.B.Host.name
	}
	return l.B.Host.name + " to " + l.A.Host.name
}

// Params returns those of one direction.
func (l *Link) Params(d Direction) Params {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.params[d]
}

// Set changes one direction from now on. Packets that wait are re-timed at the
// new rate, those that travel keep their delay.
func (l *Link) Set(d Direction, p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.medium.set(d, p); err != nil {
		return fmt.Errorf("link %s: %w", l.name(d), err)
	}
	l.params[d] = p
	return nil
}

// SetBoth changes both directions to the same parameters.
func (l *Link) SetBoth(p Params) error {
	return errors.Join(l.Set(AB, p), l.Set(BA, p))
}

// Down pulls the cable: packets under way are lost, the devices lose their
// carrier, and the kernels refuse to send over them until Up.
func (l *Link) Down() error { return l.setState(line.Down) }

// BlackHole drops all packets, those under way too, and tells nobody, until Up.
func (l *Link) BlackHole() error { return l.setState(line.BlackHole) }

// Up ends Down and BlackHole.
func (l *Link) Up() error { return l.setState(line.Up) }

func (l *Link) setState(s line.State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == l.state {
		return nil
	}
	if err := l.medium.setState(s); err != nil {
		return fmt.Errorf("link %s, %s: %w", l.name(AB), s, err)
	}
	l.state = s
	return nil
}

// Counters returns those of one direction.
func (l *Link) Counters(d Direction) (Counters, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.medium.counters(d)
}

func (l *Link) reset(seed uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.medium.reset(seed)
}

// tunMedium carries packets through the network's driver.
type tunMedium struct {
	driver *driver
	ends   [2]*End
	fds    [2]int
	dirs   [2]*direction
	index  int
	drops  [2]int64 // of the devices at the last reset
}

func newTunMedium(n *Network, l *Link, c LinkConfig, index int) (*tunMedium, error) {
	m := &tunMedium{driver: n.driver, ends: [2]*End{l.A, l.B}, fds: [2]int{-1, -1}, index: index}
	for i, e := range m.ends {
		err := e.Host.Do(func() (err error) {
			m.fds[i], err = openTun(e.Device, n.driver.vnet)
			return err
		})
		if err == nil {
			err = e.device(func(nl *netlink.Handle, d netlink.Link) error { return nl.LinkSetTxQLen(d, tunQueue) })
		}
		if err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	for d, p := range []Params{c.AB, c.BA} {
		var err error
		if m.dirs[d], err = n.driver.add(m.fds[d], m.fds[1-d], p, n.opts.Seed, m.stream(Direction(d))); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

func (m *tunMedium) stream(d Direction) uint64 { return uint64(2*m.index) + uint64(d) }

func (m *tunMedium) set(d Direction, p Params) (err error) {
	m.driver.do(func(now ndn.Time) { err = m.dirs[d].SetParams(now, p) })
	return err
}

func (m *tunMedium) setState(s line.State) error {
	m.driver.do(func(now ndn.Time) {
		for _, x := range m.dirs {
			x.SetState(now, s)
		}
	})
	var errs []error
	for _, fd := range m.fds {
		errs = append(errs, setCarrier(fd, s != line.Down))
	}
	return errors.Join(errs...)
}

func (m *tunMedium) deviceDrops(d Direction) (n int64, err error) {
	err = m.ends[d].device(func(_ *netlink.Handle, l netlink.Link) error {
		n = int64(l.Attrs().Statistics.TxDropped)
		return nil
	})
	return n, err
}

func (m *tunMedium) counters(d Direction) (c Counters, err error) {
	m.driver.do(func(ndn.Time) {
		c.Counters = m.dirs[d].Line.Counters()
		c.WriteErrors = m.dirs[d].writeErrors
	})
	drops, err := m.deviceDrops(d)
	c.DeviceDrops = drops - m.drops[d]
	return c, err
}

func (m *tunMedium) reset(seed uint64) error {
	for _, d := range []Direction{AB, BA} {
		drops, err := m.deviceDrops(d)
		if err != nil {
			return err
		}
		m.drops[d] = drops
	}
	m.driver.do(func(ndn.Time) {
		for d, x := range m.dirs {
			x.Reset(seed, m.stream(Direction(d)))
			x.writeErrors = 0
		}
	})
	return nil
}

// close removes the devices.
func (m *tunMedium) close() error {
	for _, x := range m.dirs {
		if x != nil {
			m.driver.remove(x)
		}
	}
	var errs []error
	for i, fd := range m.fds {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
			m.fds[i] = -1
		}
	}
	return errors.Join(errs...)
}
