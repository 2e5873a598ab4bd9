package ndn

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	enc "github.com/named-data/ndnd/std/encoding"
	spec "github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/types/optional"
	"pgregory.net/rapid"
)

// ndndRead decodes one packet with ndnd, taking a panic for a refusal: it
// trusts lengths from the wire.
func ndndRead(wire []byte) (p *spec.Packet, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	p, _, err = spec.ReadPacket(enc.NewBufferView(bytes.Clone(wire)))
	return p, err
}

func orDefault[T any](o optional.Optional[T], def T) T {
	if v, ok := o.Get(); ok {
		return v
	}
	return def
}

// diffInterest compares two views of one Interest; empty means equal. Times
// that we cut to MaxLifetime overflow at ndnd and are not compared.
func diffInterest(i *Interest, o *spec.Interest) string {
	_, hasNonce := o.NonceV.Get()
	switch {
	case !FromNdnd(o.NameV).Equal(i.Name):
		return "name"
	case o.CanBePrefixV != i.CanBePrefix || o.MustBeFreshV != i.MustBeFresh:
		return "CanBePrefix or MustBeFresh"
	case hasNonce != i.HasNonce || orDefault(o.NonceV, 0) != i.Nonce:
		return "nonce"
	case i.Lifetime != MaxLifetime && orDefault(o.InterestLifetimeV, DefaultLifetime) != i.Lifetime:
		return "lifetime"
	case (o.HopLimitV != nil) != i.HasHopLimit || o.HopLimitV != nil && *o.HopLimitV != i.HopLimit:
		return "hop limit"
	case (o.ApplicationParameters != nil) != (i.AppParameters != nil) || !bytes.Equal(o.ApplicationParameters.Join(), i.AppParameters):
		return "parameters"
	case (o.SignatureInfo != nil) != (i.SigInfo != nil) || !bytes.Equal(o.SignatureValue.Join(), i.SigValue):
		return "signature"
	}
	var theirs []enc.Name
	if o.ForwardingHintV != nil {
		theirs = o.ForwardingHintV.Names
	}
	ours := hints(i)
	if len(theirs) != len(ours) {
		return "number of hints"
	}
	for k := range ours {
		if !FromNdnd(theirs[k]).Equal(ours[k]) {
			return "hint"
		}
	}
	return ""
}

// diffData compares two views of one Data; empty means equal.
func diffData(d *Data, o *spec.Data) string {
	meta := o.MetaInfo
	if meta == nil {
		meta = &spec.MetaInfo{}
	}
	switch {
	case !FromNdnd(o.NameV).Equal(d.Name):
		return "name"
	case orDefault(meta.ContentType, 0) != d.ContentType:
		return "content type"
	case d.Freshness != MaxLifetime && orDefault(meta.FreshnessPeriod, 0) != d.Freshness:
		return "freshness"
	case !bytes.Equal(meta.FinalBlockID, d.FinalBlock):
		return "final block"
	case (o.ContentV != nil) != (d.Content != nil) || !bytes.Equal(o.ContentV.Join(), d.Content):
		return "content"
	case o.SignatureInfo == nil || o.SignatureInfo.SignatureType != d.SigType:
		return "signature type"
	case (o.SignatureInfo.KeyLocator != nil) != (d.KeyLocator != nil):
		return "key locator"
	case !bytes.Equal(o.SignatureValue.Join(), d.SigValue):
		return "signature"
	}
	return ""
}

// diffLp compares two views of one link packet; empty means equal.
func diffLp(p *LpPacket, o *spec.LpPacket) string {
	face := func(v optional.Optional[uint64]) FaceID { return FaceID(orDefault(v, 0)) }
	_, hasSeq := o.Sequence.Get()
	_, hasTx := o.TxSequence.Get()
	_, hasNextHop := o.NextHopFaceId.Get()
	ack, hasAck := o.Ack.Get()
	switch {
	case hasSeq != p.HasSequence || orDefault(o.Sequence, 0) != p.Sequence || hasTx != p.HasTx || orDefault(o.TxSequence, 0) != p.TxSequence:
		return "sequence"
	case orDefault(o.FragIndex, 0) != p.FragIndex || orDefault(o.FragCount, 1) != p.FragCount:
		return "fragment index or count"
	case !bytes.Equal(o.PitToken, p.PitToken):
		return "PIT token"
	case (o.Nack != nil) != p.IsNack || p.NackReason != NackNone && NackReason(o.Nack.Reason) != p.NackReason:
		return "Nack"
	case face(o.IncomingFaceId) != p.IncomingFace || hasNextHop != p.HasNextHopFace || face(o.NextHopFaceId) != p.NextHopFace:
		return "face ids"
	case (o.CachePolicy != nil && o.CachePolicy.CachePolicyType == 1) != p.NoCache:
		return "cache policy"
	case orDefault(o.CongestionMark, 0) != p.CongestionMark:
		return "congestion mark"
	case hasAck != p.HasAcks():
		return "ack"
	case o.NonDiscovery != p.NonDiscovery:
		return "non-discovery"
	case !bytes.Equal(o.PrefixAnnouncement.Join(), p.Announcement):
		return "announcement"
	case !bytes.Equal(o.Fragment.Join(), p.Fragment):
		return "fragment"
	}
	if a, ok := p.NextAck(); ok {
		if _, more := p.NextAck(); !more && a != ack {
			return "ack value"
		}
	}
	return ""
}

// parseAny decodes a packet of any kind.
func parseAny(wire []byte) error {
	typ, _, _, err := ReadTL(wire)
	if err != nil {
		return err
	}
	switch typ {
	case TypeInterest:
		return new(Interest).Parse(wire)
	case TypeData:
		return new(Data).Parse(wire)
	}
	return new(LpPacket).Parse(wire)
}

