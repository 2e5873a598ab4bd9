package mgmt

import (
	"bytes"
	"testing"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn/mgmt_2022"
	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/internal/recorded"
	"ndnpop/ndn"
)

// seeds adds every recorded component and content that holds an element of
// the protocol.
func seeds(f *testing.F) {
	for _, p := range recorded.Read(f, nfdTools) {
		if p.Kind == ndn.KindData {
			f.Add(p.Data.Content)
		} else if c, ok := p.Interest.Name.At(4); ok {
			f.Add(c.Value)
		}
	}
}

// FuzzControlParameters: what we accept, we encode to something that decodes
// to the same; and ndnd reads the same from it.
func FuzzControlParameters(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseControlParameters(b)
		if err != nil {
			return
		}
		wire := p.AppendTo(nil)
		again, err := ParseControlParameters(wire)
		if err != nil {
			t.Fatalf("own encoding %x: %v", wire, err)
		}
		if !bytes.Equal(again.AppendTo(nil), wire) {
			t.Fatalf("%x encodes differently the second time", wire)
		}
		theirs, err := mgmt_2022.ParseControlParameters(enc.NewBufferView(b), true)
		if err != nil {
			t.Fatalf("ndnd refuses %x: %v", b, err)
		}
		compareWithNdnd(t, &p, theirs.Val)
	})
}

func compareWithNdnd(t *testing.T, p *ControlParameters, v *mgmt_2022.ControlArgs) {
	t.Helper()
	eq := func(what string, a, b any) {
		if a != b {
			t.Errorf("%s: %v, ndnd %v", what, a, b)
		}
	}
	nat := func(what string, a, b optional.Optional[uint64]) {
		t.Helper()
		eq(what, a.IsSet(), b.IsSet())
		eq(what, a.GetOr(0), b.GetOr(0))
	}
	name := func(what string, a ndn.Name, b enc.Name) {
		t.Helper()
		if !a.Equal(ndn.FromNdnd(b)) {
			t.Errorf("%s: %v, ndnd %v", what, a, b)
		}
	}
	name("Name", p.Name.GetOr(nil), v.Name)
	nat("FaceId", p.FaceID, v.FaceId)
	eq("Uri", p.URI, v.Uri.GetOr(""))
	eq("LocalUri", p.LocalURI, v.LocalUri.GetOr(""))
	nat("Origin", p.Origin, v.Origin)
	nat("Cost", p.Cost, v.Cost)
	nat("Capacity", p.Capacity, v.Capacity)
	nat("Count", p.Count, v.Count)
	nat("Flags", p.Flags, v.Flags)
	nat("Mask", p.Mask, v.Mask)
	if v.Strategy != nil {
		name("Strategy", p.Strategy, v.Strategy.Name)
	}
	nat("ExpirationPeriod", p.Expiration, v.ExpirationPeriod)
	nat("FacePersistency", p.Persistency, v.FacePersistency)
	nat("BaseCongestionMarkInterval", p.MarkInterval, v.BaseCongestionMarkInterval)
	nat("DefaultCongestionThreshold", p.MarkThreshold, v.DefaultCongestionThreshold)
	nat("Mtu", p.MTU, v.Mtu)
}

func FuzzControlResponse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseControlResponse(b)
		if err != nil {
			return
		}
		wire := r.AppendTo(nil)
		if again, err := ParseControlResponse(wire); err != nil || !bytes.Equal(again.AppendTo(nil), wire) {
			t.Fatalf("own encoding %x: %v", wire, err)
		}
	})
}

// FuzzDatasets: every decoder of a dataset keeps its own encoding.
func FuzzDatasets(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrip(t, b, ParseFaceStatuses, (*FaceStatus).AppendTo)
		roundTrip(t, b, ParseChannelStatuses, (*ChannelStatus).AppendTo)
		roundTrip(t, b, ParseFibEntries, (*FibEntry).AppendTo)
		roundTrip(t, b, ParseRibEntries, (*RibEntry).AppendTo)
		roundTrip(t, b, ParseStrategyChoices, (*StrategyChoice).AppendTo)
		roundTrip(t, b, one(ParseCsInfo), (*CsInfo).AppendTo)
		roundTrip(t, b, one(ParseForwarderStatus), (*ForwarderStatus).AppendTo)
		roundTrip(t, b, one(ParseFaceEvent), (*FaceEvent).AppendTo)
		roundTrip(t, b, one(ParseFaceQueryFilter), (*FaceQueryFilter).AppendTo)
	})
}

func one[T any](parse func([]byte) (T, error)) func([]byte) ([]T, error) {
	return func(b []byte) ([]T, error) {
		v, err := parse(b)
		return []T{v}, err
	}
}

func roundTrip[T any](t *testing.T, b []byte, parse func([]byte) ([]T, error), enc func(*T, []byte) []byte) {
	items, err := parse(b)
	if err != nil {
		return
	}
	var wire []byte
	for i := range items {
		wire = enc(&items[i], wire)
	}
	again, err := parse(wire)
	if err != nil {
		t.Fatalf("own encoding %x: %v", wire, err)
	}
	var second []byte
	for i := range again {
		second = enc(&again[i], second)
	}
	if !bytes.Equal(wire, second) || len(items) != len(again) {
		t.Fatalf("%x encodes to %x", wire, second)
	}
}
