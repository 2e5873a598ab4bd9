package producer

import (
	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
)

// kind is what an Interest's name asks for.
type kind uint8

const (
	askOther    kind = iota // nothing that exists
	askObject               // /<name>
	askVersion              // /<name>/v=
	askSegment              // /<name>/v=/seg=
	askMetadata             // /<name>/32=metadata
	askMetaVer              // /<name>/32=metadata/v=
	askMetaSeg              // /<name>/32=metadata/v=/seg=
	askRoot                 // /<name>/v=/32=manifest/seg=
	askLeaf                 // /<name>/v=/32=digests/seg=
)

// query is a parsed name. Its slices are views of the name.
type query struct {
	kind   kind
	path   Path
	object ndn.Name // the whole name up to the version or keyword "metadata"
	// versioned is object with the version.
	versioned ndn.Name
	version   uint64
	segment   uint64
}

// parseQuery takes apart a name that begins with a prefix of prefixLen bytes.
func parseQuery(name ndn.Name, prefixLen int) query {
	var q query
	at := prefixLen
	var c ndn.Component
	more := false
	next := func() {
		if more = at < len(name); more {
			var rest ndn.Name
			c, rest = name[at:].Next()
			at = len(name) - len(rest)
		}
	}
	start := at
	for next(); more && c.Type == ndn.TypeGeneric; next() {
		start = at
	}
	q.path.Name = name[prefixLen:start:start]
	if more && c.Type == ndn.TypeKeyword && string(c.Value) == keywordListing {
		q.path.Listing = true
		start = at
		next()
	}
	q.object = name[:start:start]
	q.kind = askObject
	if !more {
		return q
	}
	if c.Type == ndn.TypeKeyword && string(c.Value) == keywordMetadata {
		q.kind = askMetadata
		if next(); !more {
			return q
		}
	}
	var ok bool
	if q.version, ok = number(c, ndn.TypeVersion); !ok {
		q.kind = askOther
		return q
	}
	q.kind++
	q.versioned = name[:at:at]
	if next(); !more {
		return q
	}
	if k := q.part(c); k != askOther {
		q.kind = k
		if next(); !more {
			q.kind = askOther
			return q
		}
		q.segment, ok = number(c, ndn.TypeSegment)
		if !ok || at != len(name) {
			q.kind = askOther
		}
		return q
	}
	if q.segment, ok = number(c, ndn.TypeSegment); !ok || at != len(name) {
		q.kind = askOther
		return q
	}
	q.kind++
	return q
}

// number is the number in a component of type typ. The shortest encoding is
// the only one that a published name has.
func number(c ndn.Component, typ uint32) (uint64, bool) {
	v, ok := c.NumberAs(typ)
	return v, ok && ndn.NatSize(v) == len(c.Value)
}

// part is what the component after an object's version asks for, if it is a
// part of the manifest.
func (q *query) part(c ndn.Component) kind {
	if q.kind != askVersion || c.Type != ndn.TypeKeyword {
		return askOther
	}
	switch string(c.Value) {
	case manifest.KeywordRoot:
		return askRoot
	case manifest.KeywordLeaf:
		return askLeaf
	}
	return askOther
}
