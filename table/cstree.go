package table

import "ndnpop/ndn"

// csNode is a proper prefix of the name of at least one Data in the store.
// Nodes hold no name: that of any Data below is looked at instead.
type csNode struct {
	hash       uint64
	first      csRef  // newest child
	parent     uint32 // 1 + node
	prev, next csRef  // siblings
	depth      uint8  // components
}

// csRef refers to a child of a node: an entry or a node; zero is none.
type csRef uint32

func entryRef(slot uint32) csRef { return csRef((slot + 1) << 1) }
func nodeRef(slot uint32) csRef  { return csRef((slot+1)<<1 | 1) }
func (r csRef) isNode() bool     { return r&1 != 0 }
func (r csRef) slot() uint32     { return uint32(r>>1) - 1 }

// maxScan bounds how many nodes and Data a look-up by prefix or a removal of
// one prefix visits at once.
const maxScan = 64

func (cs *CS) links(r csRef) (parent *uint32, prev, next *csRef) {
	if r.isNode() {
		n := cs.nodes.at(r.slot())
		return &n.parent, &n.prev, &n.next
	}
	e := cs.entries.at(r.slot())
	return &e.parent, &e.prev, &e.next
}

// attach puts a Data's entry below the node of its name's parent, making the
// nodes that are missing.
func (cs *CS) attach(slot uint32, hashes []uint64) {
	child := entryRef(slot)
	for depth := len(hashes) - 2; depth >= 0; depth-- {
		at, ok := cs.nodeOf(hashes[depth], depth)
		if !ok {
			at = cs.nodes.get()
			*cs.nodes.at(at) = csNode{hash: hashes[depth], depth: uint8(depth)}
			cs.nodeCount++
		}
		n := cs.nodes.at(at)
		parent, prev, next := cs.links(child)
		*parent, *prev, *next = at+1, 0, n.first
		if n.first != 0 {
			_, p, _ := cs.links(n.first)
			*p = child
		}
		n.first = child
		if ok {
			return
		}
		// Only now can the node be found: it has a Data below it.
		cs.nodeIndex.insert(hashes[depth], at)
		child = nodeRef(at)
	}
}

// detach is the reverse of attach.
func (cs *CS) detach(slot uint32) {
	for child := entryRef(slot); ; {
		parent, prev, next := cs.links(child)
		if *parent == 0 {
			return
		}
		at := *parent - 1
		n := cs.nodes.at(at)
		if *prev != 0 {
			_, _, nx := cs.links(*prev)
			*nx = *next
		} else {
			n.first = *next
		}
		if *next != 0 {
			_, pv, _ := cs.links(*next)
			*pv = *prev
		}
		*parent, *prev, *next = 0, 0, 0
		if n.first != 0 {
			return
		}
		cs.nodeIndex.remove(n.hash, at)
		cs.nodeCount--
		cs.nodes.put(at)
		child = nodeRef(at)
	}
}

// nodeOf finds the node of the name with a hash. It does not look at the name,
// which is in some packet below, likely to be far from the processor. Should two
// names have the same hash, which nobody without its key can provoke, they share
// the node: a look-up by prefix, or Erase, may then miss Data.
func (cs *CS) nodeOf(h uint64, depth int) (uint32, bool) {
	for at, it, ok := cs.nodeIndex.find(h); ok; at, it, ok = it.next() {
		if n := cs.nodes.at(at); n.hash == h && int(n.depth) == depth {
			return at, true
		}
	}
	return 0, false
}

// node finds the node of the first depth components of name.
func (cs *CS) node(h uint64, depth int, name ndn.Name) (uint32, bool) {
	at, ok := cs.nodeOf(h, depth)
	return at, ok && cs.name(cs.entries.at(cs.leaf(at))).HasPrefix(name.Prefix(depth))
}

// leaf returns some entry below a node.
func (cs *CS) leaf(at uint32) uint32 {
	for {
		r := cs.nodes.at(at).first
		if !r.isNode() {
			return r.slot()
		}
		at = r.slot()
	}
}

// below calls fn for entries below a node, newest first, until it returns
// false or maxScan nodes and entries have been visited. fn must not change
// the store.
func (cs *CS) below(at uint32, fn func(slot uint32) bool) {
	left := maxScan
	for r := cs.nodes.at(at).first; r != 0; left-- {
		if left == 0 || (!r.isNode() && !fn(r.slot())) {
			return
		}
		if r.isNode() {
			r = cs.nodes.at(r.slot()).first
			continue
		}
		for {
			parent, _, next := cs.links(r)
			if *next != 0 {
				r = *next
				break
			}
			if *parent == 0 || *parent-1 == at {
				return
			}
			r = nodeRef(*parent - 1)
		}
	}
}
