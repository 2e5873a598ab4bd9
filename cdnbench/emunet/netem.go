//go:build linux

package emunet

import (
	"errors"
	"fmt"
	"time"

	"ndnpop/sim/line"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// haveNetem says why the kernel's own emulation cannot be used, by trying it on
// the lo of a namespace that is thrown away.
func haveNetem() (err error) {
	<-onThread(func() bool {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("create namespace: %w", err)
			return false
		}
		var nl *netlink.Handle
		if nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return false
		}
		defer nl.Close()
		var lo netlink.Link
		if lo, err = nl.LinkByName("lo"); err == nil {
			err = errors.Join(nl.QdiscAdd(netemQdisc(lo, Params{})), nl.QdiscReplace(tbfQdisc(lo, Params{Rate: 1e6})))
		}
		return false
	})
	return err
}

// netemMedium is a veth pair with, on each side, netem for loss and delay over
// tbf for rate and queue. The rate comes after the delay, which makes no
// difference to what is in order.
type netemMedium struct {
	ends   [2]*End
	params [2]Params
	state  line.State
	base   [2]Counters        // at the last reset
	routes [2][]netlink.Route // lost while down
}

// netemLimit is how many packets travel at most in one direction.
const netemLimit = 200_000

// tbfBurst is how many bytes may leave at once: a packet must fit.
const tbfBurst = 16 << 10

func netemQdisc(d netlink.Link, p Params) *netlink.Netem {
	return netlink.NewNetem(
		netlink.QdiscAttrs{LinkIndex: d.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		netlink.NetemQdiscAttrs{
			Latency: uint32(p.Delay / time.Microsecond),
			Jitter:  uint32(p.Jitter / time.Microsecond),
			Loss:    float32(100 * p.Loss),
			Limit:   netemLimit,
		})
}

// tbfQdisc is for a rate that is not zero.
func tbfQdisc(d netlink.Link, p Params) *netlink.Tbf {
	queue := p.Queue
	if queue == 0 {
		queue = line.DefaultQueue
	}
	rate := uint64(p.Rate) / 8
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: d.Attrs().Index, Handle: netlink.MakeHandle(10, 0), Parent: netlink.MakeHandle(1, 1)},
		Rate:       rate,
		Limit:      uint32(queue),
		Buffer:     netlink.Xmittime(rate, tbfBurst),
	}
}

func checkNetem(p Params) error {
	if p.Burst != (GilbertElliott{}) || p.Reorder || p.Overhead != 0 ||
		p.Noise != 0 || p.QueuePackets != 0 || p.CoDel.On {
		return fmt.Errorf("%w: the emulator %s has no bursts, chosen order, overhead, noise, CoDel or limit of packets: use %s", line.ErrParams, Netem, TUN)
	}
	return nil
}

func newNetemMedium(l *Link, c LinkConfig) (*netemMedium, error) {
	m := &netemMedium{ends: [2]*End{l.A, l.B}}
	err := l.A.Host.netlink(func(nl *netlink.Handle) error {
		l.B.Host.life.RLock()
		defer l.B.Host.life.RUnlock()
		return nl.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: l.A.Device}, PeerName: l.B.Device, PeerNamespace: netlink.NsFd(l.B.Host.ns)})
	})
	if err != nil {
		return nil, fmt.Errorf("veth pair: %w", err)
	}
	for d, p := range []Params{c.AB, c.BA} {
		if err := m.apply(Direction(d), p, true); err != nil {
			return nil, errors.Join(err, m.close())
		}
	}
	return m, nil
}

func (m *netemMedium) set(d Direction, p Params) error { return m.apply(d, p, false) }

