package dataplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/peer"
)

// Scenario implements cdnbench.Scenario.
type Scenario struct{}

// Name implements cdnbench.Scenario.
func (Scenario) Name() string { return "dataplane" }

// About implements cdnbench.Scenario.
func (Scenario) About() string {
	return "how fast, and at what cost, an object crosses one and two forwarders on loopback, beside ndnd"
}

const (
	objectName  = "/bench/object"
	segmentSize = 8000 // bytes of payload; both producers use it
	fullSize    = 200_000_000
	quickSize   = 20_000_000
	largeSize   = 10 * fullSize
	defaultRuns = 5
)

// arm is one way of moving the object.
type arm struct {
	name   string
	chain  []string // transports between the forwarders; empty: one forwarder
	cached bool     // the second fetch is measured
	large  bool     // of the object that is ten times as large
	ndnd   bool
	cat    []string // flags of ndnpop cat
}

// arms pairs each way with ndnd's; ndnd's cat has no flags and verifies
// nothing.
func arms() []arm {
	plain := []string{"--verify", "none"}
	return []arm{
		{name: "ndnd unix", ndnd: true},
		{name: "ndnpop unix", cat: plain},
		{name: "ndnpop unix, digests verified"},
		{name: "ndnd unix, cached", ndnd: true, cached: true},
		{name: "ndnpop unix, cached", cached: true, cat: plain},
		{name: "ndnpop unix, cached, digests verified", cached: true},
		{name: "ndnpop unix, 2 GB", large: true, cat: plain},
		{name: "ndnpop unix, cached, 2 GB", large: true, cached: true, cat: plain},
		{name: "ndnpop unix, cached, 2 GB, digests verified", large: true, cached: true},
		{name: "ndnd two over tcp", ndnd: true, chain: []string{"tcp"}},
		{name: "ndnpop two over tcp", chain: []string{"tcp"}, cat: plain},
		{name: "ndnd two over udp", ndnd: true, chain: []string{"udp"}},
		{name: "ndnpop two over udp", chain: []string{"udp"}, cat: plain},
		{name: "ndnpop two over udp, 2 GB", large: true, chain: []string{"udp"}, cat: plain},
	}
}

// Run implements cdnbench.Scenario.
func (s Scenario) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	size, runs := int64(fullSize), o.Runs
	if o.Quick {
		size = quickSize
	}
	if runs == 0 {
		if runs = defaultRuns; o.Quick {
			runs = 1
		}
	}
	ndnd, err := peer.Ndnd(ctx, o.Cache)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ndnpop-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{o: o, ndnd: ndnd, dir: dir}
	large := int64(0) // a small object shows starting up, and one is enough to see that it runs
	if !o.Quick {
		large = largeSize
	}
	for i, n := range []int64{size, large} {
		if n == 0 {
			continue
		}
		b.objects[i] = object{file: filepath.Join(dir, fmt.Sprintf("object%d", i)), size: n}
		if b.objects[i].want, err = writeObject(b.objects[i].file, o.Seed, n); err != nil {
			return nil, err
		}
	}
	r := &cdnbench.Result{Scenario: s.Name(), Seed: o.Seed, Runs: runs, Environment: cdnbench.Environment()}
	r.Environment["object"] = fmt.Sprintf("%d bytes in segments of %d", size, segmentSize)
	r.Environment["ndnd"] = peer.NdndVersion
	// The first run checks the bytes. Run 0 warms the machine up and is not counted;
	// nobody compares the figures of a small object. The arms take turns, so that
	// drift of the machine meets all of them.
	first := 0
	if o.Quick {
		first = 1
	}
	for run := first; run <= runs; run++ {
		for _, a := range arms() {
			if b.object(a).size == 0 {
				continue
			}
			m, err := b.measure(ctx, a, run == first)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				// A transfer that a program did not manage is a result.
				fmt.Fprintf(o.Log, "%s, run %d: %v\n", a.name, run, err)
				if run > 0 {
					r.Add(run, a.name, "failed", 1)
				}
				continue
			}
			o.Did("%s, run %d: %.0f Mbit/s, %.2f CPU s/GB", a.name, run, m["goodput_mbps"], m["cpu_s_per_gb"])
			if run > 0 {
				for _, k := range metrics {
					if v, ok := m[k]; ok {
						r.Add(run, a.name, k, v)
					}
				}
			}
		}
	}
	measure := fullMeasure
	if o.Quick {
		measure = quickMeasure
	}
	for run := range runs {
		if err := b.measurePackets(ctx, r, run+1, measure); err != nil {
			return nil, err
		}
	}
	r.Question = "How fast does an object cross one and two forwarders on this machine, and what does it cost in processor time and memory?"
	r.Setup = "All processes share the machine's processors. Forwarders, producer and consumer are started afresh for each run; the arms take turns, so that a drift of the machine meets all of them. " +
		"ndnd segments and signs the whole object before it registers, and its consumer verifies nothing; ndnpop signs each segment when it is asked for, which is part of the measured time. " +
		"The consumer's output is discarded. Time to first byte counts from the start of the consumer's process. " +
		"Packet rates: a load on two UDP sockets, in a process of its own, asks for one-segment objects, a window of them at a time, through one forwarder; beside it, through a relay that has the forwarder's sockets and batches and only copies. " +
		"Delays are those of a second load, which offers both devices the same rate, for 100-byte Data half of the 400,000 pairs a second that are the aim: ten Interests every 50 µs, whatever comes back, and each delay counts from when its Interest was due."
	r.Summarise()
	plot(r)
	if !o.Quick { // a small object shows starting up, not the data plane
		expect(r)
		expectPackets(r)
	}
	return r, nil
}

