package strategy

import (
	"testing"

	"ndnpop/ndn"
	"ndnpop/table"
)

// released counts its ends.
type released struct{ ends *int }

func (r *released) Release() {
	if r.ends != nil {
		*r.ends++
	}
}

func TestStateInUseIsKept(t *testing.T) {
	// One name is in use all the time, others come and go.
	c := NewContext(nil, ndn.NewHasher(1), table.NewMeasurements(64), 1)
	var hot PrefixState[int]
	var others PrefixState[released]
	name := ndn.MustName("/hot")
	*hot.Of(c, name) = 7
	ends := 0
	for i := range 10_000 {
		if *hot.Of(c, name) != 7 {
			t.Fatalf("lost after %d others", i)
		}
		for k := range 2 {
			v := others.Of(c, ndn.MustName("/o").AppendNumber(ndn.TypeSegment, uint64(2*i+k)))
			if v.ends != nil {
				t.Fatal("state does not start as zero")
			}
			v.ends = &ends
		}
	}
	// Unused for as long, it is forgotten.
	if want := 20_000 - 63; ends != want {
		t.Errorf("%d were released, want %d", ends, want)
	}
	for i := range 100 {
		others.Of(c, ndn.MustName("/x").AppendNumber(ndn.TypeSegment, uint64(i)))
	}
	if *hot.Of(c, name) != 0 {
		t.Error("is still there")
	}
}