// diffPacket decodes a packet with ndnd and, if both accept it, says what they
// read differently.
func diffPacket(wire []byte) (diff string, theirs error) {
	o, theirs := ndndRead(wire)
	if theirs != nil || parseAny(wire) != nil {
		return "", theirs
	}
	var i Interest
	var d Data
	var p LpPacket
	switch {
	case o.Interest != nil && i.Parse(wire) == nil:
		return diffInterest(&i, o.Interest), nil
	case o.Data != nil && d.Parse(wire) == nil:
		return diffData(&d, o.Data), nil
	case o.LpPacket != nil && p.Parse(wire) == nil:
		return diffLp(&p, o.LpPacket), nil
	}
	return "kind", nil
}

// TestOracleRecorded: both decoders read NFD's packets alike.
func TestOracleRecorded(t *testing.T) {
	for _, wire := range recorded(t) {
		if diff, theirs := diffPacket(wire); theirs != nil || diff != "" {
			t.Errorf("% x: %v, %s", wire, theirs, diff)
		}
	}
}

// TestOracleEncoded: ndnd reads what our encoders write.
func TestOracleEncoded(t *testing.T) {
	check := func(t *rapid.T, wire []byte) {
		diff, theirs := diffPacket(wire)
		if diff != "" || theirs != nil && whyWeAccept(wire) == "" {
			t.Fatalf("% x: %v, %s", wire, theirs, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := genInterest.Draw(t, "interest")
		check(t, AppendInterest(nil, &f))
		d := genData.Draw(t, "data")
		wire, err := AppendData(nil, &d, DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		check(t, wire)
		lp := genLpFields.Draw(t, "fields")
		check(t, AppendLpPacket(nil, &LpHeader{LpFields: &lp, HasSequence: true, Sequence: 1, FragCount: 2}, wire))
	})
}

const accepts, refuses, misreads = "accepts", "refuses", "misreads"

// differences are packets that ndnd v1.5.3 reads otherwise than we do. The
// rule that decides is beside each; FuzzOracle starts from them.
var differences = []struct {
	rule, hex string
	ours      error // nil: we accept
	theirs    string
}{
	{"numbers are in their shortest encoding", "05 09 07fd0003 080141 2100", ErrVarNum, accepts},
	{"an Interest's name has a component", "05 02 0700", ErrNoName, accepts},
	{"a component's type is at most 65535", "05 08 0706 fe00010000 00", ErrComponent, accepts},
	{"an implicit digest has 32 bytes", "05 07 0705 0103 616263", ErrComponent, accepts},
	{"a Nonce has 4 bytes", "05 08 " + nameA + "0a01 01", ErrLength, accepts},
	{"CanBePrefix is empty", "05 08 " + nameA + "2101 00", ErrLength, accepts},
	{"a lifetime has 1, 2, 4 or 8 bytes", "05 0a " + nameA + "0c03 000001", ErrLength, accepts},
	{"a hint has a name", "05 07 " + nameA + "1e00", ErrNoName, accepts},
	{"the digest of the parameters is the producer's to check", "05 07 " + nameA + "2400", nil, refuses},
	{"a second hop limit is ignored", "05 0b " + nameA + "220105 220107", nil, refuses},
	{"an ignorable element may stand anywhere after the name", "06 10 " + nameA + "1500 f000 1603 1b0100 1700", nil, refuses},
	{"a Data is signed", "06 05 " + nameA, ErrNoSignature, accepts},
	{"SignatureInfo begins with the type", "06 0e " + nameA + "1605 1c00 1b0100 1700", ErrNoSignature, accepts},
	{"FinalBlockId is one component", "06 10 " + nameA + "1402 1a00 1603 1b0100 1700", ErrComponent, accepts},
	{"MetaInfo is in order", "06 14 " + nameA + "1406 190101 180101 1603 1b0100 1700", ErrCritical, accepts},
	{"applications may add to MetaInfo", "06 10 " + nameA + "1402 8100 1603 1b0100 1700", nil, refuses},
	{"link header fields ascend", "64 11 fd034001 01 6201 aa 5007 0505" + nameA, ErrLpOrder, accepts},
	{"unknown link header fields may be ignored from 800 to 959", "64 0b 5400 5007 0505" + nameA, ErrLpField, accepts},
	{"an even one outside that range may not", "64 0d fd03c0 00 5007 0505" + nameA, ErrLpField, accepts},
	{"and of those only every fourth", "64 0d fd0322 00 5007 0505" + nameA, ErrLpField, accepts},
	{"a PIT token is not empty", "64 0b 6200 5007 0505" + nameA, ErrLength, accepts},
	{"a PIT token has at most 32 bytes", "64 2c 6221 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20 5007 0505" + nameA, ErrLength, accepts},
	{"the fragment comes last", "64 0e 5007 0505" + nameA + "fd034001 01", ErrLpOrder, accepts},
	{"a Nack needs no reason", "64 0d fd0320 00 5007 0505" + nameA, nil, refuses},
	{"an idle packet is a packet", "64 00", nil, refuses},
}

func TestOracleDifferences(t *testing.T) {
	for _, c := range differences {
		wire := unhex(t, c.hex)
		if err := parseAny(wire); !errors.Is(err, c.ours) {
			t.Errorf("%s: we say %v, want %v", c.rule, err, c.ours)
		}
		verdict := accepts
		if diff, err := diffPacket(wire); err != nil {
			verdict = refuses
		} else if diff != "" {
			verdict = misreads
		}
		if verdict != c.theirs {
			t.Errorf("%s: ndnd %s it, not %s; if a new version changed, drop the case", c.rule, verdict, c.theirs)
		}
	}
}
