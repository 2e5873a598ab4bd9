package table

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"time"

	"ndnpop/ndn"
)

// InRecord says that a downstream waits for an entry's Data.
type InRecord struct {
	Face   ndn.FaceID
	Seen   ndn.Time // its latest Interest
	Expiry ndn.Time
	// ReplicaSelect is the counter of the latest request to choose another
	// replica, valid if HasReplicaSelect.
	ReplicaSelect    uint64
	Nonce            uint32 // of the latest Interest
	HasReplicaSelect bool
	WantsPathTag     bool
	HasHint          bool // its Interest carried a forwarding hint
	tokenLen         uint8
	token            [32]byte
	Place            uint32 // the shard's: where the face keeps the entry
}

// Token is the PIT token of the downstream's latest Interest, nil when it had
// none. It is a view of the record.
func (r *InRecord) Token() []byte {
	if r.tokenLen == 0 {
		return nil
	}
	return r.token[:r.tokenLen]
}

// SetToken copies a token of at most 32 bytes; a longer one counts as none.
func (r *InRecord) SetToken(t []byte) {
	if len(t) > len(r.token) {
		t = nil
	}
	r.tokenLen = uint8(copy(r.token[:], t))
}

// OutRecord says that an entry's Interest was sent to an upstream.
type OutRecord struct {
	Face   ndn.FaceID
	SentAt ndn.Time // the latest Interest
	Expiry ndn.Time
	// Interval is the current suppression interval of this upstream, zero
	// before the first retransmission.
	Interval time.Duration
	Nonce    uint32 // of the latest Interest
	Sends    uint32 // Interests sent; an RTT is certain when it is 1
	// Failed is set when the upstream answered the latest Interest with a
	// Nack or the link gave it up; Reason is then the Nack's.
	Failed bool
	Reason ndn.NackReason
}

// Pending reports whether an answer may still come.
func (r *OutRecord) Pending(now ndn.Time) bool { return !r.Failed && r.Expiry > now }

// StateOwner takes back the value of a State.
type StateOwner interface {
	// Recycle is called once for each value, when nothing refers to it
	// any more.
	Recycle(v any)
}

// State is a slot in which a strategy keeps a value of a type of its own.
type State struct {
	Owner StateOwner
	Value any
}

// Clear gives the value back to its owner.
func (s *State) Clear() {
	if s.Owner != nil {
		o, v := s.Owner, s.Value
		*s = State{}
		o.Recycle(v)
	}
}

// MaxEntryTimers is how many timers an entry can have armed at once beside
// its expiry.
const MaxEntryTimers = 8

// PitEntry is a pending Interest. It is valid until it is removed.
//
// A packet touches an entry twice, with thousands of others in between: what
// most entries need lies in one piece, so that it is in few cache lines and on
// one page.
type PitEntry struct {
	// Wire is the Interest as first received: the entry's own copy. Name and
	// Hint are views of it.
	Wire []byte
	Name ndn.Name
	// Hash is that of the Data's name: of Name without an implicit digest.
	Hash      uint64
	slot, gen uint32

	In  []InRecord
	Out []OutRecord
	// Hint is the value of the active forwarding hint; nil when there is none
	// or it was stripped in a producer region.
	Hint        []byte
	at          uint32 // 1 + position among the live, 0 when free
	NameLen     uint8  // components in Name
	CanBePrefix bool
	MustBeFresh bool
	HasDigest   bool // an implicit digest ends Name

	Forwarding

	in0   [1]InRecord // the memory of In, Out and Wire while it suffices
	out0  [1]OutRecord
	wire0 [80]byte
}

// Forwarding is what a shard keeps with an entry. It is zero in a new one.
type Forwarding struct {
	Arrived uint64 // sequence number of the entry's creation
	Expiry  TimerID
	State   State
	// Timers are those armed beside the expiry, at most MaxEntryTimers.
	Timers     []TimerID
	Interval   time.Duration // current suppression interval
	Strategy   uint32
	HopLimit   uint8 // what an Interest sent upstream carries, if HasHop
	HasHop     bool
	StripHint  bool
	Satisfied  bool
	Lingering  bool
	AckReplica bool // a strategy here took the replica-select request
	Trusted    bool // the operator trusts Hint
}

