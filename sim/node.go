package sim

import (
	"errors"
	"fmt"

	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/sim/line"
	"ndnpop/strategy"
	"ndnpop/table"
)

// ErrKilled ends the fetches of a node that dies.
var ErrKilled = errors.New("sim: the forwarder died")

// NodeConfig describes a forwarder.
type NodeConfig struct {
	// CS is the capacity of the content store in bytes; 0 is none.
	CS int64
	// CSPolicy is its policy of eviction; empty is the forwarder's default.
	CSPolicy string
	// Strategy for all names; empty is the network's.
	Strategy string
	// Forwarder holds all other settings. Seed, NodeID, CS and
	// DefaultStrategy are set from the above when they are zero.
	Forwarder fw.Config
}

// Node is a forwarder.
type Node struct {
	net   *Network
	name  string
	index int
	zone  *zone
	id    int32 // in its zone
	cfg   fw.Config
	shard *fw.Shard
	ports []*port // by face, from firstFace on; nil when gone
	links []*Link
	// What Restart sets up again.
	routes  []route
	choices []choice
	spare   []*attachment // for further applications
	// Routes from prefix announcements: those to be made, those made, and when
	// the first of them ends.
	heard, learnt []learnt
	forgets       ndn.Time
	watch         func(*strategy.Decision)
	dead          bool
	lives         uint64
}

type route struct {
	prefix ndn.Name
	via    *port
	cost   uint64
	auto   bool // made by Reroute
}

type choice struct{ prefix, strategy ndn.Name }

// firstFace is the first id that is not reserved (NFD).
const firstFace ndn.FaceID = 256

// AddNode adds a forwarder. Names are unique and not empty.
func (n *Network) AddNode(name string, c NodeConfig) *Node {
	x := &Node{net: n, name: name, index: len(n.nodes), cfg: c.Forwarder}
	if name == "" || n.byName[name] != nil {
		n.fail(fmt.Errorf("two nodes are named %q, or one has no name", name))
	}
	if x.cfg.CS == (table.CSConfig{}) {
		x.cfg.CS = table.CSConfig{Capacity: c.CS, Policy: c.CSPolicy}
	}
	if x.cfg.NodeID == 0 {
		x.cfg.NodeID = uint64(x.index) + 1
	}
	if x.cfg.DefaultStrategy == nil {
		x.cfg.DefaultStrategy = n.strategy
		if c.Strategy != "" {
			x.cfg.DefaultStrategy = n.strategyName(c.Strategy)
		}
	}
	x.zone = n.zoneOf()
	x.id = x.zone.join(x)
	n.nodes = append(n.nodes, x)
	n.byName[name] = x
	x.start()
	return x
}

// start gives the node a new shard.
func (x *Node) start() {
	cfg := x.cfg
	if cfg.Seed == 0 {
		cfg.Seed = x.net.seed(seedNode, uint64(x.index)|x.lives<<32)
	}
	cfg.Scratch = x.net.nodeMem
	if cfg.OnAnnouncement == nil {
		cfg.OnAnnouncement = x.announced
	}
	x.heard, x.learnt, x.forgets = nil, nil, ndn.Never
	x.lives++
	if x.net.strategies == nil {
		return
	}
	s, err := fw.New(cfg, x.net.strategies, x)
	if err != nil {
		x.net.fail(fmt.Errorf("node %s: %w", x.name, err))
		return
	}
	x.shard = s
	if x.net.trace != nil || x.watch != nil {
		s.SetTracer((*decisions)(x))
	}
}

// Watch has fn called with every decision of the node's strategies, which is
// valid during the call. There is one watcher; nil ends it.
func (x *Node) Watch(fn func(*strategy.Decision)) {
	x.watch = fn
	switch {
	case x.shard == nil:
	case x.net.trace != nil || fn != nil:
		x.shard.SetTracer((*decisions)(x))
	default:
		x.shard.SetTracer(nil)
	}
}

// Neighbor is the node behind a face, nil when that is an application's or
// there is no such face.
func (x *Node) Neighbor(f ndn.FaceID) *Node {
	i := f - firstFace
	if i >= ndn.FaceID(len(x.ports)) || x.ports[i] == nil {
		return nil
	}
	other, _ := x.ports[i].peer.owner.(*Node)
	return other
}

// Name of the node.
func (x *Node) Name() string { return x.name }

// Shard is the node's shard, for what has no method here. It is another one
// after Restart.
func (x *Node) Shard() *fw.Shard { return x.shard }

// Counters are the shard's.
func (x *Node) Counters() fw.Counters { return x.shard.Counters() }

// Links of the node, in the order they were made.
func (x *Node) Links() []*Link { return x.links }

// LinkTo is the first link to another node, nil if there is none.
func (x *Node) LinkTo(other *Node) *Link {
	for _, l := range x.links {
		if l.Other(x) == other {
			return l
		}
	}
	return nil
}

func (x *Node) addPort(p *port) {
	x.ports = append(x.ports, p)
	p.face = firstFace + ndn.FaceID(len(x.ports)-1)
	x.addFace(p)
}

func (x *Node) addFace(p *port) {
	if x.shard != nil {
		x.net.fail(x.shard.AddFace(x.net.now, fw.FaceInfo{ID: p.face, Local: p.local}))
	}
}

func (x *Node) removePort(p *port) {
	x.ports[p.face-firstFace] = nil
	if x.shard != nil && !x.dead {
		x.shard.RemoveFace(x.net.now, p.face)
		x.armed()
	}
}

