package mgmt

import (
	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
)

// ControlParameters are the arguments of a command and the body of its answer
// (NFD wiki, "Control Command"). A field that is not set, an empty string and
// a nil Strategy are absent; the empty Name "/" is not the same as none.
// Names are views of what they were parsed from.
type ControlParameters struct {
	Name     optional.Optional[ndn.Name]
	FaceID   optional.Optional[uint64]
	URI      string
	LocalURI string
	Origin   optional.Optional[uint64]
	Cost     optional.Optional[uint64]
	Capacity optional.Optional[uint64] // packets
	Count    optional.Optional[uint64]
	Flags    optional.Optional[uint64]
	Mask     optional.Optional[uint64] // the bits of Flags that count
	Strategy ndn.Name
	// Expiration is in milliseconds.
	Expiration  optional.Optional[uint64]
	Persistency optional.Optional[uint64]
	// MarkInterval is BaseCongestionMarkingInterval, in nanoseconds.
	MarkInterval optional.Optional[uint64]
	// MarkThreshold is DefaultCongestionThreshold, in bytes.
	MarkThreshold optional.Optional[uint64]
	MTU           optional.Optional[uint64] // bytes
}

func (p *ControlParameters) fields() []field {
	return []field{
		{typ: ndn.TypeName, optName: &p.Name},
		{typ: typeFaceID, opt: &p.FaceID},
		{typ: typeURI, text: &p.URI},
		{typ: typeLocalURI, text: &p.LocalURI},
		{typ: typeOrigin, opt: &p.Origin},
		{typ: typeCost, opt: &p.Cost},
		{typ: typeCapacity, opt: &p.Capacity},
		{typ: typeCount, opt: &p.Count},
		{typ: typeFlags, opt: &p.Flags},
		{typ: typeMask, opt: &p.Mask},
		{typ: typeStrategy, nested: &p.Strategy},
		{typ: typeExpiration, opt: &p.Expiration},
		{typ: typePersistency, opt: &p.Persistency},
		{typ: typeMarkInterval, opt: &p.MarkInterval},
		{typ: typeMarkThreshold, opt: &p.MarkThreshold},
		{typ: typeMTU, opt: &p.MTU},
	}
}

// AppendTo appends the whole ControlParameters element.
func (p *ControlParameters) AppendTo(b []byte) []byte {
	return appendElement(b, typeControlParameters, p.fields())
}

// ParseControlParameters decodes the ControlParameters element of a command:
// a malformed, repeated or unknown critical field is an error.
func ParseControlParameters(wire []byte) (ControlParameters, error) {
	return parseParams(wire, strict)
}

func parseParams(wire []byte, m mode) (ControlParameters, error) {
	var p ControlParameters
	v, err := unwrap(wire, typeControlParameters)
	if err != nil {
		return p, err
	}
	if err := parseFields(v, p.fields(), m, nil); err != nil {
		return ControlParameters{}, err
	}
	return p, nil
}

// Flags of a face (NFD wiki, "Face Management").
const (
	FaceLocalFields uint64 = 1 << 0 // link header fields of the local scope
	FaceReliability uint64 = 1 << 1 // NDNLPv2 reliability
	FaceMarking     uint64 = 1 << 2 // congestion marking
)

// Flags of a route (NFD wiki, "RIB Management").
const (
	RouteChildInherit uint64 = 1 << 0 // also for longer prefixes
	RouteCapture      uint64 = 1 << 1 // longer prefixes inherit nothing from shorter
)

// Origins of routes (NFD wiki, "RIB Management").
const (
	OriginApp       uint64 = 0
	OriginAutoreg   uint64 = 64
	OriginClient    uint64 = 65
	OriginAutoconf  uint64 = 66
	OriginNLSR      uint64 = 128
	OriginPrefixAnn uint64 = 129
	OriginStatic    uint64 = 255
)

// Flags of the content store (NFD wiki, "CS Management").
const (
	CsAdmit uint64 = 1 << 0
	CsServe uint64 = 1 << 1
)
