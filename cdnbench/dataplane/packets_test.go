package dataplane

import (
	"os"
	"testing"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/internal/testbin"
)

// TestPackets: each size gets through each device. What was measured is
// nobody's promise here: other tests run at the same time.
func TestPackets(t *testing.T) {
	r := &cdnbench.Result{}
	b := &bench{o: cdnbench.Options{Ndnpop: testbin.Ndnpop(t), Log: os.Stderr}, dir: t.TempDir()}
	if err := b.measurePackets(t.Context(), r, 1, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	r.Summarise()
	for _, s := range packetSizes {
		for _, d := range devices {
			m := r.Arms[packetArm(d.name, s.size)]
			if m["pairs_per_s"].Median <= 0 {
				t.Errorf("%s, %d bytes: %v", d.name, s.size, m)
			}
		}
	}
}
