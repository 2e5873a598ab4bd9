package sim

import (
	"errors"
	"fmt"
	"time"

	"ndnpop/face/lp"
	"ndnpop/ndn"
	"ndnpop/sim/line"
)

// Params describe one direction of a link: rate, delay, jitter, losses, queue.
// The zero value delivers at once.
type Params = line.Params

// GilbertElliott is loss in bursts.
type GilbertElliott = line.GilbertElliott

// CoDel is the queue management of RFC 8289.
type CoDel = line.CoDel

// LinkConfig describes a link.
type LinkConfig struct {
	// Params of both directions.
	Params
	// Back, if set, are those from the second node to the first.
	Back *Params
	// HalfDuplex lets the directions take turns on one medium.
	HalfDuplex bool
	// Cost of a route over the link; 1 if zero.
	Cost uint64

	// MTU in bytes, if positive, makes the link one of datagrams that
	// fragments larger packets.
	MTU int
	// Marking turns congestion marking on; the zero lp.Marking is NFD's.
	Marking *lp.Marking
	// Reliability of the link service.
	Reliability lp.Reliability
	// Shaping of Interests at both ends. Rates that are 0 are those of the
	// link's directions.
	Shaping *lp.Shaping
	// Unprotected are prefixes of names whose packets a reliable link does not
	// repair: they share its queue with those that it does.
	Unprotected []string
}

// Link is a link between two nodes.
type Link struct {
	// A and B are the nodes that it connects.
	A, B *Node
	// AB and BA are its directions.
	AB, BA *Direction
	// Cost of a route over it. Changes take effect with Reroute.
	Cost uint64

	net   *Network
	state line.State
}

// Connect connects two nodes.
func (n *Network) Connect(a, b *Node, c LinkConfig) *Link {
	back := c.Params
	if c.Back != nil {
		back = *c.Back
	}
	if a == b {
		n.fail(fmt.Errorf("node %s is connected with itself", a.name))
	}
	svc := lp.Config{MTU: c.MTU, Fragment: c.MTU > 0, Marking: lp.Marking{Off: true}, Reliability: c.Reliability}
	if c.Marking != nil {
		svc.Marking = *c.Marking
	}
	l := &Link{A: a, B: b, Cost: max(1, c.Cost), net: n}
	far := svc
	if c.Shaping != nil {
		svc.Shaping, far.Shaping = *c.Shaping, *c.Shaping
		if c.Shaping.Out == 0 {
			svc.Shaping.Out, far.Shaping.In = c.Rate, c.Rate
		} else {
			far.Shaping.In = c.Shaping.Out
		}
		if c.Shaping.In == 0 {
			svc.Shaping.In, far.Shaping.Out = back.Rate, back.Rate
		} else {
			far.Shaping.Out = c.Shaping.In
		}
	}
	pa := n.newPort(a, a.zone, svc)
	pb := n.newPort(b, b.zone, far)
	if len(c.Unprotected) > 0 {
		svc.Reliability, svc.Shaping = lp.Reliability{}, lp.Shaping{}
		pa.unprotect(svc, c.Unprotected)
		pb.unprotect(svc, c.Unprotected)
	}
	n.wire(pa, pb, c.Params, back)
	l.AB, l.BA = pa.out, pb.out
	l.AB.name, l.BA.name = a.name+">"+b.name, b.name+">"+a.name
	if c.HalfDuplex {
		line.Share(l.AB.line, l.BA.line)
		l.AB.twin, l.BA.twin = l.BA, l.AB
		// Nobody at a shared medium runs ahead, and each end must know when the
		// other's turn is over.
		l.AB.line.Lazy, l.BA.line.Lazy = false, false
	}
	if n.trace != nil {
		n.trace.watch(l.AB)
		n.trace.watch(l.BA)
	}
	a.addPort(pa)
	b.addPort(pb)
	a.links = append(a.links, l)
	b.links = append(b.links, l)
	n.links = append(n.links, l)
	n.dirty, n.stale = true, true
	return l
}

// String names the two ends.
func (l *Link) String() string { return l.A.name + "-" + l.B.name }

// Other is the node at the other end.
func (l *Link) Other(of *Node) *Node {
	if of == l.A {
		return l.B
	}
	return l.A
}

// From is the direction that begins at a node.
func (l *Link) From(a *Node) *Direction {
	if a == l.A {
		return l.AB
	}
	return l.BA
}