// Digest is the implicit digest at the end of Name, nil without one. It is a
// view of Wire.
func (e *PitEntry) Digest() []byte {
	if !e.HasDigest {
		return nil
	}
	return e.Name[len(e.Name)-sha256.Size:]
}

// Weight is how many entries the limits count it as: one for each KiB begun
// of its packet, so that they bound memory too.
func (e *PitEntry) Weight() int { return weight(e.Wire) }

func weight(wire []byte) int { return 1 + len(wire)>>10 }

// PITConfig limits a PIT. Zero values are defaults. An Interest of several KiB
// counts as several entries.
type PITConfig struct {
	MaxEntries        int // in all; 262,144
	MaxEntriesPerFace int // in-records of one downstream face; 65,536
	MaxInRecords      int // downstreams of one entry; 1,024
	MaxOutRecords     int // upstreams of one entry; 64
	MaxVariants       int // entries of one Data name that differ in hint or digest; 64
}

// WithDefaults fills in the defaults.
func (c PITConfig) WithDefaults() PITConfig {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxEntries, 1<<18)
	def(&c.MaxEntriesPerFace, 1<<16)
	def(&c.MaxInRecords, 1024)
	def(&c.MaxOutRecords, 64)
	def(&c.MaxVariants, 64)
	return c
}

// ErrVariants says that too many pending Interests differ only in their
// forwarding hint or digest.
var ErrVariants = errors.New("table: too many variants of one name")

// PIT is the pending Interest table. Its entries, with the memory they
// gathered, are recycled.
type PIT struct {
	cfg   PITConfig
	shard uint8
	index index
	slab  slab[PitEntry]
	live  []pitRef // all entries
	load  int      // their weights
	seq   uint64
	read  uint64 // what Ahead read

	// Entries with CanBePrefix by name length: the lengths at which a Data
	// must look for its prefixes.
	prefixes [ndn.MaxComponents + 1]uint32
	mask     uint64
}

// pitRef is an entry in the list of all, with what tells most prefixes that it
// is not below from the others without looking at the entry.
type pitRef struct {
	slot   uint32
	sign   uint32 // one byte of the hash of each of its first four prefixes
	hinted bool
}

// signature packs a byte of the hashes of the prefixes of one to four
// components. mask covers those that there are.
func signature(hashes []uint64) (sign, mask uint32) {
	for k := 1; k <= 4 && k < len(hashes); k++ {
		sign |= uint32(hashes[k]>>56) << (8 * (k - 1))
		mask |= 0xff << (8 * (k - 1))
	}
	return sign, mask
}

// NewPIT returns an empty table. shard is put into the tokens it issues.
func NewPIT(cfg PITConfig, shard uint8) *PIT {
	return &PIT{cfg: cfg.WithDefaults(), shard: shard}
}

// Len is the number of entries.
func (p *PIT) Len() int { return p.index.live }

// Crowded reports whether more than half of the entries are in use.
func (p *PIT) Crowded() bool { return 2*p.load > p.cfg.MaxEntries }

// Free is how many more entries there may be.
func (p *PIT) Free() int { return p.cfg.MaxEntries - p.load }

// Config returns the limits in force.
func (p *PIT) Config() PITConfig { return p.cfg }

// MaxAhead is how many look-ups may be made ahead at once.
const MaxAhead = 32

// Ahead reads what searches for at most MaxAhead hashes will, the entries too if they
// are likely to be there, so that the processor waits for all of it at once.
func (p *PIT) Ahead(hashes []uint64, entries bool) {
	if !p.index.isFar() {
		return
	}
	x := p.index.ahead(hashes)
	if entries {
		var room [MaxAhead]uint32
		for _, slot := range p.index.first(room[:0], hashes) {
			e := p.slab.at(slot)
			x += e.Hash + uint64(len(e.Out)) + e.Arrived + uint64(e.Strategy) + uint64(e.in0[0].Face) +
				uint64(e.in0[0].Place) + uint64(e.out0[0].Face) + uint64(e.wire0[16])
		}
	}
	p.read = x
}

