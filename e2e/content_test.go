package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

// TestChangedSegmentSize: another segment size is another version, so that
// caches cannot mix them (24).
func TestChangedSegmentSize(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 100_000, 40)
	versions := map[uint64]bool{}
	for _, size := range []string{"1000", "2000", "8000"} {
		p := serve(t, n.unix(), "/size/f", file, "-s", size)
		out, s := fetch(t, n.unix(), "/size/f")
		sameFile(t, out, file)
		versions[s.Version] = true
		p.Stop(t, patience)
	}
	if len(versions) != 3 {
		t.Errorf("three segment sizes made %d versions", len(versions))
	}
}

// TestChangedFile: a file that changes is a new version at once.
func TestChangedFile(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	file := randomFile(t, 100_000, 41)
	serve(t, n.unix(), "/changed/f", file)
	_, before := fetch(t, n.unix(), "/changed/f", "-f")
	next := randomFile(t, 120_000, 42)
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
	var after catStats
	var out string
	testbin.Eventually(t, patience, "the new version", func() bool {
		out, after = fetch(t, n.unix(), "/changed/f", "-f")
		return after.Version != before.Version
	})
	sameFile(t, out, file)
	if after.Version < before.Version {
		t.Errorf("version %d after %d", after.Version, before.Version)
	}
}

// TestDirectory: a directory tree is published file by file.
func TestDirectory(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.txt": "first", "sub/b c.txt": strings.Repeat("second", 5000), "sub/deep/empty": ""} {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
	serve(t, n.unix(), "/site", dir)
	for name, file := range map[string]string{"/site/a.txt": "a.txt", "/site/sub/b%20c.txt": "sub/b c.txt", "/site/sub/deep/empty": "sub/deep/empty"} {
		out, _ := fetch(t, n.unix(), name)
		sameFile(t, out, filepath.Join(dir, filepath.FromSlash(file)))
	}
	for _, name := range []string{"/site/none", "/site/sub/%2E%2E%2E%2E%2E/a.txt"} {
		if p, code := run(t, n.unix(), "cat", name, "-r", "1", "-l", "500"); code != 3 {
			t.Errorf("%s: exit %d, not 3: %s", name, code, p.Stderr)
		}
	}
}

// TestFinalBlockInLastSegment: the end is told by the last segment only, and
// what lies beyond it is answered by a Nack, silence, or an application's
// Nack; none of them is an error once the end is known (21).
func TestFinalBlockInLastSegment(t *testing.T) {
	t.Parallel()
	for _, beyond := range []string{"Nack", "silence", "application Nack"} {
		t.Run(beyond, func(t *testing.T) {
			b := newTestbed(t, "udp", nodeConf{})
			const segments = 7
			cat := ndnpop(t, b.n.unix(), "cat", "/f/last/v=1", "-D", "-p", "fixed", "-s", "20", "--verify", "digest")
			if p := cat; p.Running() {
				answerSegments(b, cat, segments, beyond)
			}
			if code := cat.Wait(t, patience); code != 0 || cat.Stdout.String() != strings.Repeat("x", segments) {
				t.Errorf("exit %d, %q: %s", code, cat.Stdout, cat.Stderr)
			}
		})
	}
}

// answerSegments is a producer of one-byte segments until the consumer ends.
func answerSegments(b *testbed, consumer *testbin.Proc, segments uint64, beyond string) {
	b.Helper()
	for {
		var f []byte
		select {
		case <-consumer.Exited():
			return
		case f = <-b.up.frames:
		}
		var pkt ndn.Packet
		ok, err := b.up.link.Receive(1, f, &pkt)
		if err != nil {
			b.Fatal(err)
		}
		if !ok || pkt.Kind != ndn.KindInterest {
			continue
		}
		name := pkt.Interest.Name
		seg, isSeg := last(name).NumberAs(ndn.TypeSegment)
		fields := ndn.DataFields{Name: name, Content: []byte("x")}
		switch {
		case !isSeg:
			b.Fatalf("asked for %s", name)
		case seg < segments:
			if seg == segments-1 {
				fields.FinalBlock = last(name).AppendTo(nil)
			}
		case beyond == "Nack":
			b.up.send(link(ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute, PitToken: pkt.PitToken}, pkt.Interest.Wire))
			continue
		case beyond == "silence":
			continue
		default:
			fields.ContentType, fields.Content = ndn.ContentNack, nil
		}
		w, err := ndn.AppendData(nil, &fields, ndn.DigestSigner{})
		if err != nil {
			b.Fatal(err)
		}
		b.up.send(link(ndn.LpFields{PitToken: pkt.PitToken}, w))
	}
}

// TestLargestPacketIPv6: the largest packet over a UDP face on IPv6, whose
// face lives (11; TestNarrowPath has smaller MTUs).
func TestLargestPacketIPv6(t *testing.T) {
	t.Parallel()
	origin := startNode(t, nodeConf{capacity: "0", udp6: true})
	if origin.udp6 == "" {
		testbin.Need(t, errors.New("no IPv6 on the loopback interface"))
	}
	edge := startNode(t, nodeConf{capacity: "0", faces: []faceConf{{"up", "udp6://" + origin.udp6}}, routes: []routeConf{{"/six", "up", 0}}})
	file := randomFile(t, mb, 43)
	serve(t, origin.unix(), "/six/f", file, "-s", "8500")
	for range 2 {
		out, _ := fetch(t, edge.unix(), "/six/f")
		sameFile(t, out, file)
	}
	if edge.Stderr.Contains("face down") {
		t.Error("the face went down")
	}
}

// TestDemo: the demonstration on a file of its own size succeeds and says so.
func TestDemo(t *testing.T) {
	t.Parallel()
	p, code := testbin.Run(t, testbin.Cmd{Path: testbin.Ndnpop(t), Args: []string{"demo", "--size", "20000000", "--json"}}, 2*patience)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, p.Stderr)
	}
	var r struct {
		Equal bool  `json:"sha256_equal"`
		Bytes int64 `json:"bytes"`
		Nodes []struct {
			Name string `json:"name"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(p.Stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, p.Stdout)
	}
	if !r.Equal || r.Bytes < 20_000_000 || len(r.Nodes) != 4 {
		t.Errorf("%+v", r)
	}
}
