// Package manifest is the format of signed manifests, by which one signature
// vouches for thousands of segments.
//
// The manifest of an object /<name>/v=<version> has two kinds of packets:
//
//	/<name>/v=<version>/32=manifest/seg=<r>   roots, signed with the key
//	/<name>/v=<version>/32=digests/seg=<l>    leaves
//
// A leaf's content is the SHA-256 of the contents of consecutive segments, one
// after the other. A root's content is the SHA-256 of the contents of
// consecutive leaves, with what is needed to tell which. So the signature of a
// root covers the content of PerLeaf × PerRoot segments, their order, and the
// end of the object. How the segments themselves are signed does not matter.
//
// The format is this project's own (docs/trust.md).
package manifest

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"ndnpop/ndn"
	"ndnpop/ndn/internal/pairsum"
)

// Element types: TypeName holds the name of the roots, without the segment, in
// the metadata; the others are the content of a root, in this order.
const (
	TypeName    uint32 = 0xf582
	TypeLast    uint32 = 0xf5a0 // the object's last segment
	TypePerLeaf uint32 = 0xf5a2 // segments of a leaf, of the last one at most
	TypePerRoot uint32 = 0xf5a4 // leaves of a root, of the last one at most
	TypeDigests uint32 = 0xf5a6 // SHA-256 of the contents of the leaves
)

// Keywords in the names of roots and leaves.
const (
	KeywordRoot = "manifest"
	KeywordLeaf = "digests"
)

// DigestSize is the size of a digest in bytes.
const DigestSize = sha256.Size

// MaxPerPacket bounds PerLeaf and PerRoot: more digests fit into no packet.
const MaxPerPacket = ndn.MaxPacketSize / DigestSize

// ErrRoot: the content of a root is malformed.
var ErrRoot = errors.New("malformed manifest")

// Layout says which packets hold which digests. It is the same in all roots of
// an object.
type Layout struct {
	Last    uint64 // the object's last segment
	PerLeaf uint64 // segments of a leaf, 1 to MaxPerPacket
	PerRoot uint64 // leaves of a root, 1 to MaxPerPacket
}

// LastLeaf is the number of the last leaf.
func (l Layout) LastLeaf() uint64 { return l.Last / l.PerLeaf }

// LastRoot is the number of the last root.
func (l Layout) LastRoot() uint64 { return l.LastLeaf() / l.PerRoot }

// Segments is which segments a leaf holds, n of them from first; 0 beyond the
// last leaf.
func (l Layout) Segments(leaf uint64) (first uint64, n int) {
	if leaf > l.LastLeaf() {
		return 0, 0
	}
	first = leaf * l.PerLeaf
	return first, int(min(l.PerLeaf-1, l.Last-first)) + 1
}

// Leaves is which leaves a root holds, n of them from first; 0 beyond the last
// root.
func (l Layout) Leaves(root uint64) (first uint64, n int) {
	if root > l.LastRoot() {
		return 0, 0
	}
	first = root * l.PerRoot
	return first, int(min(l.PerRoot-1, l.LastLeaf()-first)) + 1
}

// AppendRoot appends the content of a root whose leaves have these digests,
// one after the other.
func (l Layout) AppendRoot(b, digests []byte) []byte {
	b = ndn.AppendNatTLV(b, TypeLast, l.Last)
	b = ndn.AppendNatTLV(b, TypePerLeaf, l.PerLeaf)
	b = ndn.AppendNatTLV(b, TypePerRoot, l.PerRoot)
	return ndn.AppendTLV(b, TypeDigests, digests)
}

// ParseRoot reads the content of the root with a number. digests is a view of
// it: the digests of the root's leaves. Elements that are not known and not
// critical are ignored.
func ParseRoot(content []byte, root uint64) (l Layout, digests []byte, err error) {
	bad := func(what string) (Layout, []byte, error) {
		return Layout{}, nil, fmt.Errorf("%w: %s", ErrRoot, what)
	}
	seen := 0
	for len(content) > 0 {
		e, rest, err := ndn.NextElement(content)
		if err != nil {
			return bad(err.Error())
		}
		content = rest
		var n uint64
		switch e.Type {
		case TypeLast, TypePerLeaf, TypePerRoot:
			if n, err = ndn.ParseNat(e.Value); err != nil {
				return bad(err.Error())
			}
		case TypeDigests:
		default:
			if ndn.Critical(e.Type) {
				return bad(fmt.Sprintf("unknown critical element %#x", e.Type))
			}
			continue
		}
		if seen >= 4 || e.Type != [...]uint32{TypeLast, TypePerLeaf, TypePerRoot, TypeDigests}[seen] {
			return bad("its elements are not those that a manifest has")
		}
		seen++
		switch e.Type {
		case TypeLast:
			l.Last = n
		case TypePerLeaf:
			l.PerLeaf = n
		case TypePerRoot:
			l.PerRoot = n
		default:
			digests = e.Value
		}
	}
	if seen < 4 {
		return bad("elements are missing")
	}
	if l.PerLeaf == 0 || l.PerLeaf > MaxPerPacket || l.PerRoot == 0 || l.PerRoot > MaxPerPacket {
		return bad("more or fewer digests than a packet can hold")
	}
	if _, n := l.Leaves(root); n == 0 || len(digests) != n*DigestSize {
		return bad("the digests are not those of its leaves")
	}
	return l, digests, nil
}

// Digests are the digests of the contents of two segments, which take little
// longer than that of one where the processor can do both at once.
func Digests(a, b []byte) (x, y [DigestSize]byte) { return pairsum.Sum256(a, b) }

// RootName appends the name of an object's roots, without the segment, to b.
func RootName(b, object ndn.Name) ndn.Name { return appendKeyword(b, object, KeywordRoot) }

// LeafName appends the name of an object's leaves, without the segment, to b.
func LeafName(b, object ndn.Name) ndn.Name { return appendKeyword(b, object, KeywordLeaf) }

func appendKeyword(b, object ndn.Name, keyword string) ndn.Name {
	b = append(b, object...)
	return append(ndn.AppendTL(b, ndn.TypeKeyword, len(keyword)), keyword...)
}
