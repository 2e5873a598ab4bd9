package producer

import (
	"errors"

	"ndnpop/ndn"
)

// Errors of a Store and its Objects.
var (
	// ErrNotFound: there is no such path, version or listing, and an
	// application Nack is the right answer.
	ErrNotFound = errors.New("producer: no such content")
	// ErrChanged: the bytes of this version are no longer what they were. The
	// version is gone; a new one is to be discovered.
	ErrChanged = errors.New("producer: the content changed")
)

// Attributes describe an object, as ndn6-file-server's metadata does. Zero
// values are unknown.
type Attributes struct {
	// Listing: the object is the listing of a directory, named under 32=ls.
	Listing bool
	// Growing: the size was unknown when the object began. Its metadata has a
	// version of its own for every stage.
	Growing bool
	Mode    uint32 // st_mode, file type included
	// Times are in nanoseconds since the Unix epoch.
	Atime, Btime, Ctime, Mtime uint64
	SHA256                     *[32]byte // of the whole content
}

// Object is one version of a piece of content. Its bytes never change; what
// changes is another Object. An Object is used from one goroutine at a time.
type Object interface {
	Version() uint64
	// SegmentSize is the payload of every segment but the last, in bytes.
	SegmentSize() int
	// Size is how many bytes exist, and whether that is the end.
	Size() (n uint64, final bool)
	Attributes() Attributes
	// ReadAt fills b, whose bytes all lie below Size. It returns ErrChanged
	// when it cannot vouch that they belong to this version.
	ReadAt(b []byte, off uint64) error
}

// Path names one object of a Store: the generic components after the served
// prefix, and whether the listing of that directory is meant. Name is a view,
// valid during the call.
type Path struct {
	Name    ndn.Name
	Listing bool
}

// Store finds objects. Its errors: ErrNotFound, or one that says why the
// content cannot be read now, after which the Interest stays unanswered.
type Store interface {
	// Latest returns the newest version of what lies at p and looks whether it
	// changed. When p is a directory, its listing is returned.
	Latest(p Path) (Object, error)
	// At returns version v of what lies at p.
	At(p Path, v uint64) (Object, error)
}

// LinkRoom is kept free in every packet for the link headers it will travel
// with (PIT token, congestion mark, path tag, …), so that no link packet is
// larger than ndn.MaxPacketSize.
const LinkRoom = 128

// SegmentCount is the number of segments of size bytes: at least one, for
// empty content is one empty segment.
func SegmentCount(size uint64, segmentSize int) uint64 {
	if size == 0 {
		return 1
	}
	return (size-1)/uint64(segmentSize) + 1
}

// MaxSegmentSize is the largest payload of a segment of /<name>/v=…/seg=…, so
// that the packet with every field and a signature of s, and its link header,
// fit. It is negative when that or the metadata, which holds the name twice,
// has no room. Signing once is needed to know, and its error is returned.
func MaxSegmentSize(name ndn.Name, s ndn.Signer) (int, error) {
	sig, err := signatureSize(s)
	if err != nil {
		return 0, err
	}
	const (
		number    = 2 + 8                   // a version or segment component
		meta      = 2 + number + 2 + number // MetaInfo, FreshnessPeriod, FinalBlockId
		headers   = 4 + 4 + 4               // Data, Name, Content
		component = number + number + sigSlack
	)
	most := ndn.MaxPacketSize - LinkRoom - len(name) - headers - meta - component - sig
	if most < len(name)+metadataSize {
		return -1, nil
	}
	return most, nil
}

// metadataSize is more than the metadata takes beside the name and the start
// of the content.
const metadataSize = 200

// sigSlack is for signatures that vary in length (ECDSA: 70 to 72 bytes).
const sigSlack = 8

// signatureSize is the number of bytes of SignatureInfo and SignatureValue,
// taken from a signature of nothing.
func signatureSize(s ndn.Signer) (int, error) {
	info := s.AppendSigInfo(nil)
	sig, err := s.AppendSignature(nil, info)
	if err != nil {
		return 0, err
	}
	return len(info) + ndn.TLVSize(ndn.TypeSigValue, len(sig)), nil
}
