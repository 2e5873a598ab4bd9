package mgmt

import (
	"fmt"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
)

// FaceStatus is an item of faces/list and faces/query (NFD wiki, "Face
// Management", "Face Dataset").
type FaceStatus struct {
	FaceID      uint64
	URI         string // of the remote end
	LocalURI    string
	Expiration  optional.Optional[uint64] // milliseconds left of an idle face
	Scope       uint64
	Persistency uint64
	LinkType    uint64
	// MarkInterval is in nanoseconds, MarkThreshold in bytes.
	MarkInterval  optional.Optional[uint64]
	MarkThreshold optional.Optional[uint64]
	MTU           optional.Optional[uint64] // bytes

	InInterests, InData, InNacks    uint64
	OutInterests, OutData, OutNacks uint64
	InBytes, OutBytes               uint64
	Flags                           uint64

	// What follows is this project's, in fields that others ignore, and set
	// while the face is down: for how many milliseconds, and why.
	DownFor optional.Optional[uint64]
	DownWhy string
}

// Fields of this project: even, hence ignorable.
const (
	typeDownFor uint32 = 0xf5e0
	typeDownWhy uint32 = 0xf5e2
)

func (s *FaceStatus) fields() []field {
	return []field{
		{typ: typeFaceID, req: &s.FaceID},
		{typ: typeURI, reqText: &s.URI},
		{typ: typeLocalURI, reqText: &s.LocalURI},
		{typ: typeExpiration, opt: &s.Expiration},
		{typ: typeScope, req: &s.Scope},
		{typ: typePersistency, req: &s.Persistency},
		{typ: typeLinkType, req: &s.LinkType},
		{typ: typeMarkInterval, opt: &s.MarkInterval},
		{typ: typeMarkThreshold, opt: &s.MarkThreshold},
		{typ: typeMTU, opt: &s.MTU},
		{typ: 0x90, req: &s.InInterests},
		{typ: 0x91, req: &s.InData},
		{typ: 0x97, req: &s.InNacks},
		{typ: 0x92, req: &s.OutInterests},
		{typ: 0x93, req: &s.OutData},
		{typ: 0x98, req: &s.OutNacks},
		{typ: 0x94, req: &s.InBytes},
		{typ: 0x95, req: &s.OutBytes},
		{typ: typeFlags, req: &s.Flags},
		{typ: typeDownFor, opt: &s.DownFor},
		{typ: typeDownWhy, text: &s.DownWhy},
	}
}

// AppendTo appends the item.
func (s *FaceStatus) AppendTo(b []byte) []byte { return appendElement(b, typeItem, s.fields()) }

// ParseFaceStatuses decodes the content of faces/list and faces/query.
func ParseFaceStatuses(content []byte) ([]FaceStatus, error) {
	return parseItems(content, typeItem, func(v []byte, s *FaceStatus) error {
		return parseFields(v, s.fields(), tolerant, nil)
	})
}

// ChannelStatus is an item of faces/channels: a listener's URI.
type ChannelStatus struct{ LocalURI string }

func (s *ChannelStatus) fields() []field {
	return []field{{typ: typeLocalURI, reqText: &s.LocalURI}}
}

// AppendTo appends the item.
func (s *ChannelStatus) AppendTo(b []byte) []byte { return appendElement(b, typeChannel, s.fields()) }

// ParseChannelStatuses decodes the content of faces/channels.
func ParseChannelStatuses(content []byte) ([]ChannelStatus, error) {
	return parseItems(content, typeChannel, func(v []byte, s *ChannelStatus) error {
		return parseFields(v, s.fields(), tolerant, nil)
	})
}

// FaceQueryFilter is the last component of a faces/query name (NFD wiki, "Face
// Management", "Query Operation"). A face matches when it has every value
// that is set.
type FaceQueryFilter struct {
	FaceID      optional.Optional[uint64]
	URIScheme   string // of the local or the remote URI, without "://"
	URI         string
	LocalURI    string
	Scope       optional.Optional[uint64]
	Persistency optional.Optional[uint64]
	LinkType    optional.Optional[uint64]
}

