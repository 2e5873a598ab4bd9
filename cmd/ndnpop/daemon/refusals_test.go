package daemon

import (
	"strings"
	"testing"

	"ndnpop/fw/mgmt"
	"ndnpop/fw/run"
)

// TestRefusalsDoNotFillTheLog: some of what remote hosts may not do is logged, and
// some of what local programs may not, who do not take each other's share.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	const n = 2000
	for range n {
		d.refused(mgmt.Refusal{Face: 300, Reason: "a stranger"})
	}
	for range n {
		d.refused(mgmt.Refusal{Face: 301, Local: true, Reason: "an application"})
	}
	s := log.String()
	for _, who := range []string{"a stranger", "an application"} {
		if got := strings.Count(s, who); got < linesPerSecond || got > n/2 {
			t.Errorf("%d of %d refusals of %s are logged", got, n, who)
		}
	}
}

// TestFullListenerIsTold: who is kept out is told nothing, so the operator is.
func TestFullListenerIsTold(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	d.observe(run.Event{Kind: run.ListenerFull, Listener: "unix:///run/nfd/nfd.sock"})
	if s := log.String(); !strings.Contains(s, "unix:///run/nfd/nfd.sock") || !strings.Contains(s, "max_faces") {
		t.Error(s)
	}
}
