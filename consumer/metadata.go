package consumer

import (
	"fmt"

	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
)

// Element types in the content of an RDR metadata packet. Those from 0xF500
// are the ndn6 file server's, those from 0xF580 this project's; unknown
// non-critical ones are ignored.
const (
	typeMetaSegmentSize = 0xf500
	typeMetaSize        = 0xf502
	typeMetaInline      = 0xf580
	typeMetaSha256      = 0xf584
)

// maxObjectSize bounds the sizes that metadata may state, so that sums cannot
// overflow.
const maxObjectSize = 1 << 62

// Metadata is the content of a metadata packet (RDR, "Realtime Data
// Retrieval", as ndn-cxx's MetadataObject, with the fields of the ndn6 file
// server). Its slices are views of the packet.
type Metadata struct {
	Object
	// Inline is the start of the content, nil if there is none.
	Inline []byte
}

// ParseMetadata reads the content of a metadata packet. The name must end with
// a version. Sizes that contradict one another or the final block are
// refused.
func ParseMetadata(content []byte) (Metadata, error) {
	var m Metadata
	bad := func(format string, args ...any) (Metadata, error) {
		return Metadata{}, fmt.Errorf("%w: %s", ErrMetadata, fmt.Sprintf(format, args...))
	}
	for first := true; len(content) > 0; first = false {
		e, rest, err := ndn.NextElement(content)
		if err != nil {
			return bad("%v", err)
		}
		content = rest
		if first != (e.Type == ndn.TypeName) {
			return bad("it does not begin with one name")
		}
		switch e.Type {
		case ndn.TypeName:
			if m.Name, _, err = ndn.ParseNameValue(e.Value); err != nil {
				return bad("%v", err)
			}
			last, ok := m.Name.At(-1)
			if ok {
				m.Version, m.HasVersion = last.NumberAs(ndn.TypeVersion)
			}
			if !m.HasVersion {
				return bad("the name does not end with a version")
			}
		case ndn.TypeFinalBlock:
			c, n, err := ndn.ParseNameValue(e.Value)
			if err != nil || n != 1 {
				return bad("final block is not one component")
			}
			comp, _ := c.Next()
			m.Final, m.HasFinal = comp.NumberAs(ndn.TypeSegment)
		case typeMetaSegmentSize:
			if m.SegmentSize, err = ndn.ParseNat(e.Value); err != nil || m.SegmentSize == 0 ||
				m.SegmentSize > ndn.MaxPacketSize {
				return bad("segment size")
			}
		case typeMetaSize:
			if m.Size, err = ndn.ParseNat(e.Value); err != nil || m.Size > maxObjectSize {
				return bad("size")
			}
			m.HasSize = true
		case typeMetaInline:
			m.Inline = e.Value
		case manifest.TypeName:
			if m.Manifest, err = ndn.ParseNameTLV(e.Value); err != nil {
				return bad("name of the manifest: %v", err)
			}
		case typeMetaSha256:
			if len(e.Value) != 32 {
				return bad("SHA-256 of %d bytes", len(e.Value))
			}
			m.Sha256 = e.Value
		default:
			if ndn.Critical(e.Type) {
				return bad("unknown critical element %#x", e.Type)
			}
		}
	}
	if m.Name == nil {
		return bad("no name")
	}
	if !m.Manifest.HasPrefix(m.Name) || len(m.Manifest) == len(m.Name) {
		m.Manifest = nil // none that speaks of this object alone
	}
	if m.HasSize && m.SegmentSize > 0 {
		final := lastSegment(m.Size, m.SegmentSize)
		if m.HasFinal && final != m.Final {
			return bad("%d bytes in segments of %d do not end with segment %d", m.Size, m.SegmentSize, m.Final)
		}
		m.Final, m.HasFinal = final, true
	}
	if m.HasSize && uint64(len(m.Inline)) > m.Size {
		return bad("more inline content than the object has")
	}
	return m, nil
}

// lastSegment is the number of the last segment of an object; an empty one
// has one empty segment.
func lastSegment(size, segmentSize uint64) uint64 {
	if size == 0 {
		return 0
	}
	return (size - 1) / segmentSize
}