func (q *FaceQueryFilter) fields() []field {
	return []field{
		{typ: typeFaceID, opt: &q.FaceID},
		{typ: typeURIScheme, text: &q.URIScheme},
		{typ: typeURI, text: &q.URI},
		{typ: typeLocalURI, text: &q.LocalURI},
		{typ: typeScope, opt: &q.Scope},
		{typ: typePersistency, opt: &q.Persistency},
		{typ: typeLinkType, opt: &q.LinkType},
	}
}

// AppendTo appends the whole FaceQueryFilter element.
func (q *FaceQueryFilter) AppendTo(b []byte) []byte {
	return appendElement(b, typeFaceQueryFilter, q.fields())
}

// ParseFaceQueryFilter decodes a FaceQueryFilter element strictly: a filter
// that is not understood must not select more than was asked for.
func ParseFaceQueryFilter(wire []byte) (FaceQueryFilter, error) {
	var q FaceQueryFilter
	v, err := unwrap(wire, typeFaceQueryFilter)
	if err != nil {
		return q, err
	}
	if err := parseFields(v, q.fields(), strict, nil); err != nil {
		return FaceQueryFilter{}, err
	}
	return q, nil
}

// Kinds of face events (NFD wiki, "Face Management", "Face Status Change
// Notification").
const (
	FaceEventCreated   uint64 = 1
	FaceEventDestroyed uint64 = 2
	FaceEventUp        uint64 = 3
	FaceEventDown      uint64 = 4
)

// FaceEvent is the content of one Data of faces/events.
type FaceEvent struct {
	Kind        uint64
	FaceID      uint64
	URI         string
	LocalURI    string
	Scope       uint64
	Persistency uint64
	LinkType    uint64
	Flags       uint64
}

func (e *FaceEvent) fields() []field {
	return []field{
		{typ: typeFaceEventKind, req: &e.Kind},
		{typ: typeFaceID, req: &e.FaceID},
		{typ: typeURI, reqText: &e.URI},
		{typ: typeLocalURI, reqText: &e.LocalURI},
		{typ: typeScope, req: &e.Scope},
		{typ: typePersistency, req: &e.Persistency},
		{typ: typeLinkType, req: &e.LinkType},
		{typ: typeFlags, req: &e.Flags},
	}
}

// AppendTo appends the whole FaceEventNotification element.
func (e *FaceEvent) AppendTo(b []byte) []byte { return appendElement(b, typeFaceEvent, e.fields()) }

// ParseFaceEvent decodes the content of a Data of faces/events.
func ParseFaceEvent(content []byte) (FaceEvent, error) {
	var e FaceEvent
	v, err := unwrap(content, typeFaceEvent)
	if err != nil {
		return e, err
	}
	err = parseFields(v, e.fields(), tolerant, nil)
	return e, err
}

// NextHop is a next hop of a FibEntry.
type NextHop struct{ FaceID, Cost uint64 }

func (h *NextHop) fields() []field {
	return []field{{typ: typeFaceID, req: &h.FaceID}, {typ: typeCost, req: &h.Cost}}
}

// FibEntry is an item of fib/list (NFD wiki, "FIB Management").
type FibEntry struct {
	Name     ndn.Name
	NextHops []NextHop
}

// AppendTo appends the item.
func (e *FibEntry) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = e.Name.AppendTLVTo(b)
	for i := range e.NextHops {
		b = appendElement(b, typeNested, e.NextHops[i].fields())
	}
	return closeElement(b, start, typeItem)
}

// ParseFibEntries decodes the content of fib/list.
func ParseFibEntries(content []byte) ([]FibEntry, error) {
	return parseItems(content, typeItem, func(v []byte, e *FibEntry) error {
		return parseFields(v, []field{{typ: ndn.TypeName, name: &e.Name}}, tolerant, func(el ndn.Element) (bool, error) {
			if el.Type != typeNested {
				return false, nil
			}
			var h NextHop
			err := parseFields(el.Value, h.fields(), tolerant, nil)
			e.NextHops = append(e.NextHops, h)
			return true, err
		})
	})
}