// Send implements fw.Sender.
func (x *Node) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	i := to - firstFace
	if i >= ndn.FaceID(len(x.ports)) || x.ports[i] == nil {
		return false
	}
	return x.ports[i].send(x.net.now, wire, f)
}

// receive implements endpoint.
func (x *Node) receive(now ndn.Time, p *port, frame []byte) {
	if x.dead {
		return
	}
	n := x.net
	n.events++
	if !p.parse(now, frame) {
		return
	}
	if n.trace != nil {
		n.trace.received(x, p, len(frame))
	}
	x.shard.Receive(now, p.face, &n.packet)
	if len(x.heard) > 0 {
		x.learn(now)
	}
	x.armed()
}

// gaveUp implements endpoint.
func (x *Node) gaveUp(now ndn.Time, p *port, interest []byte) {
	if !x.dead {
		x.shard.GaveUp(now, p.face, interest)
		x.armed()
	}
}

// fire implements actor.
func (x *Node) fire(now ndn.Time) ndn.Time {
	if x.dead {
		return ndn.Never
	}
	x.shard.Tick(now)
	if now >= x.forgets {
		x.forget(now)
	}
	return x.deadline()
}

func (x *Node) deadline() ndn.Time { return min(x.shard.Deadline(), x.forgets) }

// armed sees to the deadline after something happened in the shard.
func (x *Node) armed() { x.zone.wake(x.id, x.deadline()) }

func (x *Node) faceDown(p *port) {
	if !x.dead {
		x.shard.FaceDown(x.net.now, p.face)
		x.armed()
	}
}

func (x *Node) faceUp(p *port) {
	if !x.dead {
		x.shard.FaceUp(x.net.now, p.face)
		x.armed()
	}
}

// SetRoute adds a next hop for a prefix over a link, or changes its cost.
func (x *Node) SetRoute(prefix string, via *Link, cost uint64) {
	name := x.net.name(prefix)
	p := via.From(x).to.peer
	for i := range x.routes {
		if r := &x.routes[i]; r.via == p && r.prefix.Equal(name) {
			x.routes = append(x.routes[:i], x.routes[i+1:]...)
			break
		}
	}
	x.addRoute(route{name, p, cost, false})
}

// RemoveRoute removes a next hop.
func (x *Node) RemoveRoute(prefix string, via *Link) {
	x.dropRoutes(func(r *route) bool {
		return r.via == via.From(x).to.peer && r.prefix.Equal(x.net.name(prefix))
	})
}

func (x *Node) addRoute(r route) {
	x.routes = append(x.routes, r)
	x.applyRoute(&r)
}

func (x *Node) applyRoute(r *route) {
	if !x.dead && x.shard != nil {
		x.net.fail(x.shard.SetNextHop(x.net.now, r.prefix, r.via.face, r.cost))
		x.armed()
	}
}

func (x *Node) dropRoutes(which func(*route) bool) {
	kept := x.routes[:0]
	for i := range x.routes {
		r := x.routes[i]
		if !which(&r) {
			kept = append(kept, r)
		} else if !x.dead && x.shard != nil {
			x.shard.RemoveNextHop(x.net.now, r.prefix, r.via.face)
		}
	}
	x.routes = kept
}

// SetStrategy chooses the strategy of a prefix, by its short or full name.
func (x *Node) SetStrategy(prefix, strategy string) {
	c := choice{x.net.name(prefix), x.net.strategyName(strategy)}
	x.choices = append(x.choices, c)
	x.choose(c)
}

func (x *Node) choose(c choice) {
	if x.shard == nil || x.dead {
		return
	}
	_, err := x.shard.SetStrategy(x.net.now, c.prefix, c.strategy)
	x.net.fail(err)
	x.armed()
}

// Kill ends the node's process: what arrives is lost, its neighbours' faces
// go down one link delay later (as a closed connection or an ICMP error tells
// them), and its fetches fail. What it had sent still travels.
func (x *Node) Kill() {
	if x.dead {
		return
	}
	x.net.note("node", x.name, "killed")
	x.die()
	for _, l := range x.links {
		peer := l.From(x).to
		x.net.calls.at(x.net.now.Add(l.From(x).Params().Delay), func() {
			if x.dead && l.state == line.Up {
				peer.owner.(*Node).faceDown(peer)
			}
		})
	}
}

// Crash takes the node away without a word, as when its host loses power:
// what arrives is lost and nobody is told.
func (x *Node) Crash() {
	if !x.dead {
		x.net.note("node", x.name, "crashed")
		x.die()
	}
}

func (x *Node) die() {
	x.dead = true
	for _, p := range x.ports {
		if p != nil && p.local {
			if f, ok := p.peer.owner.(*Fetch); ok {
				f.abort(ErrKilled)
			}
		}
	}
}

// Alive reports whether the node runs.
func (x *Node) Alive() bool { return !x.dead }

// Restart starts the node again after Kill or Crash, with empty tables, the
// routes and strategies that it had, and all its neighbours' faces up.
func (x *Node) Restart() {
	if !x.dead {
		return
	}
	x.net.note("node", x.name, "restarted")
	x.dead = false
	x.start()
	for _, p := range x.ports {
		if p != nil {
			x.addFace(p)
		}
	}
	for _, r := range x.routes {
		x.net.fail(x.shard.SetNextHop(x.net.now, r.prefix, r.via.face, r.cost))
	}
	for _, c := range x.choices {
		x.choose(c)
	}
	for _, l := range x.links {
		if p := l.From(x).to; l.state == line.Down {
			x.faceDown(p.peer)
		} else {
			p.owner.(*Node).faceUp(p)
		}
	}
}
