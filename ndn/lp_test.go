package ndn

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func lpOf(tb testing.TB, fields string) []byte {
	return AppendTLV(nil, TypeLpPacket, unhex(tb, fields))
}

const frag = " 50 05 05030701 41 " // any fragment

// TestLpRules: the order, repetition and ignorable ranges of NDNLPv2, as
// ndn-cxx's lp::Packet enforces them.
func TestLpRules(t *testing.T) {
	for _, c := range []struct {
		name, fields string
		err          error
	}{
		{"idle", "", nil},
		{"fragment only", frag, nil},
		{"empty fragment", "50 00", nil},
		{"header without fragment", "fd0340 01 01", nil},
		{"all fields", "51 08 0000000000000001 52 01 00 53 01 02 62 01 aa fd0320 05 fd0321 01 32 fd032c 01 05 fd0330 01 06" +
			"fd0334 05 fd0335 01 01 fd0340 01 01 fd0344 08 0000000000000001 fd0344 08 0000000000000002 fd0348 08 0000000000000003" +
			"fd034c 00 fd0350 02 0600 fd03b8 00 fd03bc 01 01" + frag, nil},

		{"field after the fragment", frag + "fd0340 01 01", ErrLpOrder},
		{"fragment twice", frag + frag, ErrLpOrder},
		{"fields out of order", "fd0340 01 01 62 01 aa" + frag, ErrLpOrder},
		{"field twice", "fd0340 01 01 fd0340 01 01" + frag, ErrLpOrder},
		{"token twice", "62 01 aa 62 01 aa" + frag, ErrLpOrder},
		{"acks repeat", "fd0344 08 0000000000000001 fd0344 08 0000000000000002" + frag, nil},
		{"acks apart", "fd0344 08 0000000000000001 fd0348 08 0000000000000003 fd0344 08 0000000000000002" + frag, ErrLpOrder},

		{"unknown 804", "fd0324 00" + frag, nil},
		{"unknown 936", "fd03a8 00" + frag, nil},
		{"801, which belongs inside another field", "fd0321 00" + frag, ErrLpField},
		{"unknown 802", "fd0322 01 00" + frag, ErrLpField},
		{"unknown 796, below the range", "fd031c 00" + frag, ErrLpField},
		{"unknown 960, above the range", "fd03c0 00" + frag, ErrLpField},
		{"unknown small type", "54 00" + frag, ErrLpField},
		{"unknown twice", "fd0324 00 fd0324 00" + frag, ErrLpOrder},
		{"unknown out of order", "fd0328 00 fd0324 00" + frag, ErrLpOrder},

		{"sequence of 4 bytes", "51 04 00000001" + frag, ErrLength},
		{"tx sequence of 1 byte", "fd0348 01 01" + frag, ErrLength},
		{"ack of 4 bytes", "fd0344 04 00000001" + frag, ErrLength},
		{"fragment index of 3 bytes", "52 03 000001" + frag, ErrLength},
		{"fragment count of 2^62", "52 01 00 53 08 4000000000000000" + frag, nil}, // the link service bounds it
		{"empty token", "62 00" + frag, ErrLength},
		{"token of 32 bytes", "62 20" + strings.Repeat("aa", 32) + frag, nil},
		{"token of 33 bytes", "62 21" + strings.Repeat("aa", 33) + frag, ErrLength},
		{"congestion mark of 3 bytes", "fd0340 03 000001" + frag, ErrLength},
		{"face id of 5 bytes", "fd032c 05 0000000001" + frag, ErrLength},
		{"non-discovery with a value", "fd034c 01 00" + frag, ErrLength},
		{"path tag of 8 bytes", "fd03b8 08 0000000000000001" + frag, ErrLength},
		{"challenge of 7 bytes", "fd03b0 07 00000000000001" + frag, ErrLength},
		{"response without a number", "fd03b4 00" + frag, ErrLength},
		{"replica select without a number", "fd03bc 00" + frag, ErrLength},
		{"reason of 3 bytes", "fd0320 07 fd0321 03 000032" + frag, ErrLength},
		{"nack cut short", "fd0320 05 fd0321 02 32" + frag, ErrTruncated},
		{"cache policy cut short", "fd0334 03 fd0335" + frag, ErrTruncated},
		{"fragment cut short", "50 05 0503", ErrTruncated},
		{"length 2^63", "50 ff8000000000000000 0503", ErrTruncated},
		{"length not shortest", "62 fd0001 aa" + frag, ErrVarNum},
	} {
		var p LpPacket
		if err := p.Parse(lpOf(t, c.fields)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	var p LpPacket
	for in, want := range map[string]error{
		"": ErrTruncated, "64": ErrTruncated, "64 01": ErrTruncated, "64 00 00": ErrTrailing, "65 00": ErrType, "05 01 00 00": ErrTrailing,
	} {
		if err := p.Parse(unhex(t, in)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", in, err, want)
		}
	}
}

func TestLpFields(t *testing.T) {
	var p LpPacket
	w := lpOf(t, "51 08 ffffffffffffffff 52 01 01 53 02 0102 62 04 aabbccdd fd0320 05 fd0321 01 64 fd0328 01 00 fd032c 01 05 fd0330 01 00"+
		"fd0334 05 fd0335 01 01 fd0340 01 02 fd0344 08 0000000000000001 fd0344 08 0000000000000002 fd0348 08 0000000000000003"+
		"fd034c 00 fd0350 02 0600 fd03b0 08 0000000000000006 fd03b4 08 0000000000000007 fd03b8 0a 0102030405060708 09 01 fd03bc 01 04"+frag)
	if err := p.Parse(w); err != nil {
		t.Fatal(err)
	}
	if !p.HasSequence || p.Sequence != 1<<64-1 || p.FragIndex != 1 || p.FragCount != 0x102 || !p.HasTx || p.TxSequence != 3 ||
		!p.HasChallenge || p.Challenge != 6 || !p.HasResponse || p.Response != 7 ||
		!bytes.Equal(p.PitToken, unhex(t, "aabbccdd")) || !p.IsNack || p.NackReason != NackDuplicate || p.IncomingFace != 5 ||
		!p.HasNextHopFace || p.NextHopFace != 0 || !p.NoCache || p.CongestionMark != 2 || !p.NonDiscovery ||
		!bytes.Equal(p.Announcement, unhex(t, "0600")) || !p.HasPathTag ||
		p.PathTag != (PathTag{0x0102030405060708, 9, PathFromCache}) || !p.HasReplicaSelect || p.ReplicaSelect != 4 ||
		!bytes.Equal(p.Fragment, unhex(t, "0503070141")) {
		t.Errorf("%+v", p)
	}
	var acks []uint64
	for p.HasAcks() {
		a, ok := p.NextAck()
		if !ok {
			t.Fatal("HasAcks, and none came")
		}
		acks = append(acks, a)
	}
	if !slices.Equal(acks, []uint64{1, 2}) {
		t.Errorf("acks %d", acks)
	}
	if _, ok := p.NextAck(); ok {
		t.Error("an ack after the last one")
	}

	// A bare packet has no fields and is its own fragment; nothing stays
	// behind from the packet before.
	bare := interestOf(t, nameA)
	if err := p.Parse(bare); err != nil || !bytes.Equal(p.Fragment, bare) || p.FragCount != 1 || p.IsNack || p.HasSequence || p.PitToken != nil || p.HasAcks() {
		t.Errorf("%+v, %v", p, err)
	}
	if err := p.Parse(lpOf(t, "")); err != nil || p.Fragment != nil {
		t.Errorf("an idle packet has no fragment: %+v, %v", p, err)
	}
}

func TestNackReasons(t *testing.T) {
	for in, want := range map[string]NackReason{
		"fd0320 00":                           NackNone,
		"fd0320 05 fd0321 01 32":              NackCongestion,
		"fd0320 05 fd0321 01 64":              NackDuplicate,
		"fd0320 05 fd0321 01 96":              NackNoRoute,
		"fd0320 06 fd0321 02 0096":            NackNoRoute,
		"fd0320 05 fd0321 01 33":              NackNone,    // unknown
		"fd0320 0a fd0324 01 32 fd0321 01 96": NackNoRoute, // an element beside the reason
	} {
		var p LpPacket
		if err := p.Parse(lpOf(t, in+frag)); err != nil || !p.IsNack || p.NackReason != want {
			t.Errorf("%s: %v, %v", in, p.NackReason, err)
		}
	}
	// ndn-cxx, isLessSevere.
	order := []NackReason{NackCongestion, NackDuplicate, NackNoRoute, NackNone}
	for i := 1; i < len(order); i++ {
		if order[i-1].Severity() >= order[i].Severity() {
			t.Errorf("%s is not less severe than %s", order[i-1], order[i])
		}
	}
	var names []string
	for _, r := range order {
		names = append(names, r.String())
	}
	if got := strings.Join(names, " "); got != "Congestion Duplicate NoRoute None" {
		t.Error(got)
	}
}

var genLpFields = rapid.Custom(func(t *rapid.T) LpFields {
	f := LpFields{
		IncomingFace:     FaceID(rapid.SampledFrom(boundaries).Draw(t, "incoming face")),
		CongestionMark:   rapid.SampledFrom(boundaries).Draw(t, "mark"),
		HasNextHopFace:   rapid.Bool().Draw(t, "next hop"),
		HasPathTag:       rapid.Bool().Draw(t, "path tag"),
		HasReplicaSelect: rapid.Bool().Draw(t, "replica select"),
		NoCache:          rapid.Bool().Draw(t, "no cache"),
		NonDiscovery:     rapid.Bool().Draw(t, "non-discovery"),
		IsNack:           rapid.Bool().Draw(t, "nack"),
	}
	if rapid.Bool().Draw(t, "has token") {
		f.PitToken = rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(t, "token")
	}
	if rapid.Bool().Draw(t, "has announcement") {
		f.Announcement = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "announcement")
	}
	if f.HasNextHopFace {
		f.NextHopFace = FaceID(rapid.SampledFrom(boundaries).Draw(t, "next hop face"))
	}
	if f.HasPathTag {
		f.PathTag = PathTag{rapid.Uint64().Draw(t, "tag"), rapid.Byte().Draw(t, "hops"), rapid.Byte().Draw(t, "flags")}
	}
	if f.HasReplicaSelect {
		f.ReplicaSelect = rapid.SampledFrom(boundaries).Draw(t, "counter")
	}
	if f.IsNack {
		f.NackReason = rapid.SampledFrom([]NackReason{NackNone, NackCongestion, NackDuplicate, NackNoRoute}).Draw(t, "reason")
	}
	return f
})

func equalFields(a, b *LpFields) bool {
	x, y := *a, *b
	x.PitToken, y.PitToken, x.Announcement, y.Announcement = nil, nil, nil, nil
	return bytes.Equal(a.PitToken, b.PitToken) && bytes.Equal(a.Announcement, b.Announcement) &&
		(a.Announcement == nil) == (b.Announcement == nil) &&
		x.IncomingFace == y.IncomingFace && x.NextHopFace == y.NextHopFace && x.CongestionMark == y.CongestionMark &&
		x.ReplicaSelect == y.ReplicaSelect && x.PathTag == y.PathTag && x.HasNextHopFace == y.HasNextHopFace &&
		x.HasPathTag == y.HasPathTag && x.HasReplicaSelect == y.HasReplicaSelect && x.NoCache == y.NoCache &&
		x.NonDiscovery == y.NonDiscovery && x.IsNack == y.IsNack && x.NackReason == y.NackReason
}

func TestLpRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := genLpFields.Draw(t, "fields")
		h := LpHeader{
			LpFields:    &f,
			HasSequence: rapid.Bool().Draw(t, "has sequence"), HasTx: rapid.Bool().Draw(t, "has tx"),
			Sequence: rapid.Uint64().Draw(t, "sequence"), TxSequence: rapid.Uint64().Draw(t, "tx"),
			FragCount: rapid.Uint64Range(0, 1<<20).Draw(t, "count"),
			Acks:      rapid.SliceOfN(rapid.Uint64(), 0, 5).Draw(t, "acks"),

			HasChallenge: rapid.Bool().Draw(t, "has challenge"), Challenge: rapid.Uint64().Draw(t, "challenge"),
			HasResponse: rapid.Bool().Draw(t, "has response"), Response: rapid.Uint64().Draw(t, "response"),
		}
		if h.FragCount > 1 {
			h.FragIndex = rapid.Uint64Range(0, h.FragCount-1).Draw(t, "index")
		}
		fragment := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "fragment")
		bare := h.Size() == 0
		if bare && len(fragment) > 0 {
			fragment = AppendTLV(nil, TypeData, fragment)
		}
		w := AppendLpPacket([]byte("x"), &h, fragment)[1:]
		if len(w) != LpPacketSize(&h, len(fragment)) {
			t.Fatalf("LpPacketSize %d, wrote %d", LpPacketSize(&h, len(fragment)), len(w))
		}
		var p LpPacket
		if err := p.Parse(w); err != nil {
			t.Fatalf("% x: %v", w, err)
		}
		if !equalFields(&p.LpFields, &f) || !bytes.Equal(p.Fragment, fragment) {
			t.Fatalf("%+v became %+v", f, p.LpFields)
		}
		if p.HasSequence != h.HasSequence || p.HasSequence && p.Sequence != h.Sequence || p.HasTx != h.HasTx || p.HasTx && p.TxSequence != h.TxSequence ||
			p.HasChallenge != h.HasChallenge || p.HasChallenge && p.Challenge != h.Challenge ||
			p.HasResponse != h.HasResponse || p.HasResponse && p.Response != h.Response ||
			p.FragIndex != h.FragIndex || p.FragCount != max(h.FragCount, 1) {
			t.Fatalf("%+v became %+v", h, p)
		}
		var acks []uint64
		for a, ok := p.NextAck(); ok; a, ok = p.NextAck() {
			acks = append(acks, a)
		}
		if !slices.Equal(acks, h.Acks) {
			t.Fatalf("acks %d became %d", h.Acks, acks)
		}
	})
}

func TestLpWithoutFieldsIsBare(t *testing.T) {
	d := sampleData(t, 10)
	if got := AppendLpPacket(nil, &LpHeader{}, d); !bytes.Equal(got, d) || LpPacketSize(&LpHeader{}, len(d)) != len(d) {
		t.Errorf("% x", got)
	}
	if got := AppendLpPacket(nil, &LpHeader{}, nil); !bytes.Equal(got, unhex(t, "64 00")) {
		t.Errorf("% x", got)
	}
}