// Route is a route of a RibEntry.
type Route struct {
	FaceID, Origin, Cost, Flags uint64
	Expiration                  optional.Optional[uint64] // milliseconds left
}

func (r *Route) fields() []field {
	return []field{
		{typ: typeFaceID, req: &r.FaceID},
		{typ: typeOrigin, req: &r.Origin},
		{typ: typeCost, req: &r.Cost},
		{typ: typeFlags, req: &r.Flags},
		{typ: typeExpiration, opt: &r.Expiration},
	}
}

// RibEntry is an item of rib/list (NFD wiki, "RIB Management").
type RibEntry struct {
	Name   ndn.Name
	Routes []Route
}

// AppendTo appends the item.
func (e *RibEntry) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = e.Name.AppendTLVTo(b)
	for i := range e.Routes {
		b = appendElement(b, typeNested, e.Routes[i].fields())
	}
	return closeElement(b, start, typeItem)
}

// ParseRibEntries decodes the content of rib/list.
func ParseRibEntries(content []byte) ([]RibEntry, error) {
	return parseItems(content, typeItem, func(v []byte, e *RibEntry) error {
		return parseFields(v, []field{{typ: ndn.TypeName, name: &e.Name}}, tolerant, func(el ndn.Element) (bool, error) {
			if el.Type != typeNested {
				return false, nil
			}
			var r Route
			err := parseFields(el.Value, r.fields(), tolerant, nil)
			e.Routes = append(e.Routes, r)
			return true, err
		})
	})
}

// StrategyChoice is an item of strategy-choice/list.
type StrategyChoice struct{ Name, Strategy ndn.Name }

func (s *StrategyChoice) fields() []field {
	return []field{{typ: ndn.TypeName, name: &s.Name}, {typ: typeStrategy, nested: &s.Strategy}}
}

// AppendTo appends the item.
func (s *StrategyChoice) AppendTo(b []byte) []byte { return appendElement(b, typeItem, s.fields()) }

// ParseStrategyChoices decodes the content of strategy-choice/list.
func ParseStrategyChoices(content []byte) ([]StrategyChoice, error) {
	return parseItems(content, typeItem, func(v []byte, s *StrategyChoice) error {
		if err := parseFields(v, s.fields(), tolerant, nil); err != nil {
			return err
		}
		if s.Strategy == nil {
			return fmt.Errorf("%w: choice without a strategy", ErrMalformed)
		}
		return nil
	})
}

// CsInfo is the content of cs/info. CapacityBytes and UsedBytes are this
// project's, in fields that others ignore; they are absent from others'
// answers.
type CsInfo struct {
	Capacity      uint64 // packets
	Flags         uint64 // CsAdmit, CsServe
	Entries       uint64
	Hits, Misses  uint64
	CapacityBytes optional.Optional[uint64]
	UsedBytes     optional.Optional[uint64] // memory, with all overhead
	DataBytes     optional.Optional[uint64] // of the packets held
}

// Fields of this project: even, hence ignorable.
const (
	typeCapacityBytes uint32 = 0xf590
	typeUsedBytes     uint32 = 0xf592
	typeDataBytes     uint32 = 0xf594
)

func (c *CsInfo) fields() []field {
	return []field{
		{typ: typeCapacity, req: &c.Capacity},
		{typ: typeFlags, req: &c.Flags},
		{typ: 0x87, req: &c.Entries},
		{typ: 0x81, req: &c.Hits},
		{typ: 0x82, req: &c.Misses},
		{typ: typeCapacityBytes, opt: &c.CapacityBytes},
		{typ: typeUsedBytes, opt: &c.UsedBytes},
		{typ: typeDataBytes, opt: &c.DataBytes},
	}
}

// AppendTo appends the whole element.
func (c *CsInfo) AppendTo(b []byte) []byte { return appendElement(b, typeItem, c.fields()) }

// ParseCsInfo decodes the content of cs/info.
func ParseCsInfo(content []byte) (CsInfo, error) {
	var c CsInfo
	v, err := unwrap(content, typeItem)
	if err != nil {
		return c, err
	}
	err = parseFields(v, c.fields(), tolerant, nil)
	return c, err
}

