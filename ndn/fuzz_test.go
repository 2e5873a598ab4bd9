package ndn

import (
	"bytes"
	"errors"
	"testing"
)

// fuzzSeeds are packets of every kind to start from.
func fuzzSeeds(f *testing.F) {
	for _, w := range recorded(f) {
		if len(w) < 400 {
			f.Add(w)
		}
	}
	f.Add(sampleInterest())
	f.Add(sampleData(f, 20))
	f.Add(interestOf(f, nameA+"2100 1200 1e0a 0703080142 0703080143 0a0401020304 0c0203e8 220105 240155 2c03 1b0100 2e0166 f00144"))
	f.Add(interestOf(f, nameA+"f000 220105 220107 2400"))
	f.Add(dataOf(f, nameA+"14 0b 180102 190164 1a03 320105 15 02 6869 f000"+sigs))
	f.Add(dataOf(f, nameA+"16 0d 1b0103 1c05 0703080142 280105 17 00"))
	fields := LpFields{
		PitToken: []byte{1, 2, 3, 4}, IsNack: true, NackReason: NackNoRoute, IncomingFace: 300, HasNextHopFace: true, NextHopFace: 1 << 40,
		NoCache: true, CongestionMark: 1, NonDiscovery: true, Announcement: []byte{6, 0}, HasPathTag: true, PathTag: PathTag{1, 2, 3},
		HasReplicaSelect: true, ReplicaSelect: 9,
	}
	f.Add(AppendLpPacket(nil, &LpHeader{
		LpFields: &fields, HasSequence: true, Sequence: 1<<64 - 1, HasTx: true, TxSequence: 7, FragIndex: 1, FragCount: 400, Acks: []uint64{1, 2, 3},
	}, sampleInterest()))
	f.Add(lpOf(f, "fd0324 01 ff"+frag))
	f.Add(lpOf(f, "52 01 00 53 08 4000000000000000"+frag))
}

// within reports whether view lies inside wire.
func within(wire, view []byte) bool {
	return len(view) == 0 || bytes.Contains(wire, view)
}

func FuzzInterest(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var i Interest
		if i.Parse(wire) != nil {
			return
		}
		if _, n, err := ParseNameValue(i.Name); err != nil || n != i.NameLen || n == 0 || i.Lifetime < 0 || i.Lifetime > MaxLifetime {
			t.Fatalf("%+v", i)
		}
		for _, v := range [][]byte{i.Name, i.ForwardingHint, i.AppParameters, i.SigInfo, i.SigValue} {
			if !within(wire, v) {
				t.Fatal("a view leaves the packet")
			}
		}
		if digest, data, ok := i.ImplicitDigest(); ok && (len(digest) != 32 || data.Len() != i.NameLen-1) {
			t.Fatal("implicit digest")
		}
		i.SignedPortion(nil)
		// What is forwarded parses again and differs in what was meant to.
		for _, strip := range []bool{false, true} {
			var g Interest
			out := i.AppendForwarded(nil, 7, strip)
			if err := g.Parse(out); err != nil {
				t.Fatalf("% x forwarded as % x: %v", wire, out, err)
			}
			if !g.Name.Equal(i.Name) || !g.HasNonce || i.HasNonce && g.Nonce != i.Nonce || !i.HasNonce && g.Nonce != 7 ||
				g.CanBePrefix != i.CanBePrefix || g.MustBeFresh != i.MustBeFresh || g.Lifetime != i.Lifetime || g.HopLimit != i.HopLimit ||
				!bytes.Equal(g.ParamsPortion(), i.ParamsPortion()) || strip && g.ForwardingHint != nil || !strip && !bytes.Equal(g.ForwardingHint, i.ForwardingHint) {
				t.Fatalf("% x forwarded as % x", wire, out)
			}
		}
		w := bytes.Clone(wire)
		var p Interest
		if err := p.Parse(w); err != nil {
			t.Fatal(err)
		}
		p.SetHopLimit(p.HopLimit ^ 0xff)
		p.SetNonce(^p.Nonce)
		var q Interest
		if err := q.Parse(w); err != nil || q.HopLimit != p.HopLimit || q.Nonce != p.Nonce {
			t.Fatalf("patched % x: %v", w, err)
		}
	})
}

