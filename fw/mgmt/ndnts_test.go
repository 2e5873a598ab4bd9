package mgmt

import (
	"strings"
	"testing"
	"time"

	"ndnpop/internal/recorded"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// TestNDNts feeds the server what NDNts (@ndn/nfdmgmt 0.0.20250307) sent to
// it, byte by byte, and checks that each answer has the code that the library
// got then, and a body of the same fields.
func TestNDNts(t *testing.T) {
	b := newBench(t, Config{}, nil)
	b.f.nextFace = 257 // as when it was recorded
	commands, datasets := 0, 0
	var ours *ndn.Data // the answer to the last request
	for _, p := range recorded.Read(t, "testdata/ndnts.jsonl") {
		cmd := p.Cmd
		if p.ToForwarder {
			if s, _, err := commandSignature(&p.Interest); err == nil && s.hasTime {
				b.wall = *s.SigTime()
			}
			b.f.now = b.f.now.Add(2 * time.Second)
			if ours = nil; p.Interest.SigInfo != nil || p.Interest.CanBePrefix {
				ours = b.data(b.deliver(localFace, p.Wire))
			}
			continue
		}
		switch {
		case ours == nil: // a segment that was asked for again, of another version
		case strings.HasPrefix(cmd, "NDNts dataset"):
			datasets++
			if ours.FinalBlock == nil || len(ours.Content) == 0 && len(p.Data.Content) > 0 {
				t.Errorf("%s: %s", cmd, ours.Name)
			}
		default:
			commands++
			r, err := proto.ParseResponse(ours)
			if err != nil || r.Code != 200 && r.Code != 409 {
				t.Errorf("%s: %+v, %v", cmd, r, err)
			}
			if strings.HasPrefix(cmd, "NDNts faces/update") {
				// What was recorded has URIs, which NDNts does not mind and ndn-cxx does.
				checkFields(t, "faces/update", r.Body)
				break
			}
			compareResponses(t, cmd, ours, &p.Data)
		}
		ours = nil
	}
	if commands != 12 || datasets != 7 {
		t.Errorf("%d commands and %d datasets compared", commands, datasets)
	}
	if len(b.refused) > 0 {
		t.Errorf("refused: %+v", b.refused)
	}
}