// plot draws goodput and processor time of all arms.
func plot(r *cdnbench.Result) {
	for _, m := range []struct{ metric, caption, label string }{
		{"goodput_mbps", "Goodput over the consumer's whole run.", "Mbit/s"},
		{"cpu_s_per_gb", "Processor time of all processes for a gigabyte.", "s/GB"},
	} {
		p := cdnbench.Plot{Name: m.metric, Caption: m.caption + " Medians.", YLabel: m.label, BarLabels: []string{"unix", "unix, cached", "two over tcp", "two over udp"}}
		for _, who := range []string{"ndnd", "ndnpop"} {
			set := cdnbench.BarSet{Name: who}
			for _, way := range p.BarLabels {
				set.Values = append(set.Values, r.Arms[who+" "+way][m.metric].Median)
			}
			p.Bars = append(p.Bars, set)
		}
		r.Plots = append(r.Plots, p)
	}
}

// expect holds the results against what the project promises.
func expect(r *cdnbench.Result) {
	ratio := func(a, b, metric string) float64 {
		return r.Arms[a][metric].Median / r.Arms[b][metric].Median
	}
	r.Expect("goodput over Unix, ndnpop to ndnd", "at least 2.5 times, signing while it serves",
		ratio("ndnpop unix", "ndnd unix", "goodput_mbps"), 2.5, math.Inf(1))
	r.Expect("CPU per GB over Unix, ndnpop to ndnd", "no more than half",
		ratio("ndnpop unix", "ndnd unix", "cpu_s_per_gb"), math.Inf(-1), 0.5)
	r.Expect("goodput of two forwarders over UDP, ndnpop to ndnd", "at least 4 times",
		ratio("ndnpop two over udp", "ndnd two over udp", "goodput_mbps"), 4, math.Inf(1))
	r.Expect("goodput of two ndnpop over UDP, 2 GB to 200 MB", "no slower in the long run: at least 0.9",
		ratio("ndnpop two over udp, 2 GB", "ndnpop two over udp", "goodput_mbps"), 0.9, math.Inf(1))
	r.Expect("CPU per GB over Unix, ndnpop, 2 GB", "at most 2.6 s, all processes, signing while it serves",
		r.Arms["ndnpop unix, 2 GB"]["cpu_s_per_gb"].Median, math.Inf(-1), 2.6)
	r.Expect("CPU per GB from the content store, ndnpop, 2 GB", "at most 1.3 s, which is 12 Gbit/s of two processors",
		r.Arms["ndnpop unix, cached, 2 GB"]["cpu_s_per_gb"].Median, math.Inf(-1), 1.3)
	r.Expect("datagrams lost to full socket buffers, two ndnpop over UDP", "none",
		r.Arms["ndnpop two over udp"]["udp_buffer_errors"].Max, math.Inf(-1), 0)
}

var metrics = []string{
	"goodput_mbps", "packets_per_s", "ttfb_ms", "cpu_s_per_gb", "forwarder_cpu_s_per_gb", "put_cpu_s_per_gb",
	"cat_cpu_s_per_gb", "forwarder_rss_mb", "put_rss_mb", "cat_rss_mb", "udp_buffer_errors",
}

func writeObject(path string, seed uint64, size int64) (sum [32]byte, err error) {
	f, err := os.Create(path)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8(key), size)
	return [32]byte(h.Sum(nil)), errors.Join(err, f.Close())
}

