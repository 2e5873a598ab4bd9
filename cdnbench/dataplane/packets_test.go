package dataplane

import (
	"net"
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

// TestPacedLoad: an Interest that nothing answers counts as late as the load
// waits, and the others from when they were due.
func TestPacedLoad(t *testing.T) {
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	l, err := newLoad(100)
	if err != nil {
		t.Fatal(err)
	}
	to := silent.LocalAddr().String()
	if err := l.connect(0, 0, to, to); err != nil {
		t.Fatal(err)
	}
	const bursts = 200
	p, err := l.pace(t.Context(), 40_000, bursts*paceInterval)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.delays); n != 2*bursts || p.lost != n || quantile(p.delays, 0) != 200_000 {
		t.Errorf("%d Interests, %d lost, the shortest delay %v µs", n, p.lost, quantile(p.delays, 0))
	}
	if n := len(p.late); n == 0 || n > bursts || p.late[0] < 0 {
		t.Errorf("%d wake-ups for %d bursts, the earliest %v late", n, bursts, p.late[0])
	}
	s := schedule{first: 7, burst: 2, begin: 1000}
	for number, want := range map[uint64]time.Duration{7: 1000 + paceInterval, 8: 1000 + paceInterval, 9: 1000 + 2*paceInterval} {
		if got := s.due(number); got != want {
			t.Errorf("Interest %d is due at %v, want %v", number, got, want)
		}
	}
}
