package ndn

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"time"

	"ndnpop/ndn/internal/pairsum"
)

// Content types (NDN packet specification, ContentType).
const (
	ContentBlob uint64 = 0
	ContentLink uint64 = 1
	ContentKey  uint64 = 2
	// ContentNack is an application's answer that the content does not exist.
	ContentNack uint64 = 3
	// ContentPrefixAnnouncement is a prefix announcement, as NDNLPv2
	// carries it).
	ContentPrefixAnnouncement uint64 = 5
)

// Signature types (NDN packet specification, "Signature").
const (
	SigDigestSha256 uint64 = 0
	SigRsa          uint64 = 1
	SigEcdsa        uint64 = 3
	SigHmac         uint64 = 4
	SigEd25519      uint64 = 5
	SigNull         uint64 = 200
)

// Data is a view of a Data packet.
type Data struct {
	Wire    []byte // the whole element
	Name    Name
	NameLen int // components in Name

	ContentType uint64
	// Freshness is zero when absent, which the specification treats alike.
	Freshness  time.Duration
	MetaInfo   []byte // value, for fields that applications define
	FinalBlock []byte // the component element inside FinalBlockId, nil when absent
	Content    []byte // value

	SigType    uint64
	SigInfo    []byte // value of SignatureInfo
	KeyLocator []byte // value, nil when absent
	SigValue   []byte

	signedAt, signedEnd int
}

func dataOrder(t uint32) int {
	switch t {
	case TypeName:
		return 1
	case TypeMetaInfo:
		return 2
	case TypeContent:
		return 3
	case TypeSigInfo:
		return 4
	case TypeSigValue:
		return 5
	}
	return 0
}

// Parse makes d a view of wire, which must hold exactly one Data.
func (d *Data) Parse(wire []byte) error {
	*d = Data{}
	t, l, h, err := ReadTL(wire)
	switch {
	case err != nil:
		return err
	case t != TypeData:
		return ErrType
	case h+l != len(wire):
		return ErrTrailing
	}
	d.Wire, d.signedAt = wire, h
	last := 0
	for at := h; at < len(wire); {
		t, l, h, err := ReadTL(wire[at:])
		if err != nil {
			return err
		}
		start, end := at, at+h+l
		v := wire[at+h : end : end]
		at = end
		if last == 0 && t != TypeName {
			return ErrNoName
		}
		o := dataOrder(t)
		if o <= last {
			if Critical(t) {
				return ErrCritical
			}
			continue
		}
		last = o
		switch t {
		case TypeName:
			d.Name, d.NameLen, err = ParseNameValue(v)
		case TypeMetaInfo:
			d.MetaInfo = v
			err = d.parseMetaInfo(v)
		case TypeContent:
			d.Content = v
		case TypeSigInfo:
			d.SigInfo = v
			err = d.parseSigInfo(v)
		case TypeSigValue:
			d.SigValue, d.signedEnd = v, start
		}
		if err != nil {
			return err
		}
	}
	if last == 0 {
		return ErrNoName
	}
	if d.SigInfo == nil || d.SigValue == nil {
		return ErrNoSignature
	}
	return nil
}

