package ndn

import (
	"encoding/binary"
	"time"
)

// DefaultLifetime is the lifetime of an Interest that names none (packet
// specification, InterestLifetime).
const DefaultLifetime = 4 * time.Second

// MaxLifetime bounds what a lifetime or freshness from the wire can become,
// so that arithmetic on times cannot overflow.
const MaxLifetime = 100 * 365 * 24 * time.Hour

// Interest is a view of an Interest packet.
type Interest struct {
	Wire    []byte // the whole element
	Name    Name
	NameLen int // components in Name

	CanBePrefix bool
	MustBeFresh bool
	HasNonce    bool
	HasHopLimit bool
	HopLimit    uint8
	Nonce       uint32
	Lifetime    time.Duration // DefaultLifetime when absent

	// ForwardingHint is the value of that element: one or more Name elements,
	// each checked. NextHint walks it.
	ForwardingHint []byte
	AppParameters  []byte // value; nil when absent, empty but non-nil when empty
	SigInfo        []byte // value of InterestSignatureInfo
	SigValue       []byte // value of InterestSignatureValue

	nonceAt  int // offset in Wire of the 4 bytes, 0 when absent
	hopAt    int // offset in Wire of the byte, 0 when absent
	nonceGap int // where a missing Nonce element belongs
	hintAt   int // the ForwardingHint element, from hintAt to hintEnd
	hintEnd  int
	paramsAt int // the ApplicationParameters element and all after it
}

// Order of the elements of an Interest; 0 is an unrecognised type.
func interestOrder(t uint32) int {
	switch t {
	case TypeName:
		return 1
	case TypeCanBePrefix:
		return 2
	case TypeMustBeFresh:
		return 3
	case TypeForwardingHint:
		return 4
	case TypeNonce:
		return 5
	case TypeLifetime:
		return 6
	case TypeHopLimit:
		return 7
	case TypeAppParameters:
		return 8
	case TypeInterestSigInfo:
		return 9
	case TypeInterestSigVal:
		return 10
	}
	return 0
}

// Parse makes i a view of wire, which must hold exactly one Interest.
func (i *Interest) Parse(wire []byte) error {
	*i = Interest{}
	i.Lifetime = DefaultLifetime
	t, l, h, err := ReadTL(wire)
	switch {
	case err != nil:
		return err
	case t != TypeInterest:
		return ErrType
	case h+l != len(wire):
		return ErrTrailing
	}
	i.Wire = wire
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
		o := interestOrder(t)
		if o <= last {
			if Critical(t) {
				return ErrCritical
			}
			continue
		}
		last = o
		switch t {
		case TypeName:
			if i.Name, i.NameLen, err = ParseNameValue(v); err != nil {
				return err
			}
			if len(v) == 0 {
				return ErrNoName
			}
			i.nonceGap = end
		case TypeCanBePrefix, TypeMustBeFresh:
			if l != 0 {
				return ErrLength
			}
			if t == TypeCanBePrefix {
				i.CanBePrefix = true
			} else {
				i.MustBeFresh = true
			}
			i.nonceGap = end
		case TypeForwardingHint:
			if err := checkHint(v); err != nil {
				return err
			}
			i.ForwardingHint, i.hintAt, i.hintEnd = v, start, end
			i.nonceGap = end
		case TypeNonce:
			if l != 4 {
				return ErrLength
			}
			i.HasNonce, i.Nonce, i.nonceAt = true, binary.BigEndian.Uint32(v), start+h
		case TypeLifetime:
			if i.Lifetime, err = parseMillis(v); err != nil {
				return err
			}
		case TypeHopLimit:
			if l != 1 {
				return ErrLength
			}
			i.HasHopLimit, i.HopLimit, i.hopAt = true, v[0], start+h
		case TypeAppParameters:
			i.AppParameters, i.paramsAt = v, start
		case TypeInterestSigInfo:
			i.SigInfo = v
		case TypeInterestSigVal:
			i.SigValue = v
		}
	}
	if last == 0 {
		return ErrNoName
	}
	return nil
}

