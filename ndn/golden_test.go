package ndn

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files from what is decoded now; read the difference before committing it")

//go:embed testdata/nfd.txt
var nfdRecording string

// recorded returns the packets of the recording.
func recorded(tb testing.TB) (pkts [][]byte) {
	for line := range strings.Lines(nfdRecording) {
		if !strings.HasPrefix(line, "#") {
			pkts = append(pkts, unhex(tb, strings.TrimSpace(line[2:])))
		}
	}
	return pkts
}

// TestGoldenNFD decodes what NFD and its tools sent and compares the fields
// with testdata/nfd.golden. Each packet is also encoded again from its fields
// where that is possible, and must give the same bytes.
func TestGoldenNFD(t *testing.T) {
	var out strings.Builder
	for line := range strings.Lines(nfdRecording) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			fmt.Fprintln(&out, line)
			continue
		}
		fmt.Fprintf(&out, "%c %s\n", line[0], describe(t, unhex(t, line[2:])))
	}
	const file = "testdata/nfd.golden"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		var w, g string
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if w != g {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, g, w)
		}
	}
}

// describe decodes one link packet, in one line.
func describe(t *testing.T, wire []byte) string {
	t.Helper()
	var lp LpPacket
	if err := lp.Parse(wire); err != nil {
		t.Fatalf("% x: %v", wire, err)
	}
	if again := AppendLpPacket(nil, &LpHeader{LpFields: &lp.LpFields, HasSequence: lp.HasSequence, Sequence: lp.Sequence}, lp.Fragment); !bytes.Equal(again, wire) {
		t.Errorf("link packet encoded again:\n got % x\nwant % x", again, wire)
	}
	var p Packet
	if err := p.Parse(lp.Fragment, &lp.LpFields); err != nil {
		t.Fatalf("% x: %v", lp.Fragment, err)
	}
	var b strings.Builder
	if lp.IsNack {
		fmt.Fprintf(&b, "Nack %s of ", lp.NackReason)
	}
	if lp.PitToken != nil {
		fmt.Fprintf(&b, "token %x, ", lp.PitToken)
	}
	if lp.CongestionMark != 0 {
		fmt.Fprintf(&b, "mark %d, ", lp.CongestionMark)
	}
	if p.Kind == KindData {
		d := &p.Data
		fmt.Fprintf(&b, "Data %s type %d fresh %v", d.Name, d.ContentType, d.Freshness)
		if d.FinalBlock != nil {
			fmt.Fprintf(&b, " final %s", Name(d.FinalBlock))
		}
		fmt.Fprintf(&b, " content %d bytes, signature type %d, %d bytes", len(d.Content), d.SigType, len(d.SigValue))
		if d.SigType == SigDigestSha256 && !d.VerifyDigest() {
			t.Errorf("the digest of %s does not verify", d.Name)
		}
		return b.String()
	}
	i := &p.Interest
	fmt.Fprintf(&b, "Interest %s", i.Name)
	if i.CanBePrefix {
		b.WriteString(" CanBePrefix")
	}
	if i.MustBeFresh {
		b.WriteString(" MustBeFresh")
	}
	if i.HasNonce {
		fmt.Fprintf(&b, " nonce %08x", i.Nonce)
	}
	fmt.Fprintf(&b, " lifetime %v", i.Lifetime)
	if i.HasHopLimit {
		fmt.Fprintf(&b, " hops %d", i.HopLimit)
	}
	if i.AppParameters != nil {
		fmt.Fprintf(&b, " parameters %d bytes, signature info %d, value %d", len(i.AppParameters), len(i.SigInfo), len(i.SigValue))
	}
	f := InterestFields{
		Name: i.Name, CanBePrefix: i.CanBePrefix, MustBeFresh: i.MustBeFresh, ForwardingHint: hints(i),
		Nonce: i.Nonce, OmitNonce: !i.HasNonce, HopLimit: i.HopLimit, Params: i.ParamsPortion(),
	}
	if i.Lifetime != DefaultLifetime {
		f.Lifetime = i.Lifetime
	}
	if again := AppendInterest(nil, &f); !bytes.Equal(again, i.Wire) {
		t.Errorf("Interest encoded again:\n got % x\nwant % x", again, i.Wire)
	}
	return b.String()
}
