package dataplane

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/peer"
)

// packetSize is a size of whole Data packets.
type packetSize struct {
	size   int
	window int     // how many may be on their way: what fits into every socket buffer
	pace   float64 // Data a second at which delays are measured
}

// packetSizes have the same pace for every device. For small packets it is half
// of the 400,000 that the project aims at; for the others it is what two
// processors do with room to spare.
var packetSizes = []packetSize{{100, 2048, 200_000}, {1400, 1024, 100_000}, {8192, 256, 40_000}}

// Times of one measurement.
const (
	warmUp       = 300 * time.Millisecond
	fullMeasure  = 3 * time.Second
	quickMeasure = 500 * time.Millisecond
)

// device is what a load goes through.
type device struct {
	name  string
	start func(ctx context.Context, b *bench, dir string, ports []int) (*peer.Process, error)
	// peers are the addresses of the load's consumer and producer, as indices
	// of ports.
	toConsumer, toProducer int
}

// Ports: 0 the consumer's, 1 the producer's, 2 and 3 the device's.
var devices = []device{
	{name: "relay", start: startRelay, toConsumer: 2, toProducer: 3},
	{name: "forwarder", start: startUDPForwarder, toConsumer: 2, toProducer: 2},
}

func startRelay(_ context.Context, b *bench, dir string, ports []int) (*peer.Process, error) {
	return peer.Start(dir, "relay", nil, nil, nil, b.o.Ndnpop, "bench", "relay",
		loopback(ports[2]), loopback(ports[0]), loopback(ports[3]), loopback(ports[1]))
}

func startUDPForwarder(ctx context.Context, b *bench, dir string, ports []int) (*peer.Process, error) {
	socket := filepath.Join(dir, "fw.sock")
	conf := fmt.Sprintf(`[faces.udp]
listen = ["127.0.0.1:%d"]
[faces.tcp]
listen = []
[faces.unix]
path = %q
[admin]
listen = ""
[cs]
capacity = "8MB"
[[face]]
uri = "udp4://127.0.0.1:%d"
name = "consumer"
[[face]]
uri = "udp4://127.0.0.1:%d"
name = "producer"
[[route]]
prefix = %q
face = "producer"
`, ports[2], socket, ports[0], ports[1], loadPrefix)
	path := filepath.Join(dir, "fw.toml")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	p, err := peer.Start(dir, "fw", nil, nil, nil, b.o.Ndnpop, "run", "-c", path)
	if err != nil {
		return nil, err
	}
	return p, peer.Until(ctx, 10*time.Second, "the forwarder to listen", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil || p.Ended()
	})
}

// packets measures one device with one size of Data.
func (b *bench) packets(ctx context.Context, d device, s packetSize, measure time.Duration) (map[string]float64, error) {
	size, window := s.size, s.window
	dir, err := os.MkdirTemp(b.dir, "load-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	l, err := newLoad(size)
	if err != nil {
		return nil, err
	}
	l.next = shuffled()
	l.received.Store(l.next)
	if err := l.connect(ports[0], ports[1], loopback(ports[d.toConsumer]), loopback(ports[d.toProducer])); err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			l.close()
		}
	}()
	p, err := d.start(ctx, b, dir, ports)
	if p != nil {
		defer p.Stop()
	}
	if err != nil {
		return nil, err
	}
	// Until something arrives, the device may still be starting.
	if _, err := l.wait(ctx, warmUp, window); err != nil {
		return nil, err
	}
	begin := time.Now()
	before, err := p.Usage()
	if err != nil {
		return nil, err
	}
	from := l.received.Load()
	stalls, err := l.wait(ctx, measure, window)
	if err != nil {
		return nil, err
	}
	pairs := float64(l.received.Load() - from)
	elapsed := time.Since(begin).Seconds()
	after, err := p.Usage()
	if err != nil {
		return nil, err
	}
	if pairs == 0 {
		return nil, fmt.Errorf("nothing came through the %s", d.name)
	}
	cpu := (after.CPU - before.CPU).Seconds()
	m := map[string]float64{
		"pairs_per_s":       pairs / elapsed,
		"packets_per_s":     2 * pairs / elapsed,
		"goodput_mbps":      pairs / elapsed * float64(size) * 8 / 1e6,
		"pairs_per_cpu_s":   pairs / cpu,
		"cpu_us_per_packet": cpu / pairs / 2 * 1e6,
		"cpu_share":         cpu / elapsed,
		"stalls":            float64(stalls),
	}
	l.restart(0)
	time.Sleep(100 * time.Millisecond) // what is on its way arrives
	paced, err := l.pace(ctx, s.pace, measure)
	if err != nil {
		return nil, err
	}
	closed = true
	if len(paced.delays) > 0 {
		m["delay_p50_us"], m["delay_p99_us"] = quantile(paced.delays, 0.5), quantile(paced.delays, 0.99)
		m["load_late_p99_us"] = quantile(paced.late, 0.99)
		m["unanswered"] = float64(paced.lost)
	}
	return m, nil
}

