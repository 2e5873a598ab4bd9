package ndn

import (
	"fmt"

	enc "github.com/named-data/ndnd/std/encoding"
)

// ParseName reads a name in URI form (NDN packet specification, "NDN URI
// Scheme"), with or without "ndn:", typed components as in the naming
// conventions ("seg=3", "v=1", "32=metadata").
func ParseName(uri string) (Name, error) {
	n, err := enc.NameFromStr(uri)
	if err != nil {
		return nil, fmt.Errorf("%q is not an NDN name: %w", uri, err)
	}
	return FromNdnd(n), nil
}

// MustName is ParseName for names that are written in the source.
func MustName(uri string) Name {
	n, err := ParseName(uri)
	if err != nil {
		panic(err)
	}
	return n
}

// String returns the name in URI form.
func (n Name) String() string { return n.ToNdnd().String() }

// String returns the component in URI form.
func (c Component) String() string {
	return enc.Component{Typ: enc.TLNum(c.Type), Val: c.Value}.String()
}

// FromNdnd converts a name of ndnd's standard library.
func FromNdnd(n enc.Name) Name {
	b := make([]byte, n.EncodingLength())
	n.EncodeInto(b)
	return b
}

// ToNdnd converts to a name of ndnd's standard library, which points into n.
func (n Name) ToNdnd() enc.Name {
	out := make(enc.Name, 0, n.Len())
	for len(n) > 0 {
		var c Component
		c, n = n.Next()
		out = append(out, enc.Component{Typ: enc.TLNum(c.Type), Val: c.Value})
	}
	return out
}
