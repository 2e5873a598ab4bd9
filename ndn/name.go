package ndn

import (
	"bytes"
)

// MaxComponents is the largest number of components of a name that the
// forwarder's tables hold (NFD: NameTree::getMaxDepth). An implicit digest at
// the end of an Interest's name does not count: the Data's name lacks it.
const MaxComponents = 32

// Name is the TLV-VALUE of a Name element: its components one after another.
// Every component is in its only valid encoding, so two names are equal
// exactly when their bytes are, and a byte prefix that ends at a component is
// a name prefix. A nil Name is the empty name "/".
type Name []byte

// Component is one name component as a view.
type Component struct {
	Type  uint32
	Value []byte
}

// ParseNameValue checks the TLV-VALUE of a Name element and returns it as a
// Name together with its number of components.
func ParseNameValue(v []byte) (Name, int, error) {
	n := 0
	for rest := v; len(rest) > 0; n++ {
		t, l, short := shortTL(rest)
		h := 2
		if !short {
			var err error
			if t, l, h, err = ReadTL(rest); err != nil {
				return nil, 0, err
			}
		}
		if t > 0xffff || (t <= TypeParamsDigest && l != 32) {
			return nil, 0, ErrComponent
		}
		rest = rest[h+l:]
	}
	return Name(v), n, nil
}

// ParseNameTLV checks a whole Name element.
func ParseNameTLV(wire []byte) (Name, error) {
	t, l, h, err := ReadTL(wire)
	switch {
	case err != nil:
		return nil, err
	case t != TypeName:
		return nil, ErrType
	case h+l != len(wire):
		return nil, ErrTrailing
	}
	n, _, err := ParseNameValue(wire[h:])
	return n, err
}

// Next returns the first component and the name after it. It must not be
// called on an empty name.
func (n Name) Next() (Component, Name) {
	t, l, h, _ := ReadTL(n)
	return Component{t, n[h : h+l : h+l]}, n[h+l:]
}

// Len is the number of components.
func (n Name) Len() int {
	c := 0
	for len(n) > 0 {
		_, l, h, err := ReadTL(n)
		if err != nil {
			return c
		}
		n = n[h+l:]
		c++
	}
	return c
}

// At returns component i, counted from 0; a negative i counts from the end
// (-1 is the last one). ok is false when there is no such component.
func (n Name) At(i int) (c Component, ok bool) {
	if i < 0 {
		if i += n.Len(); i < 0 {
			return Component{}, false
		}
	}
	for ; len(n) > 0; i-- {
		c, n = n.Next()
		if i == 0 {
			return c, true
		}
	}
	return Component{}, false
}

// Prefix returns the first k components, or the whole name when it has fewer;
// a negative k counts from the end (-1 drops the last component).
func (n Name) Prefix(k int) Name {
	if k < 0 {
		if k += n.Len(); k <= 0 {
			return nil
		}
	}
	at := 0
	for ; k > 0 && at < len(n); k-- {
		_, l, h, err := ReadTL(n[at:])
		if err != nil {
			break
		}
		at += h + l
	}
	return n[:at:at]
}

// Suffix returns the name without its first k components.
func (n Name) Suffix(k int) Name { return n[len(n.Prefix(k)):] }

// HasPrefix reports whether p is a prefix of n or equal to it.
func (n Name) HasPrefix(p Name) bool { return bytes.HasPrefix(n, p) }

// Equal reports whether two names have the same components.
func (n Name) Equal(o Name) bool { return bytes.Equal(n, o) }

// Compare orders names as the packet specification does (NDN canonical
// order): component by component, by type, then length, then value; a proper
// prefix comes first.
func (n Name) Compare(o Name) int {
	for len(n) > 0 && len(o) > 0 {
		var a, b Component
		a, n = n.Next()
		b, o = o.Next()
		if c := a.Compare(b); c != 0 {
			return c
		}
	}
	switch {
	case len(n) > 0:
		return 1
	case len(o) > 0:
		return -1
	}
	return 0
}

// Clone returns a copy that owns its bytes.
func (n Name) Clone() Name { return bytes.Clone(n) }

// Append returns a new name: n followed by components. It may extend n's
// backing array, like the built-in append.
func (n Name) Append(cs ...Component) Name {
	for _, c := range cs {
		n = c.AppendTo(n)
	}
	return n
}

// AppendGeneric appends a generic component with the given value.
func (n Name) AppendGeneric(v string) Name {
	return append(AppendTL(n, TypeGeneric, len(v)), v...)
}

// AppendNumber appends a component whose value is a NonNegativeInteger
// (segment, version, sequence number, …; naming conventions rev. 3).
func (n Name) AppendNumber(typ uint32, v uint64) Name { return AppendNatTLV(n, typ, v) }

// AppendTLVTo appends the whole Name element to b.
func (n Name) AppendTLVTo(b []byte) []byte { return AppendTLV(b, TypeName, n) }

// AppendTo appends the component's element to b.
func (c Component) AppendTo(b []byte) []byte { return AppendTLV(b, c.Type, c.Value) }

// Compare orders components by type, then length, then value.
func (c Component) Compare(o Component) int {
	switch {
	case c.Type != o.Type:
		if c.Type < o.Type {
			return -1
		}
		return 1
	case len(c.Value) != len(o.Value):
		if len(c.Value) < len(o.Value) {
			return -1
		}
		return 1
	}
	return bytes.Compare(c.Value, o.Value)
}

// Equal reports whether two components have the same type and value.
func (c Component) Equal(o Component) bool {
	return c.Type == o.Type && bytes.Equal(c.Value, o.Value)
}

// Number returns the value of a component that holds a NonNegativeInteger.
func (c Component) Number() (v uint64, ok bool) {
	v, err := ParseNat(c.Value)
	return v, err == nil
}

// NumberAs returns the number of a component of the given type.
func (c Component) NumberAs(typ uint32) (v uint64, ok bool) {
	if c.Type != typ {
		return 0, false
	}
	return c.Number()
}
