// Package recorded reads recordings of what other NDN programs said to a
// forwarder, for tests.
package recorded

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"ndnpop/ndn"
)

// Packet is one packet of a recording.
type Packet struct {
	Cmd         string // the command line that caused it
	ToForwarder bool
	Wire        []byte // without its link header
	ndn.Packet
}

// Read returns the packets of a recording: lines of JSON, of which each names the
// command whose packets follow, or has the direction (">" to the forwarder) and
// the bytes of one.
func Read(t testing.TB, path string) (packets []Packet) {
	t.Helper()
	f, err := os.Open(path)
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
			t.Fatalf("%s: %v", path, err)
		}
		if line.Cmd != "" {
			cmd = line.Cmd
			continue
		}
		wire, err := hex.DecodeString(line.Hex)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var lp ndn.LpPacket
		if err := lp.Parse(wire); err != nil {
			t.Fatalf("%s: %s: %v", path, cmd, err)
		}
		p := Packet{Cmd: cmd, ToForwarder: line.Dir == ">", Wire: lp.Fragment}
		if err := p.Parse(lp.Fragment, &lp.LpFields); err != nil {
			t.Fatalf("%s: %s: %v", path, cmd, err)
		}
		packets = append(packets, p)
	}
	if err := sc.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return packets
}