// DataHash picks the hash under which the PIT files an Interest from the
// hashes of its name's prefixes.
func DataHash(i *ndn.Interest, hashes []uint64) (h uint64, digest []byte) {
	if d, _, ok := i.ImplicitDigest(); ok {
		return hashes[len(hashes)-2], d
	}
	return hashes[len(hashes)-1], nil
}

// Find returns the entry of an Interest whose active hint is hint, or nil.
// h is its DataHash. variants counts the entries with the same Data name that
// were passed.
func (p *PIT) Find(h uint64, i *ndn.Interest, hint []byte) (e *PitEntry, variants int) {
	for slot, it, ok := p.index.find(h); ok; slot, it, ok = it.next() {
		e := p.slab.at(slot)
		if e.Hash != h {
			continue
		}
		if e.CanBePrefix == i.CanBePrefix && e.MustBeFresh == i.MustBeFresh &&
			e.Name.Equal(i.Name) && bytes.Equal(e.Hint, hint) {
			return e, variants
		}
		variants++
	}
	return nil, variants
}

// Insert makes an entry for an Interest that Find did not find. It copies the
// packet. variants is what Find returned, hashes those of the prefixes of its
// name.
func (p *PIT) Insert(h uint64, i *ndn.Interest, hint, digest []byte, hashes []uint64, variants int) (*PitEntry, error) {
	w := weight(i.Wire)
	switch {
	case p.load+w > p.cfg.MaxEntries:
		return nil, ErrFull
	case variants >= p.cfg.MaxVariants && (hint != nil || digest != nil):
		return nil, ErrVariants
	}
	slot := p.slab.get()
	e := p.slab.at(slot)
	if e.Wire == nil {
		e.In, e.Out, e.Wire = e.in0[:0], e.out0[:0], e.wire0[:0]
	}
	p.seq++
	e.Wire = append(e.Wire, i.Wire...)
	e.Name, e.Hint = i.Rebase(e.Wire)
	if hint == nil {
		e.Hint = nil
	}
	e.Hash, e.NameLen, e.HasDigest = h, uint8(i.NameLen), digest != nil
	e.CanBePrefix, e.MustBeFresh = i.CanBePrefix, i.MustBeFresh
	sign, _ := signature(hashes)
	p.live = append(p.live, pitRef{slot, sign, e.Hint != nil})
	p.load += w
	e.Arrived, e.slot, e.at = p.seq, slot, uint32(len(p.live))
	p.index.insert(h, slot)
	if e.CanBePrefix && !e.HasDigest {
		if p.prefixes[e.NameLen]++; p.prefixes[e.NameLen] == 1 {
			p.mask |= 1 << e.NameLen
		}
	}
	return e, nil
}

// Recycled entries keep at most this many bytes and records.
const (
	keepWire    = 1024
	keepRecords = 8
)

// Remove takes an entry out of the table. Its timers have been disarmed.
func (p *PIT) Remove(e *PitEntry) {
	p.index.remove(e.Hash, e.slot)
	if e.CanBePrefix && !e.HasDigest {
		if p.prefixes[e.NameLen]--; p.prefixes[e.NameLen] == 0 {
			p.mask &^= 1 << e.NameLen
		}
	}
	e.State.Clear()
	p.load -= e.Weight()
	last := len(p.live) - 1
	moved := p.live[last]
	p.live[e.at-1] = moved
	p.slab.at(moved.slot).at = e.at
	p.live = p.live[:last]
	e.at = 0
	e.gen++
	e.recycle()
	p.slab.put(e.slot)
}

// recycle empties an entry and keeps its memory for the next one.
func (e *PitEntry) recycle() {
	e.In, e.Out, e.Wire = e.In[:0], e.Out[:0], e.Wire[:0]
	if cap(e.In) > keepRecords {
		e.In = e.in0[:0]
	}
	if cap(e.Out) > keepRecords {
		e.Out = e.out0[:0]
	}
	if cap(e.Wire) > keepWire {
		e.Wire = e.wire0[:0]
	}
	e.Forwarding = Forwarding{Timers: e.Timers[:0]}
}

// Slot identifies an entry, for ByToken's sake and for timers, while it
// lives.
func (e *PitEntry) Slot() uint32 { return e.slot }

