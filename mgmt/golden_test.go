package mgmt

import (
	"bytes"
	"testing"

	"ndnpop/internal/recorded"
	"ndnpop/ndn"
)

// nfdTools is what NFD 24.07 and its tools said to each other.
const nfdTools = "testdata/nfd-tools.jsonl"

// Every recorded command decodes, and encodes to the same bytes.
func TestGoldenParameters(t *testing.T) {
	n := 0
	for _, r := range recorded.Read(t, nfdTools) {
		if !r.ToForwarder {
			continue
		}
		if r.Kind != ndn.KindInterest || r.Interest.SigInfo == nil || !r.Interest.Name.HasPrefix(Localhost()) {
			continue
		}
		c, _ := r.Interest.Name.At(4)
		if len(c.Value) == 0 || c.Value[0] != byte(typeControlParameters) {
			continue
		}
		cp, err := ParseControlParameters(c.Value)
		if err != nil {
			t.Errorf("%s: %v", r.Cmd, err)
			continue
		}
		if got := cp.AppendTo(nil); !bytes.Equal(got, c.Value) {
			t.Errorf("%s: encodes to %x, was %x", r.Cmd, got, c.Value)
		}
		n++
	}
	if n < 10 {
		t.Errorf("only %d commands in the recording", n)
	}
}

// Every recorded answer decodes, and encodes to the same bytes.
func TestGoldenResponses(t *testing.T) {
	n := 0
	for _, r := range recorded.Read(t, nfdTools) {
		if r.ToForwarder {
			continue
		}
		if r.Kind != ndn.KindData || len(r.Data.Content) == 0 || r.Data.Content[0] != byte(typeControlResponse) {
			continue
		}
		resp, err := ParseResponse(&r.Data)
		if err != nil {
			t.Errorf("%s: %v", r.Cmd, err)
			continue
		}
		if got := resp.AppendTo(nil); !bytes.Equal(got, r.Data.Content) {
			t.Errorf("%s: encodes to %x, was %x", r.Cmd, got, r.Data.Content)
		}
		n++
	}
	if n < 10 {
		t.Errorf("only %d answers in the recording", n)
	}
}
