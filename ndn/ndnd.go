package ndn

import (
	enc "github.com/named-data/ndnd/std/encoding"
)

// FromNdnd converts a name of ndnd's standard library. It encodes the name
// itself: ndnd v1.5.3 writes a component of 253 bytes or more with a length
// that no decoder understands.
func FromNdnd(n enc.Name) Name {
	size := 0
	for _, c := range n {
		size += TLVSize(uint32(c.Typ), len(c.Val))
	}
	b := make(Name, 0, size)
	for _, c := range n {
		b = AppendTLV(b, uint32(c.Typ), c.Val)
	}
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