// Face is the link's face at one of its ends.
func (l *Link) Face(of *Node) ndn.FaceID {
	if of == l.A {
		return l.BA.to.face
	}
	return l.AB.to.face
}

// Set changes both directions from now on. What waits is re-timed at the new
// rate; what travels keeps the delay that it left with.
func (l *Link) Set(p Params) error {
	return errors.Join(l.AB.Set(p), l.BA.Set(p))
}

// Down breaks the link, and both ends know at once: their faces go down. What
// is under way is lost.
func (l *Link) Down() { l.set(line.Down) }

// BlackHole drops all packets, those under way too, and tells nobody.
func (l *Link) BlackHole() { l.set(line.BlackHole) }

// Up ends Down and BlackHole, that of one direction as well.
func (l *Link) Up() { l.set(line.Up) }

func (l *Link) set(s line.State) {
	n, was := l.net, l.state
	if s == was && l.AB.line.State() == s && l.BA.line.State() == s {
		return
	}
	l.state = s
	n.note("link", l.String(), s.String())
	l.AB.setState(s)
	l.BA.setState(s)
	for _, p := range []*port{l.BA.to, l.AB.to} {
		node := p.owner.(*Node)
		switch {
		case s == was:
		case s == line.Down:
			node.faceDown(p)
		case was == line.Down:
			node.faceUp(p)
		}
	}
}

// Direction is one of the two directions of a link.
type Direction struct {
	net  *Network
	name string
	line *line.Line
	to   *port
	id   int32
	// wakes is when it will be called at the latest.
	wakes ndn.Time
	twin  *Direction // that shares the medium
}

func (n *Network) newDirection(to *port, p Params) *Direction {
	l, err := line.New(p, &n.pool, n.cfg.Seed, n.streams)
	n.streams++
	if err != nil {
		n.fail(err)
		l, _ = line.New(Params{}, &n.pool, n.cfg.Seed, n.streams)
	}
	d := &Direction{net: n, line: l, to: to, wakes: ndn.Never}
	d.id = to.zone.join(d)
	d.line.Lazy = n.cfg.Batch
	return d
}

// pushed sees to the deadlines after something was put on the line.
func (d *Direction) pushed() {
	d.arm()
	if d.twin != nil {
		d.twin.arm()
	}
}

// arm leaves the memory of the node at the far end alone when it is known there
// that something comes, as it is for most packets.
func (d *Direction) arm() {
	if at := d.line.Deadline(); at < d.wakes {
		d.wakes = at
		d.to.zone.wake(d.id, at)
	}
}

// fire implements actor.
func (d *Direction) fire(now ndn.Time) ndn.Time {
	for {
		b, ok := d.line.Deliver(now)
		if !ok {
			break
		}
		d.to.owner.receive(now, d.to, b)
	}
	if d.twin != nil {
		d.twin.arm()
	}
	d.wakes = d.line.Deadline()
	return d.wakes
}

func (d *Direction) setState(s line.State) {
	d.line.SetState(d.net.now, s)
	d.pushed()
}

// String is "from>to".
func (d *Direction) String() string { return d.name }

// Params in force.
func (d *Direction) Params() Params { return d.line.Params() }

// Set changes the parameters from now on.
func (d *Direction) Set(p Params) error {
	err := d.line.SetParams(d.net.now, p)
	d.net.stale = true
	d.pushed()
	if err == nil {
		d.net.note("link", d.name, "changed")
	}
	return err
}

// BlackHole drops all packets of this direction, or ends that.
func (d *Direction) BlackHole(on bool) {
	s := line.Up
	if on {
		s = line.BlackHole
	}
	d.net.note("link", d.name, s.String())
	d.setState(s)
}

// Counters of packets, bytes and losses until now.
func (d *Direction) Counters() line.Counters {
	d.line.Backlog(d.net.now) // brings it up to now
	return d.line.Counters()
}

// Queue is the number of bytes that wait or are being sent.
func (d *Direction) Queue() int64 { return d.line.Backlog(d.net.now) }

// Service is the link service that sends in this direction.
func (d *Direction) Service() *lp.Link { return d.to.peer.svc }

// BDP is the number of bytes that a link of a rate in bit/s holds in a time.
func BDP(rate int64, rtt time.Duration) int64 {
	return int64(float64(rate) / 8 * rtt.Seconds())
}
