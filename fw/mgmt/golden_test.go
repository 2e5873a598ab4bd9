package mgmt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ndnpop/internal/recorded"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// TestNFDTools feeds the server what NFD's tools sent to NFD 24.07 and checks
// that each answer has the code and carries the fields that NFD's answer had.
func TestNFDTools(t *testing.T) {
	b := newBench(t, Config{}, nil)
	b.f.nextFace = 261                // the id that NFD gave
	answers := map[string]*ndn.Data{} // of NFD, by the name of the request
	var requests []recorded.Packet
	for _, p := range recorded.Read(t, "../../mgmt/testdata/nfd-tools.jsonl") {
		switch {
		case p.ToForwarder && p.Kind == ndn.KindInterest && p.Interest.Name.HasPrefix(proto.Localhost()):
			requests = append(requests, p)
		case !p.ToForwarder && p.Kind == ndn.KindData:
			name := p.Data.Name
			if c, ok := name.At(-2); ok && c.Type == ndn.TypeVersion {
				name = name.Prefix(-2)
			}
			answers[p.Cmd+" "+string(name)] = &p.Data
		}
	}

	compared := 0
	for _, r := range requests {
		i := &r.Interest
		if s, _, err := commandSignature(i); err == nil && s.hasTime {
			b.wall = *s.SigTime()
		}
		b.f.now = b.f.now.Add(2 * time.Second)
		ours := b.data(b.deliver(localFace, r.Wire))
		theirs := answers[r.Cmd+" "+string(i.Name)]
		if theirs == nil {
			continue
		}
		compared++
		if i.SigInfo != nil {
			compareResponses(t, r.Cmd, ours, theirs)
			continue
		}
		name := i.Name.Suffix(2).String()
		got, want := shape(ours.Content), shape(theirs.Content)
		if strings.HasPrefix(name, "/status") || strings.HasPrefix(name, "/cs") {
			// Fields of our own come last.
			if !strings.HasPrefix(got, strings.TrimRight(want, "]")) {
				t.Errorf("%s: %s has fields\n%s, of NFD\n%s", r.Cmd, name, got, want)
			}
		} else if want != "[]" && got != "[]" && !itemShapes(want, got) {
			t.Errorf("%s: %s has items\n%s, of NFD\n%s", r.Cmd, name, got, want)
		}
		if c, ok := ours.Name.At(-2); !ok || c.Type != ndn.TypeVersion || ours.FinalBlock == nil {
			t.Errorf("%s: name %s, final block %x", r.Cmd, ours.Name, ours.FinalBlock)
		}
	}
	if compared < 30 {
		t.Errorf("only %d answers compared", compared)
	}
	if len(b.refused) > 0 {
		t.Errorf("refused: %+v", b.refused)
	}
}

func compareResponses(t *testing.T, cmd string, ours, theirs *ndn.Data) {
	t.Helper()
	o, err := proto.ParseResponse(ours)
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	n, err := proto.ParseResponse(theirs)
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	if o.Code != n.Code {
		t.Errorf("%s: code %d %q, of NFD %d %q", cmd, o.Code, o.Text, n.Code, n.Text)
	}
	if n.Body == nil {
		return
	}
	if got, want := shape(o.Body.AppendTo(nil)), shape(n.Body.AppendTo(nil)); got != want {
		t.Errorf("%s: body %s, of NFD %s", cmd, got, want)
	}
}

// shape writes the types of the elements of b, with those inside of the
// elements that hold others.
func shape(b []byte) string {
	var parts []string
	for len(b) > 0 {
		e, rest, err := ndn.NextElement(b)
		if err != nil {
			return "[?]"
		}
		b = rest
		p := fmt.Sprintf("%x", e.Type)
		if e.Type == 0x68 || ((e.Type == 0x80 || e.Type == 0x81 || e.Type == 0x82) && len(e.Value) > 4 && e.Value[1] < 0x80 && isElements(e.Value)) {
			p += shape(e.Value)
		}
		parts = append(parts, p)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func isElements(b []byte) bool {
	for len(b) > 0 {
		_, rest, err := ndn.NextElement(b)
		if err != nil {
			return false
		}
		b = rest
	}
	return true
}

// itemShapes reports whether each kind of item in got is one of those in want,
// optional fields apart.
func itemShapes(want, got string) bool {
	norm := func(s string) []string {
		s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
		for _, optional := range []string{" 6d", " 87", " 88", " 89"} {
			s = strings.ReplaceAll(s, optional, "")
		}
		var items []string
		depth, start := 0, 0
		for i, c := range s {
			switch c {
			case '[':
				depth++
			case ']':
				depth--
			case ' ':
				if depth == 0 {
					items = append(items, s[start:i])
					start = i + 1
				}
			}
		}
		return append(items, s[start:])
	}
	wants := norm(want)
	for _, g := range norm(got) {
		if !slices.Contains(wants, g) {
			return false
		}
	}
	return true
}