func (d *Data) parseMetaInfo(v []byte) error {
	last := 0
	for len(v) > 0 {
		t, l, h, err := ReadTL(v)
		if err != nil {
			return err
		}
		f := v[h : h+l : h+l]
		v = v[h+l:]
		o := 0
		switch t {
		case TypeContentType:
			o = 1
		case TypeFreshness:
			o = 2
		case TypeFinalBlock:
			o = 3
		}
		if o <= last {
			if Critical(t) && !appMetaInfo(t) {
				return ErrCritical
			}
			continue
		}
		last = o
		switch t {
		case TypeContentType:
			d.ContentType, err = ParseNat(f)
		case TypeFreshness:
			d.Freshness, err = parseMillis(f)
		case TypeFinalBlock:
			if _, n, e := ParseNameValue(f); e != nil || n != 1 {
				return ErrComponent
			}
			d.FinalBlock = f
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appMetaInfo reports whether an element of MetaInfo has a type that belongs
// to applications. ndn-cxx lets them use all of this range, odd numbers too
// (MetaInfo::setAppMetaInfo), and a forwarder has no say in them.
func appMetaInfo(typ uint32) bool { return typ >= 128 && typ <= 252 }

func (d *Data) parseSigInfo(v []byte) error {
	last := 0
	for len(v) > 0 {
		t, l, h, err := ReadTL(v)
		if err != nil {
			return err
		}
		f := v[h : h+l : h+l]
		v = v[h+l:]
		o := 0
		switch t {
		case TypeSigType:
			o = 1
		case TypeKeyLocator:
			o = 2
		case 0xfd, 0x26, 0x28, 0x2a:
			// ValidityPeriod; SignatureNonce, Time and SeqNum belong to
			// Interests. All are left to whoever verifies.
			continue
		}
		if o <= last {
			if Critical(t) {
				return ErrCritical
			}
			continue
		}
		if o != last+1 {
			return ErrNoSignature // a key locator without the type before it
		}
		last = o
		if t == TypeSigType {
			if d.SigType, err = ParseNat(f); err != nil {
				return err
			}
		} else {
			d.KeyLocator = f
		}
	}
	if last == 0 {
		return ErrNoSignature
	}
	return nil
}

// Signed is the part of the packet that the signature covers.
func (d *Data) Signed() []byte { return d.Wire[d.signedAt:d.signedEnd] }

// Digest is the implicit digest: SHA-256 of the whole packet.
func (d *Data) Digest() [32]byte { return sha256.Sum256(d.Wire) }

// VerifyDigest reports whether the packet carries a correct DigestSha256
// signature.
func (d *Data) VerifyDigest() bool {
	if d.SigType != SigDigestSha256 || len(d.SigValue) != sha256.Size {
		return false
	}
	sum := sha256.Sum256(d.Signed())
	return bytes.Equal(sum[:], d.SigValue)
}

// VerifyDigests is VerifyDigest of two packets, which takes little longer than
// that of one where the processor can do both at once.
func VerifyDigests(a, b *Data) (okA, okB bool) {
	if a.SigType != SigDigestSha256 || b.SigType != SigDigestSha256 {
		return a.VerifyDigest(), b.VerifyDigest()
	}
	x, y := pairsum.Sum256(a.Signed(), b.Signed())
	return bytes.Equal(x[:], a.SigValue), bytes.Equal(y[:], b.SigValue)
}

// FinalBlockNumber returns the number in FinalBlockId when it is a component
// of the given type.
func (d *Data) FinalBlockNumber(typ uint32) (uint64, bool) {
	if d.FinalBlock == nil {
		return 0, false
	}
	c, _ := Name(d.FinalBlock).Next()
	return c.NumberAs(typ)
}

// Signer makes signatures of Data. An implementation may keep scratch space
// and need not be safe for concurrent use.
type Signer interface {
	// AppendSigInfo appends the whole SignatureInfo element.
	AppendSigInfo(b []byte) []byte
	// AppendSignature appends the signature of signed (the value of
	// SignatureValue), at most 65,535 bytes.
	AppendSignature(b, signed []byte) ([]byte, error)
}

// DigestSigner signs with DigestSha256: integrity, not authenticity.
type DigestSigner struct{}

// AppendSigInfo implements Signer.
func (DigestSigner) AppendSigInfo(b []byte) []byte {
	return append(b, byte(TypeSigInfo), 3, byte(TypeSigType), 1, byte(SigDigestSha256))
}

// AppendSignature implements Signer.
func (DigestSigner) AppendSignature(b, signed []byte) ([]byte, error) {
	sum := sha256.Sum256(signed)
	return append(b, sum[:]...), nil
}

// DigestLater leaves room for a signature by DigestSigner, which FillDigest
// makes, so that somebody else can spend the time. The room holds zeros.
type DigestLater struct{ DigestSigner }

// AppendSignature implements Signer.
func (DigestLater) AppendSignature(b, _ []byte) ([]byte, error) {
	return append(b, make([]byte, sha256.Size)...), nil
}

// FillDigest completes the encoded Data that DigestLater was the signer of.
func FillDigest(wire []byte) {
	signed, value := digestLater(wire)
	sum := sha256.Sum256(signed)
	copy(value, sum[:])
}

// FillDigests is FillDigest of two Data, which takes little longer than that of
// one where the processor can do both at once.
func FillDigests(a, b []byte) {
	signedA, valueA := digestLater(a)
	signedB, valueB := digestLater(b)
	x, y := pairsum.Sum256(signedA, signedB)
	copy(valueA, x[:])
	copy(valueB, y[:])
}

// digestLater is what is signed of a Data that DigestLater was the signer of, and
// the room for the digest.
func digestLater(wire []byte) (signed, value []byte) {
	_, _, h, _ := ReadTL(wire)
	end := len(wire) - sha256.Size
	return wire[h : end-2], wire[end:]
}

// DataFields are the fields of a Data to encode. Zero values mean absent,
// except the name.
type DataFields struct {
	Name        Name
	ContentType uint64
	Freshness   time.Duration // rounded down to milliseconds
	FinalBlock  []byte        // one encoded component
	Content     []byte        // absent when nil, empty when empty and non-nil
}

// dataRoom is kept free for the type and length of a Data: a length of 3
// bytes. Smaller headers close the gap.
const dataRoom = 4

// AppendData appends an encoded and signed Data. On error dst is returned as
// it was.
func AppendData(dst []byte, f *DataFields, s Signer) ([]byte, error) {
	n := -1
	if f.Content != nil {
		n = len(f.Content)
	}
	b, content := BeginData(dst, f, n)
	copy(content, f.Content)
	return EndData(b, len(dst), s)
}

// BeginData appends the start of a Data, up to and including a content of n
// bytes, and returns these bytes too, for the caller to fill in place: they
// hold anything. f.Content is not looked at; a negative n means no content.
// EndData completes the packet, which is not valid before.
func BeginData(dst []byte, f *DataFields, n int) (b, content []byte) {
	b = append(dst, 0, 0, 0, 0)
	b = f.Name.AppendTLVTo(b)
	meta := 0
	ms := uint64(max(f.Freshness, 0) / time.Millisecond)
	if f.ContentType != 0 {
		meta += 2 + NatSize(f.ContentType)
	}
	if ms != 0 {
		meta += 2 + NatSize(ms)
	}
	if f.FinalBlock != nil {
		meta += TLVSize(TypeFinalBlock, len(f.FinalBlock))
	}
	if meta > 0 {
		b = AppendTL(b, TypeMetaInfo, meta)
		if f.ContentType != 0 {
			b = AppendNatTLV(b, TypeContentType, f.ContentType)
		}
		if ms != 0 {
			b = AppendNatTLV(b, TypeFreshness, ms)
		}
		if f.FinalBlock != nil {
			b = AppendTLV(b, TypeFinalBlock, f.FinalBlock)
		}
	}
	if n < 0 {
		return b, nil
	}
	b = AppendTL(b, TypeContent, n)
	at := len(b)
	b = slices.Grow(b, n)[:at+n]
	return b, b[at : at+n : at+n]
}

// EndData signs the Data that BeginData began at offset start of b, and that
// reaches to the end of b. On error b is returned without it.
func EndData(b []byte, start int, s Signer) ([]byte, error) {
	b = s.AppendSigInfo(b)
	signedEnd := len(b)
	// The length of SignatureValue is known only afterwards: sign behind the
	// largest header and move.
	b = append(b, 0, 0, 0, 0)
	signed, err := s.AppendSignature(b, b[start+dataRoom:signedEnd])
	if err != nil {
		return b[:start], err
	}
	b = signed
	sig := b[signedEnd+dataRoom:]
	if len(sig) > 0xffff {
		return b[:start], ErrLength
	}
	h := TLVSize(TypeSigValue, len(sig)) - len(sig)
	AppendTL(b[:signedEnd], TypeSigValue, len(sig))
	copy(b[signedEnd+h:], sig)
	b = b[:signedEnd+h+len(sig)]

	size := len(b) - start - dataRoom
	if size > 0xffff {
		return b[:start], ErrLength
	}
	h = TLVSize(TypeData, size) - size
	if h < dataRoom {
		copy(b[start+h:], b[start+dataRoom:])
		b = b[:start+h+size]
	}
	AppendTL(b[:start], TypeData, size)
	return b, nil
}