// apply makes the qdiscs what p and the state say; afresh drops what they hold.
func (m *netemMedium) apply(d Direction, p Params, afresh bool) error {
	if err := checkNetem(p); err != nil {
		return err
	}
	now := p
	if m.state != line.Up {
		now.Loss = 1
	}
	err := m.ends[d].device(func(nl *netlink.Handle, dev netlink.Link) error {
		netem, tbf := netemQdisc(dev, now), tbfQdisc(dev, Params{Rate: 1e6})
		list, err := nl.QdiscList(dev)
		if err != nil {
			return err
		}
		have := map[uint32]bool{}
		for _, q := range list {
			have[q.Attrs().Handle] = true
		}
		if afresh && have[netem.Handle] {
			if err := nl.QdiscDel(netem); err != nil {
				return err
			}
			clear(have)
		}
		if !have[netem.Handle] {
			err = nl.QdiscAdd(netem)
		} else {
			err = nl.QdiscChange(netem)
		}
		switch {
		case err != nil:
		case p.Rate > 0:
			err = nl.QdiscReplace(tbfQdisc(dev, p))
		case have[tbf.Handle]:
			err = nl.QdiscDel(tbf)
		}
		return err
	})
	if err == nil {
		m.params[d] = p
	}
	return err
}

func (m *netemMedium) setState(s line.State) error {
	was := m.state
	m.state = s
	var errs []error
	for d, e := range m.ends {
		// The counters of the qdiscs go with them.
		c, err := m.raw(Direction(d))
		m.base[d].InPackets -= c.InPackets
		m.base[d].InBytes -= c.InBytes
		m.base[d].LossDrops -= c.LossDrops
		m.base[d].QueueDrops -= c.QueueDrops
		errs = append(errs, err, m.apply(Direction(d), m.params[d], true))
		switch {
		case s == line.Down:
			errs = append(errs, e.device(func(nl *netlink.Handle, dev netlink.Link) (err error) {
				if m.routes[d], err = nl.RouteList(dev, netlink.FAMILY_ALL); err == nil {
					err = nl.LinkSetDown(dev)
				}
				return err
			}))
		case was == line.Down:
			errs = append(errs, e.device(func(nl *netlink.Handle, dev netlink.Link) error {
				err := nl.LinkSetUp(dev)
				for _, r := range m.routes[d] {
					err = errors.Join(err, nl.RouteReplace(&r))
				}
				return err
			}))
		}
	}
	return errors.Join(errs...)
}

// raw reads the counters since the devices and qdiscs were made. Packets that
// were cut count as lost.
func (m *netemMedium) raw(d Direction) (c Counters, err error) {
	err = m.ends[d].device(func(nl *netlink.Handle, dev netlink.Link) error {
		list, err := nl.QdiscList(dev)
		for _, q := range list {
			st := q.Attrs().Statistics
			if st == nil || st.Queue == nil || st.Basic == nil {
				continue
			}
			switch q.Attrs().Handle {
			case netlink.MakeHandle(1, 0): // with the drops of tbf below it
				c.LossDrops += int64(st.Queue.Drops)
				c.InPackets = int64(st.Basic.Packets) + int64(st.Queue.Drops)
				c.InBytes = int64(st.Basic.Bytes)
				c.WaitingPackets = int64(st.Queue.Qlen)
			case netlink.MakeHandle(10, 0):
				c.QueueDrops = int64(st.Queue.Drops)
				c.LossDrops -= int64(st.Queue.Drops)
			}
		}
		return err
	})
	if err != nil {
		return c, err
	}
	return c, m.ends[1-d].device(func(_ *netlink.Handle, dev netlink.Link) error {
		c.OutPackets = int64(dev.Attrs().Statistics.RxPackets)
		c.OutBytes = int64(dev.Attrs().Statistics.RxBytes)
		return nil
	})
}

func (m *netemMedium) counters(d Direction) (Counters, error) {
	c, err := m.raw(d)
	b := m.base[d]
	c.InPackets -= b.InPackets
	c.InBytes -= b.InBytes
	c.OutPackets -= b.OutPackets
	c.OutBytes -= b.OutBytes
	c.LossDrops -= b.LossDrops
	c.QueueDrops -= b.QueueDrops
	return c, err
}

// reset cannot seed netem: its losses differ from run to run.
func (m *netemMedium) reset(uint64) error {
	var errs []error
	for _, d := range []Direction{AB, BA} {
		errs = append(errs, m.apply(d, m.params[d], true))
		c, err := m.raw(d)
		m.base[d] = c
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// close removes the pair; with the namespace of either end it is gone already.
func (m *netemMedium) close() error {
	err := m.ends[AB].device((*netlink.Handle).LinkDel)
	if missing := (netlink.LinkNotFoundError{}); errors.Is(err, ErrClosed) || errors.As(err, &missing) {
		return nil
	}
	return err
}
