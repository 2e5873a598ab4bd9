package daemon

import (
	"strings"
	"testing"

	"ndnpop/fw/mgmt"
)

// TestRefusalsOfStrangersDoNotFillTheLog: some of what remote hosts may not do is
// logged, and all of what local ones may not.
func TestRefusalsOfStrangersDoNotFillTheLog(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	const n = 2000
	for range n {
		d.refused(mgmt.Refusal{Face: 300, Reason: "a stranger"})
		d.refused(mgmt.Refusal{Face: 301, Local: true, Reason: "an application"})
	}
	s := log.String()
	if got := strings.Count(s, "a stranger"); got < 1 || got > n/2 {
		t.Errorf("%d of %d refusals of a stranger are logged", got, n)
	}
	if got := strings.Count(s, "an application"); got != n {
		t.Errorf("%d of %d refusals of an application are logged", got, n)
	}
}
