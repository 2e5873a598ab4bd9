package sim

import (
	"ndnpop/face/lp"
	"ndnpop/ndn"
	"ndnpop/sim/line"
)

// endpoint is what is at an end of a link: a forwarder or an application.
type endpoint interface {
	// receive takes a frame. It is valid during the call.
	receive(now ndn.Time, p *port, frame []byte)
	// gaveUp hears of an Interest that the link service gave up.
	gaveUp(now ndn.Time, p *port, interest []byte)
}

// port is one end of a link: a face with its link service.
type port struct {
	net   *Network
	zone  *zone
	owner endpoint
	face  ndn.FaceID // of a forwarder's end
	local bool
	svc   *lp.Link
	out   *Direction
	peer  *port
	// plain: one packet is one frame, and the service has no timers.
	plain bool
	mark  bool
	id    int32 // of its timers, if not plain
	// What the names of bare begin with leaves by a service without repair. The
	// peer's takes its frames: they carry no TxSequence.
	bare    []ndn.Name
	bareSvc *lp.Link
}

// headroom is kept for the link header of a packet.
const headroom = 128

// send passes a network packet to the link.
func (p *port) send(now ndn.Time, wire []byte, f *ndn.LpFields) bool {
	n := p.net
	if p.out.line.State() == line.Down {
		return false
	}
	if p.mark {
		p.svc.Queue(now, int(p.out.line.Backlog(now)))
	}
	if !p.plain {
		svc := p.svc
		if p.unprotected(wire) {
			svc = p.bareSvc
		}
		err := svc.Send(now, wire, f, &n.frames)
		p.flush(now)
		return err == nil
	}
	// The frame is made in the packet that travels.
	pk := n.pool.Get(len(wire) + headroom)
	fr := &n.frames
	keep := fr.Buf
	fr.Buf = pk.Bytes()
	err := p.svc.Send(now, wire, f, fr)
	pk.Fill(fr.Buf)
	fr.Buf = keep
	fr.Reset()
	if err != nil {
		n.pool.Put(pk)
		return false
	}
	p.out.line.Push(now, pk)
	p.out.pushed()
	return true
}

// flush sends the frames that the service made, and arms its timers.
func (p *port) flush(now ndn.Time) {
	n := p.net
	for i := range n.frames.Len() {
		p.out.line.Push(now, n.pool.Packet(n.frames.Frame(i), false))
	}
	if n.frames.Len() > 0 {
		n.frames.Reset()
		p.out.pushed()
	}
	p.zone.wake(p.id, p.svc.Deadline())
}

// parse takes a frame and reports whether it made a packet known, in the
// network's packet.
func (p *port) parse(now ndn.Time, frame []byte) bool {
	ok, err := p.svc.Receive(now, frame, &p.net.packet)
	if !p.plain {
		p.tellGaveUp(now)
		p.zone.wake(p.id, p.svc.Deadline())
	}
	return ok && err == nil
}

func (p *port) tellGaveUp(now ndn.Time) {
	for {
		wire, ok := p.svc.GaveUp()
		if !ok {
			return
		}
		// What the owner sends may use the service's memory.
		p.net.buf = append(p.net.buf[:0], wire...)
		p.owner.gaveUp(now, p, p.net.buf)
	}
}

// fire implements actor for the timers of the service.
func (p *port) fire(now ndn.Time) ndn.Time {
	p.svc.Tick(now, &p.net.frames)
	p.flush(now)
	p.tellGaveUp(now)
	return p.svc.Deadline()
}

// newPort makes one end of a link.
func (n *Network) newPort(owner endpoint, z *zone, cfg lp.Config) *port {
	p := &port{net: n, zone: z, owner: owner, id: noActor}
	p.plain = !cfg.Fragment && !cfg.Reliability.On && !cfg.Reliability.Auto && cfg.Shaping == (lp.Shaping{})
	p.mark = !cfg.Marking.Off
	cfg = n.shared(cfg)
	cfg.FirstSequence = n.seed(seedService, n.streams)
	p.svc = lp.New(cfg)
	if !p.plain {
		p.id = z.join(p)
	}
	return p
}

// shared makes a link service use the memory that all share.
func (n *Network) shared(c lp.Config) lp.Config {
	c.Scratch = &n.linkMem
	return c
}

// unprotect lets the packets of some names leave by a service of their own.
func (p *port) unprotect(cfg lp.Config, prefixes []string) {
	// Its fragments must not be taken for those of the other service.
	cfg.FirstSequence = p.net.seed(seedService, p.net.streams) + 1<<63
	p.bareSvc = lp.New(p.net.shared(cfg))
	for _, s := range prefixes {
		p.bare = append(p.bare, p.net.name(s))
	}
}

// unprotected reports whether an Interest or Data is one of those.
func (p *port) unprotected(wire []byte) bool {
	if len(p.bare) == 0 {
		return false
	}
	_, _, tl, err := ndn.ReadTL(wire)
	if err != nil {
		return false
	}
	_, n, in, err := ndn.ReadTL(wire[tl:])
	if err != nil {
		return false
	}
	name := ndn.Name(wire[tl+in : tl+in+n])
	for _, prefix := range p.bare {
		if name.HasPrefix(prefix) {
			return true
		}
	}
	return false
}

// wire connects two ends, each with the parameters of what it sends.
func (n *Network) wire(a, b *port, ab, ba Params) {
	a.peer, b.peer = b, a
	a.out, b.out = n.newDirection(b, ab), n.newDirection(a, ba)
}

// attachment is the link between an application and its forwarder.
type attachment struct {
	app, node *port
	streams   uint64
}

// attach connects an application to a node over a local face.
func (n *Network) attach(app endpoint, node *Node, p Params) *port {
	var a *attachment
	if k := len(node.spare); k > 0 && p == (Params{}) {
		a = node.spare[k-1]
		node.spare = node.spare[:k-1]
		a.app.owner, a.node.owner = app, node
		a.app.svc, a.node.svc = lp.New(n.shared(appService)), lp.New(n.shared(nodeService))
		a.app.out.line.Reset(n.cfg.Seed, a.streams)
		a.node.out.line.Reset(n.cfg.Seed, a.streams+1)
	} else {
		a = &attachment{app: n.newPort(app, node.zone, appService), node: n.newPort(node, node.zone, nodeService), streams: n.streams}
		a.node.local = true
		n.wire(a.app, a.node, p, p)
	}
	node.addPort(a.node)
	return a.app
}

var (
	appService  = lp.Config{Application: true, Marking: lp.Marking{Off: true}}
	nodeService = lp.Config{Marking: lp.Marking{Off: true}}
)

// detach ends an application's connection. It must not be called from within
// the delivery of a frame.
func (n *Network) detach(app *port) {
	node := app.peer.owner.(*Node)
	node.removePort(app.peer)
	a := &attachment{app: app, node: app.peer}
	app.owner, app.peer.owner = nobody{}, nobody{}
	if app.out.line.Params() == (Params{}) {
		node.spare = append(node.spare, a)
	}
}

// nobody is at the ends of a link that is not used.
type nobody struct{}

func (nobody) receive(ndn.Time, *port, []byte) {}
func (nobody) gaveUp(ndn.Time, *port, []byte)  {}
