package verify

import (
	"errors"
	"fmt"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/security/trust_schema"

	"ndnpop/ndn"
)

// ErrSchema: a file is no trust schema that can be used.
var ErrSchema = errors.New("not a usable trust schema")

// Schema is a compiled Light VerSec trust schema.
type Schema struct{ lvs *trust_schema.LvsSchema }

// ParseSchema reads the binary form of a schema (python-ndn, "LVS binary
// format"), as python-ndn's compiler writes it.
func ParseSchema(b []byte) (*Schema, error) {
	// What ndnd would panic at, in reading a schema or in using it, is refused
	// here.
	if len(b) == 0 || !wellFormed(b) {
		return nil, fmt.Errorf("%w: it is not the binary form that LVS compilers write", ErrSchema)
	}
	m, err := trust_schema.ParseLvsModel(enc.NewBufferView(b), false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if m.StartId >= uint64(len(m.Nodes)) {
		return nil, fmt.Errorf("%w: it has no start", ErrSchema)
	}
	for i, n := range m.Nodes {
		if p, ok := n.Parent.Get(); ok && p >= uint64(len(m.Nodes)) || ok == (uint64(i) == m.StartId) {
			return nil, fmt.Errorf("%w: node %d hangs nowhere, or above the start", ErrSchema, i)
		}
		for _, e := range n.PatternEdges {
			if e.Dest >= uint64(len(m.Nodes)) {
				return nil, fmt.Errorf("%w: an edge of node %d leads nowhere", ErrSchema, i)
			}
			if p, ok := m.Nodes[e.Dest].Parent.Get(); !ok || p != n.Id {
				return nil, fmt.Errorf("%w: node %d has two parents", ErrSchema, e.Dest)
			}
			for _, set := range e.ConsSets {
				for _, o := range set.ConsOptions {
					if o.Fn != nil {
						return nil, fmt.Errorf("%w: it calls the function %s, and functions are not supported", ErrSchema, o.Fn.FnId)
					}
				}
			}
		}
	}
	s, err := trust_schema.NewLvsSchema(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return &Schema{s}, nil
}

// wellFormed reports whether the elements of a schema are whole, with those
// inside of them, and its numbers are numbers (types of the LVS binary
// format).
func wellFormed(b []byte) bool {
	for len(b) > 0 {
		e, rest, err := ndn.NextElement(b)
		if err != nil {
			return false
		}
		b = rest
		switch e.Type {
		case 0x31, 0x33, 0x41, 0x43, 0x51, 0x53, 0x63, 0x67:
			if !wellFormed(e.Value) {
				return false
			}
		case 0x23, 0x25, 0x55, 0x57, 0x61, 0x69:
			if _, err := ndn.ParseNat(e.Value); err != nil {
				return false
			}
		case 0x21, 0x27, 0x29:
		default:
			return false
		}
	}
	return true
}

// allows reports whether the key of a certificate may sign a name.
func (s *Schema) allows(name, cert ndn.Name) bool {
	return s.lvs.Check(name.ToNdnd(), cert.ToNdnd())
}