// ForwarderStatus is the content of status/general. Its fields stand in no
// outer element.
type ForwarderStatus struct {
	Version                                  string
	Started, Now                             uint64 // milliseconds since the Unix epoch
	NameTree, Fib, Pit, Measurements, Cs     uint64 // entries
	InInterests, InData, InNacks             uint64
	OutInterests, OutData, OutNacks          uint64
	SatisfiedInterests, UnsatisfiedInterests uint64

	// Shards is this project's, in fields that others ignore; it is empty in
	// others' answers.
	Shards []ShardStatus
}

// ShardStatus is how one shard of the forwarding tables works: its number is
// its place in the list.
type ShardStatus struct {
	Busy     uint64 // microseconds that it worked since it started
	Load     uint64 // share of one processor of late, in 1/10000
	Pit      uint64 // entries
	CsHits   uint64
	CsMisses uint64
	Packets  uint64 // received
	Batches  uint64 // in which it received them
}

// Fields of this project: even, hence ignorable.
const (
	typeShard        uint32 = 0xf5d0
	typeShardBusy    uint32 = 0xf5d2
	typeShardLoad    uint32 = 0xf5d4
	typeShardPit     uint32 = 0xf5d6
	typeShardHits    uint32 = 0xf5d8
	typeShardMisses  uint32 = 0xf5da
	typeShardPackets uint32 = 0xf5dc
	typeShardBatches uint32 = 0xf5de
)

func (s *ShardStatus) fields() []field {
	return []field{
		{typ: typeShardBusy, req: &s.Busy},
		{typ: typeShardLoad, req: &s.Load},
		{typ: typeShardPit, req: &s.Pit},
		{typ: typeShardHits, req: &s.CsHits},
		{typ: typeShardMisses, req: &s.CsMisses},
		{typ: typeShardPackets, req: &s.Packets},
		{typ: typeShardBatches, req: &s.Batches},
	}
}

func (s *ForwarderStatus) fields() []field {
	return []field{
		{typ: 0x80, reqText: &s.Version},
		{typ: 0x81, req: &s.Started},
		{typ: 0x82, req: &s.Now},
		{typ: 0x83, req: &s.NameTree},
		{typ: 0x84, req: &s.Fib},
		{typ: 0x85, req: &s.Pit},
		{typ: 0x86, req: &s.Measurements},
		{typ: 0x87, req: &s.Cs},
		{typ: 0x90, req: &s.InInterests},
		{typ: 0x91, req: &s.InData},
		{typ: 0x97, req: &s.InNacks},
		{typ: 0x92, req: &s.OutInterests},
		{typ: 0x93, req: &s.OutData},
		{typ: 0x98, req: &s.OutNacks},
		{typ: 0x99, req: &s.SatisfiedInterests},
		{typ: 0x9a, req: &s.UnsatisfiedInterests},
	}
}

// AppendTo appends the fields.
func (s *ForwarderStatus) AppendTo(b []byte) []byte {
	b = appendFields(b, s.fields())
	for i := range s.Shards {
		b = appendElement(b, typeShard, s.Shards[i].fields())
	}
	return b
}

// ParseForwarderStatus decodes the content of status/general.
func ParseForwarderStatus(content []byte) (ForwarderStatus, error) {
	var s ForwarderStatus
	err := parseFields(content, s.fields(), tolerant, func(e ndn.Element) (bool, error) {
		if e.Type != typeShard {
			return false, nil
		}
		var sh ShardStatus
		err := parseFields(e.Value, sh.fields(), tolerant, nil)
		s.Shards = append(s.Shards, sh)
		return true, err
	})
	return s, err
}

// parseItems decodes a sequence of items of type typ; other elements are
// skipped. Its memory is bounded by the content, not by a number in it.
func parseItems[T any](content []byte, typ uint32, parse func(v []byte, item *T) error) ([]T, error) {
	var items []T
	for len(content) > 0 {
		e, rest, err := ndn.NextElement(content)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		content = rest
		if e.Type != typ {
			continue
		}
		var item T
		if err := parse(e.Value, &item); err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
