package table

import (
	"bytes"
	"math/bits"

	"ndnpop/ndn"
)

// CS is a content store: copies of Data, found by name, by prefix and by
// implicit digest. Its size is in bytes, its own records included.
//
// Data that were fetched under a forwarding hint are kept apart from those
// that were not: a hint lets a consumer choose whom to ask, so the answers are
// for those who use the same hint.
type CS struct {
	cfg    CSConfig
	hasher ndn.Hasher
	policy csPolicy
	mem    csMem

	index     index
	entries   slab[csEntry]
	nodeIndex index
	nodes     slab[csNode]
	nodeCount int

	packets int
	hinted  int // of these, with a hint
	bytes   int64
	info    CSInfo // the counters in it
	read    uint64 // what Ahead read
}

type csEntry struct {
	hash       uint64 // of the name, mixed with that of the hint
	fresh      ndn.Time
	page, slot uint32
	parent     uint32 // 1 + node
	prev, next csRef
	wireLen    uint16
	hintLen    uint16
	nameAt     uint16
	nameLen    uint16
	hasDigest  bool
	digest     [32]byte
}

// What a packet occupies beside its slot, and what a prefix does: the record,
// its links in the policy, its owner in the page, and its cell in an index
// that is a third full. A test compares them with the types.
const (
	csEntryCost = 80 + 8 + 4 + 24
	csNodeCost  = 32 + 24
)

const (
	csMaxHint  = 1024
	csMaxTries = 64 // evictions one by one for one insertion
)

// NewCS returns an empty store.
func NewCS(h ndn.Hasher, cfg CSConfig) (*CS, error) {
	cs := &CS{hasher: h}
	if err := cs.reset(cfg); err != nil {
		return nil, err
	}
	return cs, nil
}

func (cs *CS) reset(cfg CSConfig) error {
	p, err := newPolicy(cfg.Policy)
	if err != nil {
		return err
	}
	if cfg.Policy == "" {
		cfg.Policy = CSPolicies()[0]
	}
	source := cfg.Pages
	if source == nil {
		source = heapPages{}
	}
	cs.cfg, cs.policy = cfg, p
	cs.mem = csMem{source: source, pageSize: pageSizeFor(cfg.Capacity)}
	return nil
}

// Configure changes the configuration. Packets that no longer fit are
// evicted; another policy or source of memory empties the store first.
func (cs *CS) Configure(cfg CSConfig) error {
	if cfg.Policy == "" {
		cfg.Policy = CSPolicies()[0]
	}
	if _, err := newPolicy(cfg.Policy); err != nil {
		return err
	}
	if cfg.Policy != cs.cfg.Policy || cfg.Pages != cs.cfg.Pages {
		for cs.packets > 0 {
			cs.remove(cs.policy.victim())
		}
	}
	old := cs.cfg.Capacity
	cs.cfg.Capacity, cs.cfg.MaxPackets = cfg.Capacity, cfg.MaxPackets
	for cs.packets > 0 && (cs.over(0, 0) || (cfg.MaxPackets > 0 && cs.packets > cfg.MaxPackets)) {
		if cs.memory() <= cfg.Capacity || !cs.mem.dropPage() {
			cs.evict()
		}
	}
	if cs.packets == 0 && (old != cfg.Capacity || cfg.Policy != cs.cfg.Policy || cfg.Pages != cs.cfg.Pages) {
		for cs.mem.dropPage() {
		}
		return cs.reset(cfg)
	}
	for cs.over(0, 0) && cs.mem.dropPage() {
	}
	cs.cfg = cfg
	return nil
}

// Info returns the store's state.
func (cs *CS) Info() CSInfo {
	i := cs.info
	i.Config, i.Packets, i.Bytes, i.Memory = cs.cfg, cs.packets, cs.bytes, cs.memory()
	return i
}

// Ahead reads the cells that searches for at most MaxAhead hashes will, so that the processor
// waits for all of them at once.
func (cs *CS) Ahead(hashes []uint64) {
	if cs.index.isFar() {
		cs.read = cs.index.ahead(hashes)
	}
}

// Serves reports whether the store answers anything.
func (cs *CS) Serves() bool { return !cs.cfg.NoServe && cs.cfg.Capacity > 0 }

// memory is what the store occupies.
func (cs *CS) memory() int64 {
	return int64(cs.mem.held)*int64(cs.mem.pageSize) +
		int64(cs.packets)*csEntryCost + int64(cs.nodeCount)*csNodeCost
}

// over reports whether the capacity would be exceeded with so many bytes and
// pages more.
func (cs *CS) over(bytes, pages int64) bool {
	return cs.memory()+bytes+pages*int64(cs.mem.pageSize) > cs.cfg.Capacity
}