func FuzzData(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var d Data
		if d.Parse(wire) != nil {
			return
		}
		if _, n, err := ParseNameValue(d.Name); err != nil || n != d.NameLen || d.Freshness < 0 || d.Freshness > MaxLifetime || d.SigInfo == nil || d.SigValue == nil {
			t.Fatalf("%+v", d)
		}
		for _, v := range [][]byte{d.Name, d.MetaInfo, d.FinalBlock, d.Content, d.SigInfo, d.KeyLocator, d.SigValue} {
			if !within(wire, v) {
				t.Fatal("a view leaves the packet")
			}
		}
		if d.FinalBlock != nil && Name(d.FinalBlock).Len() != 1 {
			t.Fatal("the final block is not one component")
		}
		d.FinalBlockNumber(TypeSegment)
		d.VerifyDigest()
		if s := d.Signed(); !bytes.Contains(s, d.SigInfo) || !bytes.HasPrefix(s, d.Name.AppendTLVTo(nil)) {
			t.Fatal("the signed portion lacks the name or SignatureInfo")
		}
	})
}

func FuzzLpPacket(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var p LpPacket
		if p.Parse(wire) != nil {
			return
		}
		if p.PitToken != nil && (len(p.PitToken) < 1 || len(p.PitToken) > 32) || !within(wire, p.Fragment) || !within(wire, p.Announcement) {
			t.Fatalf("%+v", p)
		}
		var acks []uint64
		copied := p
		for a, ok := copied.NextAck(); ok; a, ok = copied.NextAck() {
			acks = append(acks, a)
		}
		if wire[0] != byte(TypeLpPacket) {
			return
		}
		// Encoding what was read keeps every field.
		if p.FragCount < 2 {
			p.FragIndex = 0
		}
		h := LpHeader{
			LpFields: &p.LpFields, HasSequence: p.HasSequence, Sequence: p.Sequence, HasTx: p.HasTx, TxSequence: p.TxSequence,
			FragIndex: p.FragIndex, FragCount: p.FragCount, Acks: acks,
		}
		if h.Size() == 0 {
			return
		}
		again := AppendLpPacket(nil, &h, p.Fragment)
		var q LpPacket
		if err := q.Parse(again); err != nil || !equalFields(&q.LpFields, &p.LpFields) || !bytes.Equal(q.Fragment, p.Fragment) ||
			q.Sequence != p.Sequence || q.TxSequence != p.TxSequence || q.FragIndex != p.FragIndex || q.FragCount != max(p.FragCount, 1) {
			t.Fatalf("% x encoded again as % x: %v", wire, again, err)
		}
		if len(again) != LpPacketSize(&h, len(p.Fragment)) {
			t.Fatal("LpPacketSize is wrong")
		}
	})
}

func FuzzPacket(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var lp LpPacket
		if lp.Parse(wire) != nil || lp.Fragment == nil {
			return
		}
		var p Packet
		if p.Parse(lp.Fragment, &lp.LpFields) != nil {
			return
		}
		if !bytes.Equal(p.Wire(), lp.Fragment) || (p.Kind == KindNack) != lp.IsNack || p.Kind == 0 {
			t.Fatalf("%+v", p)
		}
	})
}

// whyWeAccept names the rule by which we accept what ndnd v1.5.3 refuses. An
// empty answer is a difference that nobody has explained yet.
func whyWeAccept(wire []byte) string {
	e, _, _ := NextElement(wire)
	switch {
	case e.Type == TypeInterest && (child(e.Value, TypeAppParameters) != nil || child(e.Value, TypeInterestSigVal) != nil):
		return "the digest of the parameters is for the producer to check, and may stand before version and segment (packet specification, ParametersSha256Digest)"
	case e.Type == TypeLpPacket && len(child(e.Value, TypeLpFragment)) == 0:
		return "a link packet without a fragment is idle, or carries acknowledgements (NDNLPv2)"
	case e.Type == TypeLpPacket && child(e.Value, TypeLpNack) != nil && child(child(e.Value, TypeLpNack), TypeLpNackReason) == nil:
		return "the reason of a Nack is optional (NDNLPv2, Network Nack)"
	case e.Type == TypeLpPacket && (child(e.Value, TypeLpCachePolicy) != nil || child(e.Value, TypeLpNack) != nil):
		return "elements beside the reason and the cache policy type, and a missing type, are no error (ndn-cxx)"
	case e.Type == TypeData && odd(child(e.Value, TypeMetaInfo)):
		return "MetaInfo may hold elements of applications (ndn-cxx, MetaInfo::setAppMetaInfo)"
	case e.Type == TypeInterest && child(e.Value, TypeInterestSigInfo) != nil:
		return "what InterestSignatureInfo holds is read by who verifies"
	case child(e.Value, TypeSigInfo) != nil && Name(child(e.Value, TypeSigInfo)).Len() > 1:
		return "what SignatureInfo holds beside the type is read by who verifies"
	}
	return ""
}

