package producer

import (
	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
)

// Fields of the metadata after the Name and the FinalBlockId: those below
// 0xF510 are ndn6-file-server's (and ndnd's), the others this project's. All
// are even, so that whoever does not know them ignores them.
const (
	TypeSegmentSize  uint32 = 0xf500
	TypeSize         uint32 = 0xf502
	TypeMode         uint32 = 0xf504
	TypeAtime        uint32 = 0xf506
	TypeBtime        uint32 = 0xf508
	TypeCtime        uint32 = 0xf50a
	TypeMtime        uint32 = 0xf50c
	TypeContentStart uint32 = 0xf580
	TypeContentHash  uint32 = 0xf584
)

// Keywords of the naming conventions in use.
const (
	keywordMetadata = "metadata"
	keywordListing  = "ls"
)

// A growing object passes through stages, and its metadata has one version
// per stage (the object's version plus the stage), because Data of one name
// must not differ. Objects of known size have stage 0 alone.
const (
	stageFirst = 0 // neither the size nor enough for the start is known
	stageStart = 1 // the start of the content is known
	stageFinal = 2 // everything is known
)

// metadataOf is what the metadata says of one object at one stage.
type metadataOf struct {
	obj   Object
	attr  Attributes
	size  uint64
	final bool
}

func describe(obj Object) metadataOf {
	m := metadataOf{obj: obj}
	m.size, m.final = obj.Size()
	if m.attr = obj.Attributes(); !m.final {
		m.attr.SHA256 = nil // the end may have come between the two
	}
	return m
}

// stage of the object with room for the start of its content.
func (m *metadataOf) stage(room int) uint64 {
	switch {
	case !m.attr.Growing:
		return 0
	case m.final:
		return stageFinal
	case m.size > uint64(room):
		return stageStart
	}
	return stageFirst
}

// at makes m what it was at an earlier stage of a growing object.
func (m *metadataOf) at(stage uint64) {
	if m.attr.Growing && stage < stageFinal {
		m.final = false
		m.attr.SHA256 = nil
	}
}

// appendFixed appends all fields but the start of the content. versioned is
// the name of the object with its version.
func (m *metadataOf) appendFixed(b []byte, versioned ndn.Name) []byte {
	b = versioned.AppendTLVTo(b)
	ss := m.obj.SegmentSize()
	if m.final {
		last := SegmentCount(m.size, ss) - 1
		b = ndn.AppendTL(b, ndn.TypeFinalBlock, 2+ndn.NatSize(last))
		b = ndn.AppendNatTLV(b, ndn.TypeSegment, last)
	}
	b = ndn.AppendNatTLV(b, TypeSegmentSize, uint64(ss))
	if m.final {
		b = ndn.AppendNatTLV(b, TypeSize, m.size)
	}
	if m.attr.Mode != 0 {
		b = ndn.AppendNatTLV(b, TypeMode, uint64(m.attr.Mode))
	}
	for _, t := range [...]struct {
		typ uint32
		ns  uint64
	}{
		{TypeAtime, m.attr.Atime}, {TypeBtime, m.attr.Btime},
		{TypeCtime, m.attr.Ctime}, {TypeMtime, m.attr.Mtime},
	} {
		if t.ns != 0 {
			b = ndn.AppendNatTLV(b, t.typ, t.ns)
		}
	}
	return b
}

// appendManifestName appends the name of the roots of an object's manifest.
func appendManifestName(b []byte, versioned ndn.Name) []byte {
	n := len(versioned) + ndn.TLVSize(ndn.TypeKeyword, len(manifest.KeywordRoot))
	b = ndn.AppendTL(b, manifest.TypeName, ndn.TLVSize(ndn.TypeName, n))
	b = ndn.AppendTL(b, ndn.TypeName, n)
	return manifest.RootName(b, versioned)
}

// start is how many bytes of the content go along when room bytes are left:
// all, else whole segments, so that a consumer need not fetch a part of one
// twice, else what fits.
func (m *metadataOf) start(stage uint64, room int) int {
	ss := m.obj.SegmentSize()
	switch {
	case room <= 0 || (m.attr.Growing && stage == stageFirst):
		return 0
	case m.final && m.size <= uint64(room):
		return int(m.size)
	case room >= ss:
		return room / ss * ss
	}
	return room
}

// hashSize is the size of the field of the content's SHA-256.
const hashSize = 3 + 1 + 32

func (m *metadataOf) appendHash(b []byte, sum *[32]byte) []byte {
	return ndn.AppendTLV(b, TypeContentHash, sum[:])
}
