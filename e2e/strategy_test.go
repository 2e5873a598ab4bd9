package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndnpop/internal/testbin"
)

// failoverStats are the fields of cat's summary that say what a consumer
// notices of a failure.
type failoverStats struct {
	Bytes           int64
	SHA256          string
	Retransmissions int64
	Timeouts        int64
	MaxGap          float64 `json:"max_gap_s"`
	Goodput         float64 `json:"goodput_bps"`
	RTT             float64 `json:"rtt_avg_s"`
}

func (s failoverStats) String() string {
	return fmt.Sprintf("gap %.2f ms, %d retransmissions, %d timeouts, %.0f Mbit/s, RTT %.2f ms",
		s.MaxGap*1e3, s.Retransmissions, s.Timeouts, s.Goodput/1e6, s.RTT*1e3)
}

func readFailoverStats(t *testing.T, file string) (s failoverStats) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// attempts is how often a figure that a busy machine spoils is measured; the
// best counts, as the rest is the machine's.
const attempts = 3

// transparent measures a failure until its figures are within the limits. It
// runs everything with real-time priority where it may, so that what else
// happens on the host does not count.
func transparent(t *testing.T, limit time.Duration, once func(t *testing.T) failoverStats) {
	var all []failoverStats
	for i := range attempts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := once(t)
			t.Log(s)
			all = append(all, s)
		})
		if t.Failed() {
			return
		}
		if s := all[i]; time.Duration(s.MaxGap*float64(time.Second)) <= limit && s.Retransmissions == 0 {
			return
		}
	}
	t.Errorf("never within %v and without a retransmission: %v", limit, all)
}

// TestKillIsTransparent: the intermediate that serves 100 MB is killed in
// mid-transfer. The edge's strategy re-sends what was outstanding there, and
// the consumer repeats nothing and waits at most 15 ms.
func TestKillIsTransparent(t *testing.T) {
	file := randomFile(t, 100*mb, 7)
	transparent(t, 15*time.Millisecond, func(t *testing.T) failoverStats { return killOnce(t, file) })
}

const servedData = `ndnpop_packets_total{direction="out",kind="data"}`

func killOnce(t *testing.T, file string) failoverStats {
	const name = "/kill/f"
	origin := startNode(t, nodeConf{})
	put := serve(t, origin.unix(), name, file)
	mids := make([]*node, 2)
	for i := range mids {
		mids[i] = startNode(t, nodeConf{
			capacity: "1MB",
			faces:    []faceConf{{"origin", origin.udpURI()}},
			routes:   []routeConf{{"/kill", "origin", 10}},
		})
	}
	edge := startNode(t, nodeConf{
		capacity: "1MB",
		faces:    []faceConf{{"mid0", mids[0].udpURI()}, {"mid1", mids[1].udpURI()}},
		routes:   []routeConf{{"/kill", "mid0", 10}, {"/kill", "mid1", 20}},
		extra:    "[[strategy]]\nprefix = \"/kill\"\nstrategy = \"failover\"\n",
	})
	dir := t.TempDir()
	out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats.json")
	cat := ndnpop(t, edge.unix(), "cat", name, "-o", out, "--stats", stats, "--pacing", "300mbit", "--progress", "never")
	realtime(t, origin.Pid(), put.Pid(), mids[0].Pid(), mids[1].Pid(), edge.Pid(), cat.Pid())
	testbin.Eventually(t, patience, "a third to be through", func() bool { return mids[0].metric(t, servedData) > 4000 }, cat, mids[0].Proc)
	mids[0].Kill()
	if code := cat.Wait(t, patience); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, cat.Stderr)
	}
	sameFile(t, out, file)
	if mids[1].metric(t, servedData) < 4000 {
		t.Error("the second intermediate served next to nothing")
	}
	return readFailoverStats(t, stats)
}