// object is what is moved.
type object struct {
	file string
	size int64
	want [32]byte
}

type bench struct {
	o       cdnbench.Options
	ndnd    string
	dir     string
	objects [2]object // the usual and the large one
}

func (b *bench) object(a arm) *object {
	if a.large {
		return &b.objects[1]
	}
	return &b.objects[0]
}

// measure makes a fresh chain and one transfer over it.
func (b *bench) measure(ctx context.Context, a arm, check bool) (_ map[string]float64, err error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c, err := b.newChain(ctx, dir, a)
	if c != nil {
		defer c.stop()
	}
	if err != nil {
		return nil, err
	}
	if a.cached {
		if _, err := b.fetch(ctx, c, a, io.Discard); err != nil {
			return nil, fmt.Errorf("filling the cache: %w", err)
		}
	}
	if check {
		h := sha256.New()
		if _, err := b.fetch(ctx, c, a, h); err != nil {
			return nil, err
		}
		if !bytes.Equal(h.Sum(nil), b.object(a).want[:]) {
			return nil, errors.New("the bytes that arrived are not those of the object")
		}
		if !a.cached {
			return map[string]float64{}, nil // the content store has some of it now
		}
	}
	before, err := c.usage()
	if err != nil {
		return nil, err
	}
	lost, err := peer.UDPBufferErrors()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	cat, err := b.fetch(ctx, c, a, nil)
	elapsed := time.Since(begin).Seconds()
	if err != nil {
		return nil, err
	}
	lostAfter, err := peer.UDPBufferErrors()
	if err != nil {
		return nil, err
	}
	after, err := c.usage()
	if err != nil {
		return nil, err
	}
	u, err := cat.Final()
	if err != nil {
		return nil, err
	}
	size := float64(b.object(a).size)
	gb := size / 1e9
	fw := (after.fw.CPU - before.fw.CPU).Seconds() / gb
	put := (after.put.CPU - before.put.CPU).Seconds() / gb
	ct := u.CPU.Seconds() / gb
	m := map[string]float64{
		"goodput_mbps":           size * 8 / elapsed / 1e6,
		"packets_per_s":          math.Ceil(size/segmentSize) / elapsed,
		"cpu_s_per_gb":           fw + put + ct,
		"forwarder_cpu_s_per_gb": fw,
		"put_cpu_s_per_gb":       put,
		"cat_cpu_s_per_gb":       ct,
		"forwarder_rss_mb":       float64(after.fw.PeakRSS) / 1e6,
		"put_rss_mb":             float64(after.put.PeakRSS) / 1e6,
		"cat_rss_mb":             float64(u.PeakRSS) / 1e6,
		"udp_buffer_errors":      float64(lostAfter - lost),
	}
	if ttfb, err := b.firstByte(ctx, c, a); err != nil {
		fmt.Fprintf(b.o.Log, "%s: %v\n", a.name, err)
	} else {
		m["ttfb_ms"] = ttfb * 1e3
	}
	return m, nil
}

// catLimit bounds one fetch; ndnd's retries with nothing lost take seconds.
const catLimit = 2 * time.Minute

// fetch fetches the object; nil discards it in the kernel, where it costs
// nobody anything.
func (b *bench) fetch(ctx context.Context, c *chain, a arm, out io.Writer) (*peer.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, catLimit)
	defer cancel()
	if out == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		out = null
	}
	p, err := peer.Start(c.dir, "cat", c.consumerEnv(), nil, out, b.catCommand(a)...)
	if err != nil {
		return nil, err
	}
	return p, p.Wait(ctx)
}

func (b *bench) catCommand(a arm) []string {
	if a.ndnd {
		return []string{b.ndnd, "cat", objectName}
	}
	return append([]string{b.o.Ndnpop, "cat", objectName, "--progress", "never", "-q"}, a.cat...)
}

// firstByte measures the time from the start of the consumer to its first
// byte of output, the start of the program included.
func (b *bench) firstByte(ctx context.Context, c *chain, a arm) (float64, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	begin := time.Now()
	p, err := peer.Start(c.dir, "first", c.consumerEnv(), nil, w, b.catCommand(a)...)
	w.Close() // the child has its own
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := r.SetReadDeadline(begin.Add(30 * time.Second)); err != nil {
		return 0, err
	}
	var one [1]byte
	if _, err := io.ReadFull(r, one[:]); err != nil {
		return 0, fmt.Errorf("first byte: %w", err)
	}
	return time.Since(begin).Seconds(), nil
}