// child returns the value of the first element of the given type, not nil if
// there is one.
func child(b []byte, typ uint32) []byte {
	for len(b) > 0 {
		e, rest, err := NextElement(b)
		if err != nil {
			return nil
		}
		if e.Type == typ {
			return e.Value
		}
		b = rest
	}
	return nil
}

// odd reports whether one of the elements has a type that ndnd does not know
// in MetaInfo and may not ignore.
func odd(b []byte) bool {
	for len(b) > 0 {
		e, rest, err := NextElement(b)
		if err != nil {
			return false
		}
		if appMetaInfo(e.Type) && Critical(e.Type) {
			return true
		}
		b = rest
	}
	return false
}

// incomparable says why ndnd v1.5.3's reading of this packet proves nothing.
func incomparable(wire []byte, ours error) string {
	if errors.Is(ours, ErrTrailing) {
		return "ndnd's ReadPacket wants one element and leaves it to its caller to see to that"
	}
	if errors.Is(ours, ErrTruncated) {
		return "ndnd allocates what a length says before it looks for the bytes"
	}
	e, _, err := NextElement(wire)
	if err != nil {
		return "not even one element"
	}
	order := dataOrder
	switch e.Type {
	case TypeInterest:
		order = interestOrder
	case TypeLpPacket:
		order = func(t uint32) int { return int(t) }
	}
	last := 0
	for b := e.Value; len(b) > 0; {
		c, rest, err := NextElement(b)
		if err != nil {
			return "see ErrTruncated"
		}
		o := order(c.Type)
		if c.Type == TypeLpFragment && e.Type == TypeLpPacket {
			o = 1 << 40
		}
		if o <= last && (e.Type != TypeLpPacket || o != int(TypeLpAck)) {
			return "ndnd loses its place after an element that it ignores: it takes its value for the next elements"
		}
		last, b = o, rest
		if !nested(c) {
			return "see ErrTruncated"
		}
	}
	return ""
}

// nested reports whether the elements inside c, down to where ndnd looks,
// keep to their lengths.
func nested(c Element) bool {
	switch c.Type {
	case TypeName, TypeForwardingHint, TypeMetaInfo, TypeSigInfo, TypeInterestSigInfo, TypeKeyLocator,
		TypeLpNack, TypeLpCachePolicy, 0xfd, 0x102, 0x200:
	default:
		return true
	}
	for b := c.Value; len(b) > 0; {
		e, rest, err := NextElement(b)
		if err != nil || c.Type != TypeName && !nested(e) {
			return false
		}
		b = rest
	}
	return true
}

// whyWeRefuse names the rule by which we refuse what ndnd v1.5.3 accepts.
func whyWeRefuse(ours error) string {
	switch {
	case errors.Is(ours, ErrVarNum):
		return "numbers have one encoding, the shortest (packet specification, TLV)"
	case errors.Is(ours, ErrCritical):
		return "order counts inside MetaInfo and SignatureInfo too, critical elements may not repeat (packet specification, evolvability)"
	case errors.Is(ours, ErrType):
		return "types are 1 to 2^32-1 (packet specification, TLV)"
	case errors.Is(ours, ErrComponent):
		return "components have types up to 65535, digests 32 bytes, FinalBlockId one component (packet specification, Name)"
	case errors.Is(ours, ErrLength):
		return "numbers have 1, 2, 4 or 8 bytes, a Nonce 4, a hop limit 1, flags none, a PIT token 1 to 32"
	case errors.Is(ours, ErrNoName):
		return "an Interest has a name of at least one component, a hint at least one name (packet specification, Interest)"
	case errors.Is(ours, ErrNoSignature):
		return "a Data is signed (packet specification, Data Signature)"
	case errors.Is(ours, ErrLpOrder), errors.Is(ours, ErrLpField):
		return "link header fields ascend, and unknown ones may be ignored in one range only (NDNLPv2)"
	}
	return ""
}

// FuzzOracle compares our decoders with ndnd's. Where the verdicts differ the
// packet specification or NDNLPv2 decides, and whyWeAccept or whyWeRefuse
// names the rule.
func FuzzOracle(f *testing.F) {
	fuzzSeeds(f)
	for _, c := range differences {
		f.Add(unhex(f, c.hex))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		ours := parseAny(wire)
		if incomparable(wire, ours) != "" {
			return
		}
		diff, theirs := diffPacket(wire)
		switch {
		case diff != "":
			t.Fatalf("% x: the %s differs", wire, diff)
		case ours == nil && theirs != nil && whyWeAccept(wire) == "":
			t.Fatalf("% x: ndnd refuses: %v", wire, theirs)
		case ours != nil && theirs == nil && whyWeRefuse(ours) == "":
			t.Fatalf("% x: ndnd accepts, we say %v", wire, ours)
		}
	})
}