// checkHint checks the value of a ForwardingHint: names, at least one, among
// elements that may be ignored.
func checkHint(v []byte) error {
	names := 0
	for len(v) > 0 {
		t, l, h, err := ReadTL(v)
		if err != nil {
			return err
		}
		if t == TypeName {
			if _, _, err := ParseNameValue(v[h : h+l]); err != nil {
				return err
			}
			names++
		} else if Critical(t) {
			return ErrCritical
		}
		v = v[h+l:]
	}
	if names == 0 {
		return ErrNoName
	}
	return nil
}

// parseMillis reads a NonNegativeInteger of milliseconds, at most MaxLifetime.
func parseMillis(v []byte) (time.Duration, error) {
	ms, err := ParseNat(v)
	if err != nil {
		return 0, err
	}
	if ms > uint64(MaxLifetime/time.Millisecond) {
		return MaxLifetime, nil
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// NextHint returns the first name of the value of a ForwardingHint and what
// follows it; ok is false at the end.
func NextHint(hint []byte) (n Name, rest []byte, ok bool) {
	for len(hint) > 0 {
		e, r, err := NextElement(hint)
		if err != nil {
			return nil, nil, false
		}
		hint = r
		if e.Type == TypeName {
			return Name(e.Value), r, true
		}
	}
	return nil, nil, false
}

// Rebase returns the name and the value of the forwarding hint as views of
// wire, which is a copy of i.Wire.
func (i *Interest) Rebase(wire []byte) (n Name, hint []byte) {
	_, _, h, _ := ReadTL(wire)
	_, l, nh, _ := ReadTL(wire[h:])
	at := h + nh
	n = wire[at : at+l : at+l]
	if i.hintEnd != 0 {
		hint = wire[i.hintEnd-len(i.ForwardingHint) : i.hintEnd : i.hintEnd]
	}
	return n, hint
}

// SetHopLimit patches the hop limit in place. It does nothing when the
// Interest has none.
func (i *Interest) SetHopLimit(v uint8) {
	if i.hopAt != 0 {
		i.HopLimit, i.Wire[i.hopAt] = v, v
	}
}

// SetNonce patches the Nonce in place. It does nothing when the Interest has
// none.
func (i *Interest) SetNonce(n uint32) {
	if i.nonceAt != 0 {
		i.Nonce = n
		binary.BigEndian.PutUint32(i.Wire[i.nonceAt:], n)
	}
}

// ImplicitDigest returns the implicit digest that ends the name, if one does,
// and the name of the Data without it.
func (i *Interest) ImplicitDigest() (digest []byte, data Name, ok bool) {
	return splitDigest(i.Name)
}

func splitDigest(n Name) ([]byte, Name, bool) {
	// The component is 34 bytes, 01 20 and the digest. What looks like one at
	// the end may be the tail of a longer component, so the walk decides.
	if len(n) < 34 || n[len(n)-34] != byte(TypeImplicitDigest) || n[len(n)-33] != 32 {
		return nil, nil, false
	}
	at, target := 0, len(n)-34
	for at < target {
		_, l, h, err := ReadTL(n[at:])
		if err != nil {
			return nil, nil, false
		}
		at += h + l
	}
	if at != target {
		return nil, nil, false
	}
	return n[len(n)-32:], n[:target:target], true
}

// SignedPortion appends to dst the bytes that a signature of a signed
// Interest covers: the name's components without the parameters digest, then
// ApplicationParameters and InterestSignatureInfo (packet specification,
// "Signed Interest").
func (i *Interest) SignedPortion(dst []byte) []byte {
	for n := i.Name; len(n) > 0; {
		c, rest := n.Next()
		if c.Type != TypeParamsDigest {
			dst = append(dst, n[:len(n)-len(rest)]...)
		}
		n = rest
	}
	if i.paramsAt == 0 {
		return dst
	}
	for b := i.Wire[i.paramsAt:]; len(b) > 0; {
		e, rest, err := NextElement(b)
		if err != nil || e.Type == TypeInterestSigVal {
			break
		}
		dst = append(dst, b[:len(b)-len(rest)]...)
		b = rest
	}
	return dst
}

// ParamsPortion is what the ParametersSha256Digest component covers: the
// ApplicationParameters element and everything after it, nil when absent.
func (i *Interest) ParamsPortion() []byte {
	if i.paramsAt == 0 {
		return nil
	}
	return i.Wire[i.paramsAt:]
}

// AppendForwarded appends the Interest as a forwarder sends it on: the
// received wire with every unknown field, with nonce inserted when it had
// none, and without the forwarding hint if stripHint is set. Lengths of the
// outer element are rewritten.
func (i *Interest) AppendForwarded(dst []byte, nonce uint32, stripHint bool) []byte {
	strip := stripHint && i.hintEnd != 0
	if i.HasNonce && !strip {
		return append(dst, i.Wire...)
	}
	_, l, h, _ := ReadTL(i.Wire)
	if strip {
		l -= i.hintEnd - i.hintAt
	}
	if !i.HasNonce {
		l += 6
	}
	dst = AppendTL(dst, TypeInterest, l)
	at := h
	if strip {
		dst = append(dst, i.Wire[at:i.hintAt]...)
		at = i.hintEnd
	}
	if !i.HasNonce {
		dst = append(dst, i.Wire[at:i.nonceGap]...)
		dst = append(dst, byte(TypeNonce), 4)
		dst = binary.BigEndian.AppendUint32(dst, nonce)
		at = i.nonceGap
	}
	return append(dst, i.Wire[at:]...)
}

// AppendOut is AppendForwarded with the given Nonce and hop limit in place of
// the received ones. An Interest without a hop limit stays without.
func (i *Interest) AppendOut(dst []byte, nonce uint32, hopLimit uint8, stripHint bool) []byte {
	dst = i.AppendForwarded(dst, nonce, stripHint)
	// Whatever was removed, added or re-encoded lies before these two fields.
	shift := len(dst) - len(i.Wire)
	if i.nonceAt != 0 {
		binary.BigEndian.PutUint32(dst[shift+i.nonceAt:], nonce)
	}
	if i.hopAt != 0 {
		dst[shift+i.hopAt] = hopLimit
	}
	return dst
}

// InterestFields are the fields of an Interest to encode. Zero values mean
// absent, except the name. A caller that sends parameters has put their digest
// (TypeParamsDigest: SHA-256 of Params) into the name.
type InterestFields struct {
	Name           Name
	CanBePrefix    bool
	MustBeFresh    bool
	ForwardingHint []Name
	Nonce          uint32
	OmitNonce      bool
	Lifetime       time.Duration // rounded up to milliseconds; absent when 0 or less
	HopLimit       uint8         // absent when 0
	// Params is the tail of the packet: the ApplicationParameters element and
	// the signature elements after it, already encoded.
	Params []byte
}

// AppendInterest appends an encoded Interest.
func AppendInterest(b []byte, f *InterestFields) []byte {
	hint := 0
	for _, n := range f.ForwardingHint {
		hint += TLVSize(TypeName, len(n))
	}
	ms := uint64(0)
	if f.Lifetime > 0 {
		ms = uint64((f.Lifetime-1)/time.Millisecond) + 1
	}
	size := TLVSize(TypeName, len(f.Name)) + len(f.Params)
	if f.CanBePrefix {
		size += 2
	}
	if f.MustBeFresh {
		size += 2
	}
	if hint > 0 {
		size += TLVSize(TypeForwardingHint, hint)
	}
	if !f.OmitNonce {
		size += 6
	}
	if ms > 0 {
		size += 2 + NatSize(ms)
	}
	if f.HopLimit > 0 {
		size += 3
	}
	b = AppendTL(b, TypeInterest, size)
	b = f.Name.AppendTLVTo(b)
	if f.CanBePrefix {
		b = append(b, byte(TypeCanBePrefix), 0)
	}
	if f.MustBeFresh {
		b = append(b, byte(TypeMustBeFresh), 0)
	}
	if hint > 0 {
		b = AppendTL(b, TypeForwardingHint, hint)
		for _, n := range f.ForwardingHint {
			b = n.AppendTLVTo(b)
		}
	}
	if !f.OmitNonce {
		b = binary.BigEndian.AppendUint32(append(b, byte(TypeNonce), 4), f.Nonce)
	}
	if ms > 0 {
		b = AppendNatTLV(b, TypeLifetime, ms)
	}
	if f.HopLimit > 0 {
		b = append(b, byte(TypeHopLimit), 1, f.HopLimit)
	}
	return append(b, f.Params...)
}
