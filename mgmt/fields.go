package mgmt

import (
	"errors"
	"fmt"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/ndn"
)

// ErrMalformed is wrapped by every decoding error of this package.
var ErrMalformed = errors.New("mgmt: malformed element")

// Element types of the protocol. Some numbers mean different fields in
// different elements.
const (
	typeControlResponse   uint32 = 0x65
	typeStatusCode        uint32 = 0x66
	typeStatusText        uint32 = 0x67
	typeControlParameters uint32 = 0x68
	typeFaceID            uint32 = 0x69
	typeCost              uint32 = 0x6a
	typeStrategy          uint32 = 0x6b
	typeFlags             uint32 = 0x6c
	typeExpiration        uint32 = 0x6d
	typeOrigin            uint32 = 0x6f
	typeMask              uint32 = 0x70
	typeURI               uint32 = 0x72
	typeItem              uint32 = 0x80 // an item of most datasets
	typeLocalURI          uint32 = 0x81
	typeNested            uint32 = 0x81 // a route or next hop of an item
	typeChannel           uint32 = 0x82
	typeCapacity          uint32 = 0x83
	typeURIScheme         uint32 = 0x83
	typeCount             uint32 = 0x84
	typeScope             uint32 = 0x84
	typePersistency       uint32 = 0x85
	typeLinkType          uint32 = 0x86
	typeMarkInterval      uint32 = 0x87
	typeMarkThreshold     uint32 = 0x88
	typeMTU               uint32 = 0x89
	typeFaceQueryFilter   uint32 = 0x96
	typeFaceEvent         uint32 = 0xc0
	typeFaceEventKind     uint32 = 0xc1
)

// field binds one element type to the variable that holds it; exactly one of
// the pointers is set. The order of a list of fields is the wire order.
type field struct {
	typ     uint32
	req     *uint64                    // always encoded, required
	opt     *optional.Optional[uint64] // encoded when set
	text    *string                    // encoded when not empty
	reqText *string                    // always encoded, required
	name    *ndn.Name                  // always encoded, required
	optName *optional.Optional[ndn.Name]
	nested  *ndn.Name // a Name inside an element of this type, encoded when not nil
}

// appendFields appends the elements of fs.
func appendFields(b []byte, fs []field) []byte {
	for _, f := range fs {
		switch {
		case f.req != nil:
			b = ndn.AppendNatTLV(b, f.typ, *f.req)
		case f.opt != nil:
			if v, ok := f.opt.Get(); ok {
				b = ndn.AppendNatTLV(b, f.typ, v)
			}
		case f.text != nil:
			if *f.text != "" {
				b = append(ndn.AppendTL(b, f.typ, len(*f.text)), *f.text...)
			}
		case f.reqText != nil:
			b = append(ndn.AppendTL(b, f.typ, len(*f.reqText)), *f.reqText...)
		case f.name != nil:
			b = f.name.AppendTLVTo(b)
		case f.optName != nil:
			if n, ok := f.optName.Get(); ok {
				b = n.AppendTLVTo(b)
			}
		case f.nested != nil:
			if n := *f.nested; n != nil {
				b = n.AppendTLVTo(ndn.AppendTL(b, f.typ, ndn.TLVSize(ndn.TypeName, len(n))))
			}
		}
	}
	return b
}

// appendElement appends an element of type typ that holds the fields.
func appendElement(b []byte, typ uint32, fs []field) []byte {
	// The value is encoded behind the longest header that it can have and
	// moved up: values are small and this needs no second buffer.
	start := len(b)
	b = append(b, make([]byte, 10)...)
	b = appendFields(b, fs)
	return closeElement(b, start, typ)
}

// closeElement writes the header of an element whose value was appended 10
// bytes behind start.
func closeElement(b []byte, start int, typ uint32) []byte {
	value := b[start+10:]
	head := ndn.TLVSize(typ, len(value)) - len(value)
	n := len(value)
	copy(b[start+head:], value)
	ndn.AppendTL(b[:start], typ, n)
	return b[:start+head+n]
}

// mode says what a decoder does with what it does not know.
type mode bool

const (
	strict   mode = true  // requests: a critical unknown field is an error
	tolerant mode = false // answers: unknown fields are skipped
)

// parseFields decodes the elements of v into fs, in any order. Strings are
// copied, names are views of v. other takes the elements whose type no field
// has; it returns false for those it does not know either. It may be nil.
func parseFields(v []byte, fs []field, m mode, other func(ndn.Element) (known bool, err error)) error {
	var seen uint64
	for len(v) > 0 {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		v = rest
		i := indexOf(fs, e.Type)
		if i < 0 {
			known := false
			if other != nil {
				if known, err = other(e); err != nil {
					return err
				}
			}
			if !known && m == strict && ndn.Critical(e.Type) {
				return fmt.Errorf("%w: unknown critical field %#x", ErrMalformed, e.Type)
			}
			continue
		}
		if seen&(1<<i) != 0 {
			return fmt.Errorf("%w: field %#x is there twice", ErrMalformed, e.Type)
		}
		seen |= 1 << i
		if err := fs[i].parse(e.Value); err != nil {
			return fmt.Errorf("%w: field %#x: %w", ErrMalformed, e.Type, err)
		}
	}
	for i, f := range fs {
		if seen&(1<<i) == 0 && (f.req != nil || f.reqText != nil || f.name != nil) {
			return fmt.Errorf("%w: field %#x is missing", ErrMalformed, f.typ)
		}
	}
	return nil
}

func indexOf(fs []field, typ uint32) int {
	for i := range fs {
		if fs[i].typ == typ {
			return i
		}
	}
	return -1
}

func (f *field) parse(v []byte) error {
	switch {
	case f.req != nil:
		n, err := ndn.ParseNat(v)
		*f.req = n
		return err
	case f.opt != nil:
		n, err := ndn.ParseNat(v)
		f.opt.Set(n)
		return err
	case f.text != nil:
		*f.text = string(v)
	case f.reqText != nil:
		*f.reqText = string(v)
	case f.name != nil:
		n, _, err := ndn.ParseNameValue(v)
		*f.name = n
		return err
	case f.optName != nil:
		n, _, err := ndn.ParseNameValue(v)
		f.optName.Set(n)
		return err
	case f.nested != nil:
		n, err := ndn.ParseNameTLV(v)
		*f.nested = n
		return err
	}
	return nil
}

// unwrap returns the value of the one element of type typ that wire holds.
func unwrap(wire []byte, typ uint32) ([]byte, error) {
	e, rest, err := ndn.NextElement(wire)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	case e.Type != typ:
		return nil, fmt.Errorf("%w: type %#x instead of %#x", ErrMalformed, e.Type, typ)
	case len(rest) > 0:
		return nil, fmt.Errorf("%w: %w", ErrMalformed, ndn.ErrTrailing)
	}
	return e.Value, nil
}
