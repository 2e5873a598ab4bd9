package mgmt

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"ndnpop/ndn"
)

// recorded is one packet of testdata/nfd-tools.jsonl: what NFD 24.07 and its
// tools said to each other.
type recorded struct {
	cmd  string // the command line that caused it
	dir  string // ">" to the forwarder, "<" from it
	wire []byte
}

func readRecorded(t testing.TB) (out []recorded) {
	t.Helper()
	f, err := os.Open("testdata/nfd-tools.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := ""
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var line struct{ Cmd, Dir, Hex string }
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Cmd != "" {
			cmd = line.Cmd
			continue
		}
		b, err := hex.DecodeString(line.Hex)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, recorded{cmd, line.Dir, b})
	}
	return out
}

// parsePacket parses a recorded packet with or without a link header.
func parsePacket(t testing.TB, wire []byte) *ndn.Packet {
	t.Helper()
	var lp ndn.LpPacket
	if err := lp.Parse(wire); err != nil {
		t.Fatal(err)
	}
	p := new(ndn.Packet)
	if err := p.Parse(lp.Fragment, &lp.LpFields); err != nil {
		t.Fatal(err)
	}
	return p
}

// Every recorded command decodes, and encodes to the same bytes.
func TestGoldenParameters(t *testing.T) {
	n := 0
	for _, r := range readRecorded(t) {
		if r.dir != ">" {
			continue
		}
		p := parsePacket(t, r.wire)
		if p.Kind != ndn.KindInterest || p.Interest.SigInfo == nil || !p.Interest.Name.HasPrefix(Localhost()) {
			continue
		}
		c, _ := p.Interest.Name.At(4)
		if len(c.Value) == 0 || c.Value[0] != byte(typeControlParameters) {
			continue
		}
		cp, err := ParseControlParameters(c.Value)
		if err != nil {
			t.Errorf("%s: %v", r.cmd, err)
			continue
		}
		if got := cp.AppendTo(nil); !bytes.Equal(got, c.Value) {
			t.Errorf("%s: encodes to %x, was %x", r.cmd, got, c.Value)
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
	for _, r := range readRecorded(t) {
		if r.dir != "<" {
			continue
		}
		p := parsePacket(t, r.wire)
		if p.Kind != ndn.KindData || len(p.Data.Content) == 0 || p.Data.Content[0] != byte(typeControlResponse) {
			continue
		}
		resp, err := ParseResponse(&p.Data)
		if err != nil {
			t.Errorf("%s: %v", r.cmd, err)
			continue
		}
		if got := resp.AppendTo(nil); !bytes.Equal(got, p.Data.Content) {
			t.Errorf("%s: encodes to %x, was %x", r.cmd, got, p.Data.Content)
		}
		n++
	}
	if n < 10 {
		t.Errorf("only %d answers in the recording", n)
	}
}