// At returns the live entry in a slot, or nil.
func (p *PIT) At(slot uint32) *PitEntry {
	if slot >= p.slab.n {
		return nil
	}
	if e := p.slab.at(slot); e.at != 0 {
		return e
	}
	return nil
}

// TokenLen is the length of the PIT tokens that a PIT issues. Peers echo any
// length from 1 to 32, but for ndnd (v1.5.3), whose forwarder stops at one that
// has not 6 bytes.
const TokenLen = 6

// Token is the PIT token of an entry: shard, slot, generation.
func (p *PIT) Token(e *PitEntry) [TokenLen]byte {
	s := e.slot
	return [TokenLen]byte{p.shard, byte(s >> 24), byte(s >> 16), byte(s >> 8), byte(s), byte(e.gen)}
}

// ByToken returns the entry that a token was issued for, nil when the token
// is not ours or is stale. The token is a peer's claim, and generations
// repeat: the caller still checks the name.
func (p *PIT) ByToken(t []byte) *PitEntry {
	if len(t) != TokenLen || t[0] != p.shard {
		return nil
	}
	s := uint32(t[1])<<24 | uint32(t[2])<<16 | uint32(t[3])<<8 | uint32(t[4])
	if e := p.At(s); e != nil && byte(e.gen) == t[5] {
		return e
	}
	return nil
}

// Match appends to dst every entry that a Data satisfies. hashes are those of
// the prefixes of the Data's name.
func (p *PIT) Match(dst []*PitEntry, hashes []uint64, d *ndn.Data) []*PitEntry {
	var sum [32]byte
	summed := false
	h := hashes[len(hashes)-1]
	for slot, it, ok := p.index.find(h); ok; slot, it, ok = it.next() {
		e := p.slab.at(slot)
		if e.Hash != h {
			continue
		}
		if !e.HasDigest {
			if e.Name.Equal(d.Name) {
				dst = append(dst, e)
			}
			continue
		}
		if !e.Name[:len(e.Name)-34].Equal(d.Name) {
			continue
		}
		if !summed {
			sum, summed = d.Digest(), true
		}
		if bytes.Equal(e.Digest(), sum[:]) {
			dst = append(dst, e)
		}
	}
	for m, l := p.mask&(1<<(len(hashes)-1)-1), 0; m != 0; m, l = m>>1, l+1 {
		if m&1 == 0 {
			continue
		}
		h := hashes[l]
		for slot, it, ok := p.index.find(h); ok; slot, it, ok = it.next() {
			e := p.slab.at(slot)
			if e.Hash == h && e.CanBePrefix && !e.HasDigest && int(e.NameLen) == l && d.Name.HasPrefix(e.Name) {
				dst = append(dst, e)
			}
		}
	}
	return dst
}

// Each calls fn for every entry, in no useful order. fn must neither insert
// nor remove.
func (p *PIT) Each(fn func(*PitEntry)) {
	for _, r := range p.live {
		fn(p.slab.at(r.slot))
	}
}

// EachBelow is Each for the entries whose name has a prefix, given by the
// hashes of its prefixes, or that have a forwarding hint, and for some others.
func (p *PIT) EachBelow(hashes []uint64, fn func(*PitEntry)) {
	sign, mask := signature(hashes)
	for _, r := range p.live {
		if r.hinted || r.sign&mask == sign {
			fn(p.slab.at(r.slot))
		}
	}
}

// FindIn returns the in-record of a face, or nil.
func (e *PitEntry) FindIn(f ndn.FaceID) *InRecord {
	for i := range e.In {
		if e.In[i].Face == f {
			return &e.In[i]
		}
	}
	return nil
}

// FindOut returns the out-record of a face, or nil.
func (e *PitEntry) FindOut(f ndn.FaceID) *OutRecord {
	for i := range e.Out {
		if e.Out[i].Face == f {
			return &e.Out[i]
		}
	}
	return nil
}

// PendingOut reports whether an answer may still come from an upstream.
func (e *PitEntry) PendingOut(now ndn.Time) bool {
	for i := range e.Out {
		if e.Out[i].Pending(now) {
			return true
		}
	}
	return false
}
