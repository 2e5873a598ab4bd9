package run

import (
	"slices"
	"sort"

	"ndnpop/fw/internal/due"
	"ndnpop/ndn"
)

// rib is the routing information base and its translation into next hops,
// with NFD's rules (NFD Developer's Guide, "RIB to FIB"):
//
//   - an entry's own routes give a next hop each, the cheapest of a face;
//   - an entry that has routes, none of them with capture, also gets the next
//     hops of routes with child-inherit at shorter prefixes, up to the first
//     one with capture; of one face the nearest prefix counts, and own routes
//     before inherited ones.
//
// It stores no result: each change recomputes, for the faces and the subtree
// that it can concern, what they should be. It has no lock.
type rib struct {
	root    ribNode
	byFace  map[ndn.FaceID]*route // head of the face's list
	expiry  due.Queue[*route]
	count   int
	maximum int
	sink    func(c fibChange)
	scratch ndn.Name
}

// fibChange is one next hop to set or remove. prefix is valid during the call.
type fibChange struct {
	prefix ndn.Name
	face   ndn.FaceID
	cost   uint64
	remove bool
}

// ribNode is a prefix; those without routes only lead to others.
type ribNode struct {
	parent *ribNode
	comp   string // the last component, encoded
	kids   map[string]*ribNode
	routes *route // by face, then origin
}

type route struct {
	node         *ribNode
	next         *route // of the node
	prevF, nextF *route // of the face
	face         ndn.FaceID
	origin, cost uint64
	expires      ndn.Time
	place        due.Place // in expiry
	inherit      bool
	capture      bool
}

// Before implements due.Item.
func (r *route) Before(o *route) bool { return r.expires < o.expires }

// Place implements due.Item.
func (r *route) Place() *due.Place { return &r.place }

func newRIB(maximum int, sink func(fibChange)) *rib {
	return &rib{byFace: map[ndn.FaceID]*route{}, maximum: maximum, sink: sink}
}

// find returns the node of a prefix, nil if there is none and make is false.
func (b *rib) find(prefix ndn.Name, create bool) *ribNode {
	n := &b.root
	for len(prefix) > 0 {
		_, rest := prefix.Next()
		comp := prefix[:len(prefix)-len(rest)]
		prefix = rest
		kid := n.kids[string(comp)]
		if kid == nil {
			if !create {
				return nil
			}
			kid = &ribNode{parent: n, comp: string(comp)}
			if n.kids == nil {
				n.kids = map[string]*ribNode{}
			}
			n.kids[kid.comp] = kid
		}
		n = kid
	}
	return n
}

// prune removes nodes that lead nowhere.
func (n *ribNode) prune() {
	for n.parent != nil && n.routes == nil && len(n.kids) == 0 {
		delete(n.parent.kids, n.comp)
		n = n.parent
	}
}

// appendName appends the node's prefix to b.
func (n *ribNode) appendName(b ndn.Name) ndn.Name {
	if n.parent == nil {
		return b
	}
	return append(n.parent.appendName(b), n.comp...)
}

func (n *ribNode) captures() bool {
	for r := n.routes; r != nil; r = r.next {
		if r.capture {
			return true
		}
	}
	return false
}

// cheapest is the lowest cost of a face's routes at n, of those that children
// inherit if inherit is set.
func (n *ribNode) cheapest(id ndn.FaceID, inherit bool) (cost uint64, ok bool) {
	for r := n.routes; r != nil; r = r.next {
		if r.face == id && (r.inherit || !inherit) && (!ok || r.cost < cost) {
			cost, ok = r.cost, true
		}
	}
	return cost, ok
}

// inherited is what a face's routes at the prefixes above n offer to n.
func (n *ribNode) inherited(id ndn.FaceID) (cost uint64, ok bool) {
	for p := n.parent; p != nil; p = p.parent {
		if cost, ok = p.cheapest(id, true); ok || p.captures() {
			return cost, ok
		}
	}
	return 0, false
}

// inheritedFaces lists the faces that inherited finds something for.
func (n *ribNode) inheritedFaces() (ids []ndn.FaceID) {
	for p := n.parent; p != nil; p = p.parent {
		for r := p.routes; r != nil; r = r.next {
			if r.inherit && !slices.Contains(ids, r.face) {
				ids = append(ids, r.face)
			}
		}
		if p.captures() {
			break
		}
	}
	return ids
}

// apply sends the next hop of one face at n and, if deep, below it.
func (b *rib) apply(n *ribNode, id ndn.FaceID, inherited uint64, has, deep bool) {
	capture := n.captures()
	if n.routes != nil {
		cost, ok := n.cheapest(id, false)
		if !ok && !capture {
			cost, ok = inherited, has
		}
		b.emit(n, id, cost, !ok)
	}
	if !deep || len(n.kids) == 0 {
		return
	}
	if cost, ok := n.cheapest(id, true); ok {
		inherited, has = cost, true
	} else if capture {
		has = false
	}
	for _, k := range n.sortedKids() {
		b.apply(k, id, inherited, has, true)
	}
}

func (n *ribNode) sortedKids() []*ribNode {
	kids := make([]*ribNode, 0, len(n.kids))
	for _, k := range n.kids {
		kids = append(kids, k)
	}
	sort.Slice(kids, func(i, j int) bool { return ndn.Name(kids[i].comp).Compare(ndn.Name(kids[j].comp)) < 0 })
	return kids
}