func (cs *CS) hintHash(hint []byte) uint64 {
	if len(hint) == 0 {
		return 0
	}
	return bits.RotateLeft64(cs.hasher.Name(hint), 32)
}

// Insert stores a copy of a Data that was fetched under hint (the value of the
// forwarding hint; nil without). hashes are those of the name's prefixes. A
// Data of the same name takes the older one's place. It reports whether the
// Data is now held.
func (cs *CS) Insert(now ndn.Time, d *ndn.Data, hint []byte, hashes []uint64) bool {
	if cs.cfg.NoAdmit || cs.cfg.Capacity <= 0 {
		return false
	}
	size := len(d.Wire) + len(hint)
	if size > csMaxSlot || len(hint) > csMaxHint || len(d.Name) == 0 || len(hashes) != d.NameLen+1 {
		cs.info.Refused++
		return false
	}
	h := hashes[len(hashes)-1] ^ cs.hintHash(hint)
	class := classOf(size)
	slot, ok := cs.find(h, d.Name, hint)
	if ok {
		e := cs.entries.at(slot)
		if int(cs.mem.pages[e.page].class) != class {
			cs.remove(slot)
			ok = false
		} else {
			cs.bytes -= int64(e.wireLen)
			cs.policy.removed(slot)
			cs.policy.inserted(slot)
			cs.fill(slot, now, d, hint)
			return true
		}
	}
	if !cs.makeRoom(class, csEntryCost+int64(d.NameLen)*csNodeCost) {
		cs.info.Refused++
		return false
	}
	slot = cs.entries.get()
	e := cs.entries.at(slot)
	*e = csEntry{}
	e.hash = h
	e.page, e.slot = cs.mem.alloc(class, slot)
	cs.packets++
	if len(hint) > 0 {
		cs.hinted++
	}
	cs.fill(slot, now, d, hint)
	cs.index.insert(h, slot)
	cs.attach(slot, hashes)
	cs.policy.inserted(slot)
	return true
}

// fill copies a packet into an entry's slot.
func (cs *CS) fill(slot uint32, now ndn.Time, d *ndn.Data, hint []byte) {
	e := cs.entries.at(slot)
	buf := cs.mem.bytes(e.page, e.slot, len(d.Wire)+len(hint))
	copy(buf[copy(buf, d.Wire):], hint)
	// The name is the first element of the packet.
	_, _, outer, _ := ndn.ReadTL(d.Wire)
	_, _, inner, _ := ndn.ReadTL(d.Wire[outer:])
	e.wireLen, e.hintLen = uint16(len(d.Wire)), uint16(len(hint))
	e.nameAt, e.nameLen = uint16(outer+inner), uint16(len(d.Name))
	e.hasDigest = false
	e.fresh = 0
	if d.Freshness > 0 {
		e.fresh = now.Add(d.Freshness)
	}
	cs.bytes += int64(e.wireLen)
	cs.info.Inserts++
}

// makeRoom evicts until a slot of a class can be had, and records of so many
// bytes.
func (cs *CS) makeRoom(class int, records int64) bool {
	if classSize(class) > cs.mem.pageSize {
		return false
	}
	if cs.cfg.MaxPackets > 0 && cs.packets >= cs.cfg.MaxPackets {
		cs.evict()
	}
	for tries := 0; ; {
		switch {
		case cs.mem.hasRoom(class) && !cs.over(records, 0):
			return true
		case !cs.mem.hasRoom(class) && !cs.over(records, 1):
			if cs.mem.addPage() {
				return true
			}
		case cs.mem.hasRoom(class) && len(cs.mem.empty) > 0 && cs.mem.partial[class] != 0:
			// Records want the memory of an empty page.
			cs.mem.dropPage()
			continue
		}
		switch {
		case cs.packets == 0:
			// The store is too small for anything, or there is no memory.
			return false
		case tries < csMaxTries:
			cs.evict()
			tries++
		default:
			// Slots of other classes keep becoming free: take a whole page.
			victim := cs.entries.at(cs.policy.victim())
			cs.mem.occupants(victim.page, func(slot uint32) {
				cs.remove(slot)
				cs.info.Evicted++
			})
		}
	}
}

func (cs *CS) evict() {
	cs.remove(cs.policy.victim())
	cs.info.Evicted++
}

func (cs *CS) remove(slot uint32) {
	e := cs.entries.at(slot)
	cs.index.remove(e.hash, slot)
	cs.detach(slot)
	cs.policy.removed(slot)
	cs.mem.release(e.page, e.slot)
	cs.packets--
	if e.hintLen > 0 {
		cs.hinted--
	}
	cs.bytes -= int64(e.wireLen)
	cs.entries.put(slot)
}

func (cs *CS) wire(e *csEntry) []byte { return cs.mem.bytes(e.page, e.slot, int(e.wireLen)) }

