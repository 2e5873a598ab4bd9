package ndn

import (
	"encoding/binary"
	"errors"
)

// Errors that the decoders return. They are constants in effect: decoding
// allocates nothing, not even for a bad packet.
var (
	ErrTruncated   = errors.New("ndn: element is cut short")
	ErrVarNum      = errors.New("ndn: number is not in its shortest encoding")
	ErrType        = errors.New("ndn: unexpected element type")
	ErrTrailing    = errors.New("ndn: bytes after the end of the packet")
	ErrCritical    = errors.New("ndn: unrecognised or out-of-order critical element")
	ErrLength      = errors.New("ndn: element has a length that its type does not allow")
	ErrNoName      = errors.New("ndn: name is missing, empty or out of order")
	ErrComponent   = errors.New("ndn: invalid name component")
	ErrNoSignature = errors.New("ndn: signature info or value is missing")
	ErrLpField     = errors.New("ndn: unknown link header field that may not be ignored")
	ErrLpOrder     = errors.New("ndn: link header fields are out of order")
)

// TLV-TYPE numbers of the packet format (NDN packet specification, "TLV-TYPE
// number assignments").
const (
	TypeInterest uint32 = 0x05
	TypeData     uint32 = 0x06
	TypeName     uint32 = 0x07

	TypeCanBePrefix     uint32 = 0x21
	TypeMustBeFresh     uint32 = 0x12
	TypeForwardingHint  uint32 = 0x1e
	TypeNonce           uint32 = 0x0a
	TypeLifetime        uint32 = 0x0c
	TypeHopLimit        uint32 = 0x22
	TypeAppParameters   uint32 = 0x24
	TypeInterestSigInfo uint32 = 0x2c
	TypeInterestSigVal  uint32 = 0x2e

	TypeMetaInfo    uint32 = 0x14
	TypeContent     uint32 = 0x15
	TypeSigInfo     uint32 = 0x16
	TypeSigValue    uint32 = 0x17
	TypeContentType uint32 = 0x18
	TypeFreshness   uint32 = 0x19
	TypeFinalBlock  uint32 = 0x1a
	TypeSigType     uint32 = 0x1b
	TypeKeyLocator  uint32 = 0x1c
	TypeKeyDigest   uint32 = 0x1d
)

// Name component types.
const (
	TypeImplicitDigest uint32 = 0x01
	TypeParamsDigest   uint32 = 0x02
	TypeGeneric        uint32 = 0x08
	TypeKeyword        uint32 = 0x20
	TypeSegment        uint32 = 0x32
	TypeByteOffset     uint32 = 0x34
	TypeVersion        uint32 = 0x36
	TypeTimestamp      uint32 = 0x38
	TypeSequenceNum    uint32 = 0x3a
)

// MaxPacketSize is the largest packet, link header included, in bytes
// (ndn-cxx MAX_NDN_PACKET_SIZE).
const MaxPacketSize = 8800

// ReadVarNum reads a TLV variable-size number from the start of b. It returns
// the number and how many bytes it took, or an error when b is too short or
// the number is not in its shortest encoding.
func ReadVarNum(b []byte) (v uint64, n int, err error) {
	if len(b) == 0 {
		return 0, 0, ErrTruncated
	}
	switch c := b[0]; {
	case c < 253:
		return uint64(c), 1, nil
	case c == 253:
		if len(b) < 3 {
			return 0, 0, ErrTruncated
		}
		if v = uint64(binary.BigEndian.Uint16(b[1:])); v < 253 {
			return 0, 0, ErrVarNum
		}
		return v, 3, nil
	case c == 254:
		if len(b) < 5 {
			return 0, 0, ErrTruncated
		}
		if v = uint64(binary.BigEndian.Uint32(b[1:])); v <= 0xffff {
			return 0, 0, ErrVarNum
		}
		return v, 5, nil
	default:
		if len(b) < 9 {
			return 0, 0, ErrTruncated
		}
		if v = binary.BigEndian.Uint64(b[1:]); v <= 0xffffffff {
			return 0, 0, ErrVarNum
		}
		return v, 9, nil
	}
}

// VarNumSize is the number of bytes that AppendVarNum writes for v.
func VarNumSize(v uint64) int {
	switch {
	case v < 253:
		return 1
	case v <= 0xffff:
		return 3
	case v <= 0xffffffff:
		return 5
	}
	return 9
}

// AppendVarNum appends v as a TLV variable-size number.
func AppendVarNum(b []byte, v uint64) []byte {
	switch {
	case v < 253:
		return append(b, byte(v))
	case v <= 0xffff:
		return append(b, 253, byte(v>>8), byte(v))
	case v <= 0xffffffff:
		return append(b, 254, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 255), v)
}