func (b *rib) emit(n *ribNode, id ndn.FaceID, cost uint64, remove bool) {
	b.scratch = n.appendName(b.scratch[:0])
	b.sink(fibChange{prefix: b.scratch, face: id, cost: cost, remove: remove})
}

// state is what of a node decides how far a change reaches.
type ribState struct{ present, capture bool }

func (n *ribNode) state() ribState { return ribState{n.routes != nil, n.captures()} }

// changed recomputes after a route of face id at n has changed. inherit tells
// whether the route was or is one that children inherit.
func (b *rib) changed(n *ribNode, id ndn.FaceID, was ribState, inherit bool) {
	is := n.state()
	cost, ok := n.inherited(id)
	b.apply(n, id, cost, ok, inherit || was.capture != is.capture)
	if was.present && !is.present {
		b.emit(n, id, 0, true)
	}
	if was == is {
		return
	}
	for _, other := range n.inheritedFaces() {
		if other == id {
			continue
		}
		cost, ok := n.inherited(other)
		b.apply(n, other, cost, ok, was.capture != is.capture)
		if !is.present {
			b.emit(n, other, 0, true)
		}
	}
}

// add adds or changes a route. added is false when there was one.
func (b *rib) add(r *Route) (added bool, err error) {
	n := b.find(r.Prefix, false)
	at := (**route)(nil)
	if n != nil {
		at = n.place(r.Face, r.Origin)
	}
	if at == nil || *at == nil || !(*at).is(r.Face, r.Origin) {
		if b.count >= b.maximum {
			return false, ErrTooManyRoutes
		}
		if n == nil {
			n = b.find(r.Prefix, true)
		}
		was := n.state()
		at = n.place(r.Face, r.Origin)
		e := &route{node: n, next: *at, face: r.Face, origin: r.Origin, cost: r.Cost,
			inherit: r.ChildInherit, capture: r.Capture}
		*at = e
		if head := b.byFace[e.face]; head != nil {
			e.nextF, head.prevF = head, e
		}
		b.byFace[e.face] = e
		b.count++
		b.setExpiry(e, r.Expires)
		b.changed(n, e.face, was, e.inherit)
		return true, nil
	}
	e := *at
	was, inherit := n.state(), e.inherit || r.ChildInherit
	e.cost, e.inherit, e.capture = r.Cost, r.ChildInherit, r.Capture
	b.setExpiry(e, r.Expires)
	b.changed(n, e.face, was, inherit)
	return false, nil
}

// place is where the route of a face and origin stands, or would.
func (n *ribNode) place(id ndn.FaceID, origin uint64) **route {
	at := &n.routes
	for *at != nil && ((*at).face < id || (*at).face == id && (*at).origin < origin) {
		at = &(*at).next
	}
	return at
}

func (r *route) is(id ndn.FaceID, origin uint64) bool { return r.face == id && r.origin == origin }

// same reports whether r already is what n says of the same route.
func (r *route) same(n *Route) bool {
	return r.cost == n.Cost && r.inherit == n.ChildInherit && r.capture == n.Capture && r.expires == n.Expires
}

// get returns the route of a prefix, face and origin.
func (b *rib) get(prefix ndn.Name, id ndn.FaceID, origin uint64) *route {
	n := b.find(prefix, false)
	if n == nil {
		return nil
	}
	if r := *n.place(id, origin); r != nil && r.is(id, origin) {
		return r
	}
	return nil
}

// remove removes a route that get or a list gave.
func (b *rib) remove(r *route) {
	n := r.node
	was := n.state()
	*n.place(r.face, r.origin) = r.next
	if r.prevF != nil {
		r.prevF.nextF = r.nextF
	} else if r.nextF != nil {
		b.byFace[r.face] = r.nextF
	} else {
		delete(b.byFace, r.face)
	}
	if r.nextF != nil {
		r.nextF.prevF = r.prevF
	}
	b.count--
	b.setExpiry(r, 0)
	b.changed(n, r.face, was, r.inherit)
	n.prune()
}

func (b *rib) setExpiry(r *route, t ndn.Time) {
	r.expires = t
	if t == 0 {
		b.expiry.Remove(r)
	} else {
		b.expiry.Set(r)
	}
}

// deadline is when the next route expires.
func (b *rib) deadline() ndn.Time {
	if b.expiry.Len() == 0 {
		return ndn.Never
	}
	return b.expiry.First().expires
}

// expired returns a route whose time has come, nil when there is none.
func (b *rib) expired(now ndn.Time) *route {
	if b.deadline() <= now {
		return b.expiry.First()
	}
	return nil
}

// export is the route as others see it.
func (r *route) export() Route {
	return Route{Prefix: r.node.appendName(nil), Face: r.face, Origin: r.origin, Cost: r.cost,
		ChildInherit: r.inherit, Capture: r.capture, Expires: r.expires}
}

// each calls fn for every route, prefixes in canonical order.
func (b *rib) each(fn func(*route)) { b.root.each(fn) }

func (n *ribNode) each(fn func(*route)) {
	for r := n.routes; r != nil; r = r.next {
		fn(r)
	}
	if len(n.kids) > 0 {
		for _, k := range n.sortedKids() {
			k.each(fn)
		}
	}
}