func (cs *CS) name(e *csEntry) ndn.Name {
	return ndn.Name(cs.mem.bytes(e.page, e.slot, int(e.nameAt)+int(e.nameLen))[e.nameAt:])
}

func (cs *CS) hasHint(e *csEntry, hint []byte) bool {
	if int(e.hintLen) != len(hint) {
		return false
	}
	return len(hint) == 0 || bytes.Equal(cs.mem.bytes(e.page, e.slot, int(e.wireLen)+int(e.hintLen))[e.wireLen:], hint)
}

func (cs *CS) find(h uint64, n ndn.Name, hint []byte) (uint32, bool) {
	for slot, it, ok := cs.index.find(h); ok; slot, it, ok = it.next() {
		if e := cs.entries.at(slot); e.hash == h && cs.name(e).Equal(n) && cs.hasHint(e, hint) {
			return slot, true
		}
	}
	return 0, false
}

// Query is what a look-up asks for.
type Query struct {
	Interest *ndn.Interest
	Hint     []byte   // the active forwarding hint; nil when there is none or it is trusted
	Digest   []byte   // implicit digest at the end of the name, or nil
	Hash     uint64   // DataHash of the Interest
	Hashes   []uint64 // of the prefixes of the Interest's name
	// Uncounted leaves Hits and Misses as they are.
	Uncounted bool
}

// Find looks a query up and returns the wire of a Data that answers it, valid
// until the store is changed. Among several that match a prefix, newer ones
// are preferred.
func (cs *CS) Find(now ndn.Time, q *Query) (wire []byte, ok bool) {
	slot := uint32(0)
	if cs.Serves() {
		slot, ok = cs.lookup(now, q)
		switch {
		case q.Uncounted:
		case ok:
			cs.info.Hits++
		default:
			cs.info.Misses++
		}
	}
	if !ok {
		return nil, false
	}
	cs.policy.used(slot)
	return cs.wire(cs.entries.at(slot)), true
}

func (cs *CS) lookup(now ndn.Time, q *Query) (uint32, bool) {
	n := q.Interest.Name
	if q.Digest != nil {
		n = n[:len(n)-34]
	}
	if slot, ok := cs.find(q.Hash^cs.hintHash(q.Hint), n, q.Hint); ok && cs.answers(slot, now, q) {
		return slot, true
	}
	if q.Hint != nil {
		if slot, ok := cs.find(q.Hash, n, nil); ok && cs.answers(slot, now, q) {
			return slot, true
		}
	}
	if !q.Interest.CanBePrefix || q.Digest != nil {
		return 0, false
	}
	at, ok := cs.node(q.Hash, len(q.Hashes)-1, n)
	if !ok {
		return 0, false
	}
	var found uint32
	ok = false
	cs.below(at, func(slot uint32) bool {
		e := cs.entries.at(slot)
		ok = (cs.hasHint(e, q.Hint) || e.hintLen == 0) && cs.answers(slot, now, q) && cs.name(e).HasPrefix(n)
		found = slot
		return !ok
	})
	return found, ok
}

// answers checks freshness and digest.
func (cs *CS) answers(slot uint32, now ndn.Time, q *Query) bool {
	e := cs.entries.at(slot)
	if q.Interest.MustBeFresh && e.fresh <= now {
		return false
	}
	if q.Digest == nil {
		return true
	}
	if !e.hasDigest {
		d := ndn.Data{Wire: cs.wire(e)}
		e.digest, e.hasDigest = d.Digest(), true
	}
	return bytes.Equal(e.digest[:], q.Digest)
}

// Erase removes at most limit (0: all) Data whose names have the given prefix
// and returns how many.
func (cs *CS) Erase(prefix ndn.Name, limit int) int {
	erased := 0
	done := func() bool { return limit > 0 && erased >= limit }
	if len(prefix) == 0 {
		for cs.packets > 0 && !done() {
			cs.remove(cs.policy.victim())
			erased++
		}
		return erased
	}
	h, depth := cs.hasher.Name(prefix), prefix.Len()
	if slot, ok := cs.find(h, prefix, nil); ok {
		cs.remove(slot)
		erased++
	}
	if parent := prefix.Prefix(-1); cs.hinted > 0 {
		// Under a hint, Data of this name are found below its parent only.
		if at, ok := cs.node(cs.hasher.Name(parent), depth-1, parent); ok {
			for r := cs.nodes.at(at).first; r != 0 && !done(); {
				_, _, next := cs.links(r)
				this := r
				r = *next
				if !this.isNode() && cs.name(cs.entries.at(this.slot())).Equal(prefix) {
					cs.remove(this.slot())
					erased++
				}
			}
		}
	}
	for !done() {
		at, ok := cs.node(h, depth, prefix)
		if !ok {
			break
		}
		cs.remove(cs.leaf(at))
		erased++
	}
	return erased
}
