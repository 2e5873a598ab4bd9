package ndn

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrURI is what every refusal of ParseName and ParseComponent Is.
var ErrURI = errors.New("not an NDN name")

// Component types with a URI form of their own: the digests (packet
// specification, "NDN URI Scheme") and the naming conventions, rev. 3.
var uriNumbers = []struct {
	prefix string
	typ    uint32
}{
	{"seg", TypeSegment}, {"off", TypeByteOffset}, {"v", TypeVersion},
	{"t", TypeTimestamp}, {"seq", TypeSequenceNum},
}

const uriImplicitDigest, uriParamsDigest = "sha256digest", "params-sha256"

// ParseName reads a name in URI form (packet specification, "NDN URI
// Scheme"), with or without "ndn:" and the leading slash. The error Is
// ErrURI and says which component is wrong.
func ParseName(uri string) (Name, error) {
	rest := uri
	if len(rest) >= 4 && strings.EqualFold(rest[:4], "ndn:") {
		rest = rest[4:]
	}
	if strings.HasPrefix(rest, "//") { // an authority is ignored
		_, rest, _ = strings.Cut(rest[2:], "/")
	} else {
		rest = strings.TrimPrefix(rest, "/")
	}
	rest = strings.TrimSuffix(rest, "/")
	var n Name
	if rest == "" {
		return n, nil
	}
	for s := range strings.SplitSeq(rest, "/") {
		c, err := ParseComponent(s)
		if err != nil {
			return nil, fmt.Errorf("%q is %w", uri, err)
		}
		n = c.AppendTo(n)
	}
	return n, nil
}

// MustName is ParseName for names that are written in the source.
func MustName(uri string) Name {
	n, err := ParseName(uri)
	if err != nil {
		panic(err)
	}
	return n
}

// ParseComponent reads one component in URI form.
func ParseComponent(s string) (Component, error) {
	prefix, value, typed := strings.Cut(s, "=")
	if !typed {
		return unescape(TypeGeneric, s)
	}
	switch prefix {
	case uriImplicitDigest:
		return parseDigest(TypeImplicitDigest, s, value)
	case uriParamsDigest:
		return parseDigest(TypeParamsDigest, s, value)
	}
	for _, k := range uriNumbers {
		if prefix != k.prefix {
			continue
		}
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return Component{}, fmt.Errorf("%w: in %q the part after = must be a number below 2^64", ErrURI, s)
		}
		return Component{k.typ, AppendNat(nil, v)}, nil
	}
	typ, err := strconv.ParseUint(prefix, 10, 16)
	if err != nil || typ == 0 || prefix[0] == '0' {
		return Component{}, fmt.Errorf("%w: %q has the unknown component type %q; known are the numbers 1 to 65535, seg, off, v, t, seq, %s and %s (write %%3D for an = in a generic component)",
			ErrURI, s, prefix, uriImplicitDigest, uriParamsDigest)
	}
	c, err := unescape(uint32(typ), value)
	if err == nil && c.Type <= TypeParamsDigest && len(c.Value) != 32 {
		err = fmt.Errorf("%w: in %q the digest must have 32 bytes", ErrURI, s)
	}
	return c, err
}

func parseDigest(typ uint32, s, value string) (Component, error) {
	b, err := hex.DecodeString(value)
	if err != nil || len(b) != 32 {
		return Component{}, fmt.Errorf("%w: in %q the digest must have 64 hexadecimal digits", ErrURI, s)
	}
	return Component{typ, b}, nil
}

// unescape decodes percent-encoding. Characters that should have been escaped
// are taken as they are, as ndn-cxx does; a percent sign that begins no
// escape is an error.
func unescape(typ uint32, s string) (Component, error) {
	b := make([]byte, 0, len(s))
	periods := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return Component{}, fmt.Errorf("%w: %q ends within a percent escape", ErrURI, s)
			}
			v, err := hex.DecodeString(s[i+1 : i+3])
			if err != nil {
				return Component{}, fmt.Errorf("%w: %q holds the bad percent escape %q", ErrURI, s, s[i:i+3])
			}
			c, i = v[0], i+2
		}
		periods = periods && c == '.'
		b = append(b, c)
	}
	if !periods {
		return Component{typ, b}, nil
	}
	// A component of n periods is written with n+3, so that . and .. and an
	// empty component are none.
	if len(b) < 3 {
		return Component{}, fmt.Errorf("%w: a component may not be %q (an empty one is written ...)", ErrURI, s)
	}
	return Component{typ, b[3:]}, nil
}

// String returns the name in URI form.
func (n Name) String() string {
	if len(n) == 0 {
		return "/"
	}
	b := make([]byte, 0, 2*len(n))
	for len(n) > 0 {
		var c Component
		c, n = n.Next()
		b = c.appendURI(append(b, '/'))
	}
	return string(b)
}

// String returns the component in URI form.
func (c Component) String() string { return string(c.appendURI(nil)) }

func (c Component) appendURI(b []byte) []byte {
	switch {
	case c.Type == TypeImplicitDigest && len(c.Value) == 32:
		return hex.AppendEncode(append(b, uriImplicitDigest+"="...), c.Value)
	case c.Type == TypeParamsDigest && len(c.Value) == 32:
		return hex.AppendEncode(append(b, uriParamsDigest+"="...), c.Value)
	case c.Type != TypeGeneric:
		for _, k := range uriNumbers {
			// Only the shortest encoding reads back as the same component.
			if v, ok := c.NumberAs(k.typ); ok && NatSize(v) == len(c.Value) {
				return strconv.AppendUint(append(append(b, k.prefix...), '='), v, 10)
			}
		}
		b = append(strconv.AppendUint(b, uint64(c.Type), 10), '=')
	}
	periods := true
	for _, v := range c.Value {
		periods = periods && v == '.'
		if isUnreserved(v) {
			b = append(b, v)
			continue
		}
		const digits = "0123456789ABCDEF"
		b = append(b, '%', digits[v>>4], digits[v&15])
	}
	if periods {
		b = append(b, "..."...)
	}
	return b
}

// isUnreserved reports whether a URI leaves a byte unescaped (RFC 3986,
// section 2.3).
func isUnreserved(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}
