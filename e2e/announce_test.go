package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/internal/testbin"
)

// TestSelfLearning: nobody configures a route. A consumer's first Interest goes
// to all neighbours, put --announce answers with an announcement of its prefix,
// and what follows takes the one way that has been learnt.
func TestSelfLearning(t *testing.T) {
	t.Parallel()
	const learn = "[[strategy]]\nprefix = \"/learn\"\nstrategy = \"self-learning\"\n"
	file := randomFile(t, 2*mb, 11)
	origin := startNode(t, nodeConf{extra: learn})
	stranger := startNode(t, nodeConf{extra: learn})
	middle := startNode(t, nodeConf{
		capacity: "1MB", extra: learn,
		faces: []faceConf{{"origin", origin.udpURI()}, {"stranger", stranger.udpURI()}},
	})
	edge := startNode(t, nodeConf{capacity: "1MB", extra: learn, faces: []faceConf{{"middle", middle.udpURI()}}})
	serve(t, origin.unix(), "/learn/film", file, "--announce", "--sign", "digest")
	out := filepath.Join(t.TempDir(), "out")
	if p, code := run(t, edge.unix(), "cat", "/learn/film", "-o", out, "--progress", "never"); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, p.Stderr)
	}
	sameFile(t, out, file)
	for _, n := range []*node{middle, edge} {
		testbin.Eventually(t, patience, "the route to be learnt", func() bool {
			p, code := run(t, n.unix(), "ctl", "route", "list")
			return code == 0 && strings.Contains(p.Stdout.String(), "/learn/film") && strings.Contains(p.Stdout.String(), "prefixann")
		})
	}
	// Who has nothing hears of the discovery, and of little else.
	heard := stranger.metric(t, `ndnpop_packets_total{direction="in",kind="interest"}`)
	served := origin.metric(t, servedData)
	if heard > served/4 {
		t.Errorf("the stranger got %v Interests, the origin served %v", heard, served)
	}
	if heard == 0 {
		t.Error("the stranger was never asked")
	}
}
