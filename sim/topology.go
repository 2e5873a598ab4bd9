package sim

import "fmt"

// Chain adds nodes in a row, named prefix0, prefix1 and so on, each connected
// with the next.
func (n *Network) Chain(prefix string, nodes int, node NodeConfig, link LinkConfig) []*Node {
	var c []*Node
	for i := range nodes {
		c = append(c, n.AddNode(fmt.Sprint(prefix, i), node))
		if i > 0 {
			n.Connect(c[i-1], c[i], link)
		}
	}
	return c
}

// DumbbellConfig describes pairs of nodes that share a bottleneck.
type DumbbellConfig struct {
	Pairs int
	// Left and Right are the links of the i-th consumer and producer to the
	// bottleneck's ends; nil is a link without limits.
	Left, Right func(i int) LinkConfig
	Bottleneck  LinkConfig
	Node        NodeConfig
}

// Dumbbell is the network that DumbbellConfig describes: left0 … – a – b –
// right0 …
type Dumbbell struct {
	Left, Right []*Node
	A, B        *Node
	Bottleneck  *Link
}

// Dumbbell adds a dumbbell.
func (n *Network) Dumbbell(c DumbbellConfig) Dumbbell {
	d := Dumbbell{A: n.AddNode("a", c.Node), B: n.AddNode("b", c.Node)}
	d.Bottleneck = n.Connect(d.A, d.B, c.Bottleneck)
	link := func(f func(int) LinkConfig, i int) LinkConfig {
		if f == nil {
			return LinkConfig{}
		}
		return f(i)
	}
	for i := range c.Pairs {
		l, r := n.AddNode(fmt.Sprint("left", i), c.Node), n.AddNode(fmt.Sprint("right", i), c.Node)
		n.Connect(l, d.A, link(c.Left, i))
		n.Connect(d.B, r, link(c.Right, i))
		d.Left, d.Right = append(d.Left, l), append(d.Right, r)
	}
	return d
}

// TreeConfig describes a tree. Level 0 is the root; a node at level i has
// Fanout[i] children.
type TreeConfig struct {
	Fanout []int
	// Node and Link describe the nodes at a level, and their links to the
	// level above; nil is the zero value.
	Node func(level int) NodeConfig
	Link func(level int) LinkConfig
}

// Tree adds a tree and returns its nodes by level. They are named by level and
// number: t0.0, t1.0, t1.1 and so on.
func (n *Network) Tree(c TreeConfig) [][]*Node {
	node := func(level int) (x NodeConfig) {
		if c.Node != nil {
			x = c.Node(level)
		}
		return x
	}
	levels := [][]*Node{{n.AddNode("t0.0", node(0))}}
	for i, fanout := range c.Fanout {
		var link LinkConfig
		if c.Link != nil {
			link = c.Link(i + 1)
		}
		var below []*Node
		for _, parent := range levels[i] {
			for range fanout {
				x := n.AddNode(fmt.Sprintf("t%d.%d", i+1, len(below)), node(i+1))
				n.Connect(parent, x, link)
				below = append(below, x)
			}
		}
		levels = append(levels, below)
	}
	return levels
}

// CDNConfig describes a hierarchy of caches: clients at edges, every edge
// connected with several middle nodes, every middle node with all origins.
type CDNConfig struct {
	Edges          int
	ClientsPerEdge int
	Mids           int
	// MidsPerEdge is how many middle nodes an edge is connected with; 0 is
	// all. They are the ones that follow the edge's number.
	MidsPerEdge int
	Origins     int

	Client, Edge, Mid, Origin NodeConfig
	Access, Metro, Core       LinkConfig // client–edge, edge–mid, mid–origin
}

// CDN is the network that CDNConfig describes.
type CDN struct{ Clients, Edges, Mids, Origins []*Node }

// CDN adds a hierarchy of caches: client0, edge0, mid0, origin0 and so on.
// Clients are numbered edge by edge.
func (n *Network) CDN(c CDNConfig) CDN {
	var d CDN
	row := func(name string, count int, cfg NodeConfig) (r []*Node) {
		for i := range count {
			r = append(r, n.AddNode(fmt.Sprint(name, i), cfg))
		}
		return r
	}
	d.Origins = row("origin", c.Origins, c.Origin)
	d.Mids = row("mid", c.Mids, c.Mid)
	d.Edges = row("edge", c.Edges, c.Edge)
	d.Clients = row("client", c.Edges*c.ClientsPerEdge, c.Client)
	for _, m := range d.Mids {
		for _, o := range d.Origins {
			n.Connect(m, o, c.Core)
		}
	}
	if c.MidsPerEdge <= 0 || c.MidsPerEdge > c.Mids {
		c.MidsPerEdge = c.Mids
	}
	for i, e := range d.Edges {
		for k := range c.MidsPerEdge {
			n.Connect(e, d.Mids[(i+k)%c.Mids], c.Metro)
		}
		for k := range c.ClientsPerEdge {
			n.Connect(d.Clients[i*c.ClientsPerEdge+k], e, c.Access)
		}
	}
	return d
}