func packetArm(d string, size int) string { return fmt.Sprintf("%s, Data of %d bytes", d, size) }

// measurePackets adds a run of each device with each size.
func (b *bench) measurePackets(ctx context.Context, r *cdnbench.Result, run int, measure time.Duration) error {
	for _, s := range packetSizes {
		for _, d := range devices {
			arm := packetArm(d.name, s.size)
			m, err := b.packets(ctx, d, s, measure)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(b.o.Log, "%s, run %d: %v\n", arm, run, err)
				r.Add(run, arm, "failed", 1)
				continue
			}
			b.o.Did("%s, run %d: %.0f pairs/s, %.0f for a processor second; at %.0f pairs/s delay %.0f µs, p99 %.0f µs, the load itself %.0f µs late",
				arm, run, m["pairs_per_s"], m["pairs_per_cpu_s"], s.pace, m["delay_p50_us"], m["delay_p99_us"], m["load_late_p99_us"])
			for _, k := range packetMetrics {
				if v, ok := m[k]; ok {
					r.Add(run, arm, k, v)
				}
			}
		}
	}
	return nil
}

var packetMetrics = []string{
	"pairs_per_s", "packets_per_s", "goodput_mbps", "pairs_per_cpu_s", "cpu_us_per_packet", "cpu_share", "stalls",
	"delay_p50_us", "delay_p99_us", "load_late_p99_us", "unanswered",
}

// expectPackets holds the packet rates against what the project promises.
// Rates are compared for a processor second of the device: on few processors
// the load itself takes what a fast device leaves.
func expectPackets(r *cdnbench.Result) {
	per := func(d string, size int) float64 { return r.Arms[packetArm(d, size)]["pairs_per_cpu_s"].Median }
	r.Expect("packets for a processor second, forwarder to relay, Data of 8192 bytes", "at least 60 % of a bare UDP relay",
		per("forwarder", 8192)/per("relay", 8192), 0.6, math.Inf(1))
	r.Expect("packets for a processor second, forwarder to relay, Data of 1400 bytes", "at least 30 % of a bare UDP relay",
		per("forwarder", 1400)/per("relay", 1400), 0.3, math.Inf(1))
	r.Expect("pairs of Interest and Data of 100 bytes for a processor second of the forwarder", "at least 400,000",
		per("forwarder", 100), 400_000, math.Inf(1))
	// The strict reading of "p99 of added latency": what the relay adds at its
	// own p99 is not taken off, only its median.
	added := r.Arms[packetArm("forwarder", 100)]["delay_p99_us"].Median - r.Arms[packetArm("relay", 100)]["delay_p50_us"].Median
	r.Expect("added delay in µs, both offered 200,000 pairs/s, Data of 100 bytes: forwarder's p99 less the relay's median", "at most 300 µs",
		added, math.Inf(-1), 300)
}