// AppendTL appends the type and length of an element.
func AppendTL(b []byte, typ uint32, length int) []byte {
	return AppendVarNum(AppendVarNum(b, uint64(typ)), uint64(length))
}

// AppendTLV appends one whole element.
func AppendTLV(b []byte, typ uint32, value []byte) []byte {
	return append(AppendTL(b, typ, len(value)), value...)
}

// TLVSize is the number of bytes of an element with a value of length bytes.
func TLVSize(typ uint32, length int) int {
	return VarNumSize(uint64(typ)) + VarNumSize(uint64(length)) + length
}

// NatSize is the number of bytes of v as a NonNegativeInteger: 1, 2, 4 or 8.
func NatSize(v uint64) int {
	switch {
	case v <= 0xff:
		return 1
	case v <= 0xffff:
		return 2
	case v <= 0xffffffff:
		return 4
	}
	return 8
}

// AppendNat appends v as the value of a NonNegativeInteger.
func AppendNat(b []byte, v uint64) []byte {
	switch NatSize(v) {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.BigEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return binary.BigEndian.AppendUint64(b, v)
}

// AppendNatTLV appends an element whose value is the NonNegativeInteger v.
func AppendNatTLV(b []byte, typ uint32, v uint64) []byte {
	return AppendNat(AppendTL(b, typ, NatSize(v)), v)
}

// ParseNat reads a NonNegativeInteger value; its length must be 1, 2, 4 or 8.
func ParseNat(v []byte) (uint64, error) {
	switch len(v) {
	case 1:
		return uint64(v[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(v)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(v)), nil
	case 8:
		return binary.BigEndian.Uint64(v), nil
	}
	return 0, ErrLength
}

// ReadTL reads an element's type and length from the start of b. n is the
// size of both; the value is b[n:n+length], which is known to lie within b.
func ReadTL(b []byte) (typ uint32, length, n int, err error) {
	if t, l, ok := shortTL(b); ok {
		return t, l, 2, nil
	}
	// A Data of 253 bytes and more, and a fragment that holds it.
	if len(b) >= 4 && b[0]-1 < 252 && b[1] == 253 {
		if length = int(binary.BigEndian.Uint16(b[2:])); length >= 253 && length <= len(b)-4 {
			return uint32(b[0]), length, 4, nil
		}
	}
	return readTLSlow(b)
}

// shortTL is ReadTL where type and length take a byte each and the value lies
// within b. It is small enough to be inlined.
func shortTL(b []byte) (typ uint32, length int, ok bool) {
	if len(b) < 2 || b[0]-1 >= 252 || int(b[1]) > min(252, len(b)-2) {
		return 0, 0, false
	}
	return uint32(b[0]), int(b[1]), true
}

func readTLSlow(b []byte) (uint32, int, int, error) {
	t, n, err := ReadVarNum(b)
	if err != nil {
		return 0, 0, 0, err
	}
	if t == 0 || t > 0xffffffff {
		return 0, 0, 0, ErrType
	}
	l, m, err := ReadVarNum(b[n:])
	if err != nil {
		return 0, 0, 0, err
	}
	if l > uint64(len(b)-n-m) {
		return 0, 0, 0, ErrTruncated
	}
	return uint32(t), int(l), n + m, nil
}

// Element is one TLV element as a view.
type Element struct {
	Type  uint32
	Value []byte
}

// NextElement reads the element at the start of b and returns it with the
// rest of b.
func NextElement(b []byte) (e Element, rest []byte, err error) {
	t, l, n, err := ReadTL(b)
	if err != nil {
		return Element{}, nil, err
	}
	return Element{t, b[n : n+l : n+l]}, b[n+l:], nil
}

// Critical reports whether an element of this type may not be ignored by a
// decoder that does not recognise it (packet specification, "Considerations
// for Evolvability of TLV-based Encoding").
func Critical(typ uint32) bool { return typ <= 31 || typ&1 == 1 }

// PacketSize looks at the start of a byte stream and returns the size of the
// packet that begins there, 0 when more bytes are needed to tell. It refuses
// a packet of more than limit bytes and a malformed header with an error,
// after which a stream cannot be re-synchronised.
func PacketSize(b []byte, limit int) (int, error) {
	t, n, err := ReadVarNum(b)
	if err == nil && (t == 0 || t > 0xffffffff) {
		return 0, ErrType
	}
	var l uint64
	var m int
	if err == nil {
		l, m, err = ReadVarNum(b[n:])
	}
	switch {
	case err == ErrTruncated:
		return 0, nil
	case err != nil:
		return 0, err
	case l > uint64(limit) || n+m+int(l) > limit:
		return 0, ErrLength
	}
	return n + m + int(l), nil
}
