package sim

import (
	"container/heap"
	"math"

	"ndnpop/ndn"
	"ndnpop/sim/line"
)

// Routing says which routes Reroute makes.
type Routing uint8

const (
	// RouteAll gives every neighbour that is nearer to the producer than the
	// node itself as a next hop: no routes loop, and strategies have what to
	// choose from.
	RouteAll Routing = iota
	// RouteShortest gives only those on a shortest path.
	RouteShortest
	// RouteNone leaves routes to Node.SetRoute.
	RouteNone
)

// announcement is a prefix that can be reached at a node.
type announcement struct {
	prefix ndn.Name
	node   *Node
	cost   uint64
}

// Announce makes a prefix reachable at a node: the others get routes when Run
// begins, or from Reroute. The node itself needs one of its own.
func (n *Network) Announce(prefix string, at *Node, cost uint64) {
	n.announced = append(n.announced, announcement{n.name(prefix), at, cost})
	n.dirty = true
}

// Reroute computes the routes to all producers anew, from the links that are
// not down and the nodes that are alive, as a routing protocol would when it
// has noticed. Routes made by SetRoute stay, and nobody hears of those that are
// what they were.
func (n *Network) Reroute() {
	n.dirty = false
	if n.cfg.Routing == RouteNone {
		return
	}
	want := make([][]route, len(n.nodes))
	dist := make([]uint64, len(n.nodes))
	done := make([]bool, len(n.announced))
	for i := range n.announced {
		if done[i] {
			continue
		}
		a := &n.announced[i]
		var from []announcement
		for k := i; k < len(n.announced); k++ {
			if b := &n.announced[k]; b.prefix.Equal(a.prefix) {
				done[k] = true
				from = append(from, *b)
			}
		}
		n.distances(from, dist)
		for k, x := range n.nodes {
			want[k] = n.routesOf(want[k], x, a.prefix, dist)
		}
	}
	for k, x := range n.nodes {
		x.setRoutes(want[k])
	}
}

// routesOf appends the routes of one node to a prefix.
func (n *Network) routesOf(want []route, x *Node, prefix ndn.Name, dist []uint64) []route {
	for _, l := range x.links {
		d := dist[l.Other(x).index]
		if d >= dist[x.index] || !l.usable() {
			continue
		}
		if n.cfg.Routing == RouteShortest && d+l.Cost != dist[x.index] {
			continue
		}
		want = append(want, route{prefix, l.From(x).to.peer, d + l.Cost, true})
	}
	return want
}

// setRoutes changes the routes that Reroute makes into others.
func (x *Node) setRoutes(want []route) {
	x.dropRoutes(func(r *route) bool { return r.auto && findRoute(want, r.prefix, r.via) == nil })
	for i := range want {
		w := &want[i]
		switch r := findRoute(x.routes, w.prefix, w.via); {
		case r == nil:
			x.addRoute(*w)
		case r.auto && r.cost != w.cost:
			r.cost = w.cost
			x.applyRoute(r)
		}
	}
}

func findRoute(in []route, prefix ndn.Name, via *port) *route {
	for i := range in {
		if r := &in[i]; r.via == via && r.prefix.Equal(prefix) {
			return r
		}
	}
	return nil
}

func (l *Link) usable() bool { return l.state != line.Down && !l.A.dead && !l.B.dead }

// distances fills dist with the cost of the cheapest path from each node to
// the nearest of several (Dijkstra).
func (n *Network) distances(from []announcement, dist []uint64) {
	for i := range dist {
		dist[i] = math.MaxUint64
	}
	var q frontier
	for _, a := range from {
		if !a.node.dead && a.cost < dist[a.node.index] {
			dist[a.node.index] = a.cost
			heap.Push(&q, reached{a.cost, a.node})
		}
	}
	for q.Len() > 0 {
		r := heap.Pop(&q).(reached)
		if r.cost > dist[r.node.index] {
			continue
		}
		for _, l := range r.node.links {
			o := l.Other(r.node)
			if c := r.cost + l.Cost; l.usable() && c < dist[o.index] {
				dist[o.index] = c
				heap.Push(&q, reached{c, o})
			}
		}
	}
}

type reached struct {
	cost uint64
	node *Node
}

type frontier []reached

func (f frontier) Len() int      { return len(f) }
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f frontier) Less(i, j int) bool {
	return f[i].cost < f[j].cost || f[i].cost == f[j].cost && f[i].node.index < f[j].node.index
}
func (f *frontier) Push(x any) { *f = append(*f, x.(reached)) }
func (f *frontier) Pop() any {
	o := *f
	x := o[len(o)-1]
	*f = o[:len(o)-1]
	return x
}
