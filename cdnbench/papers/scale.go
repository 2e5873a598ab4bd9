package papers

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/consumer"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

// Scale is scale: a tree of a thousand forwarders under a Zipf workload.
type Scale struct{ tiny bool }

// Name implements cdnbench.Scenario.
func (Scale) Name() string { return "scale" }

// About implements cdnbench.Scenario.
func (Scale) About() string {
	return "what a tree of 1,000 forwarders keeps from the origin under a Zipf workload, against caches of whole files"
}

// The tree: an origin, 9 regional caches, 10 edges each, 10 clients each.
const (
	scalePayload  = 2000
	scaleMedian   = 20_000 // bytes of an object
	scaleSigma    = 1
	scaleZipf     = 0.9
	edgeShare     = 0.01 // of the catalogue's bytes, for each edge
	regionalShare = 0.05
	// Half of the requests in the arm with parts want a quarter of the object,
	// anywhere in it.
	partShare, partSize = 0.5, 4
)

type scalePlan struct {
	fanout  []int
	objects int
	rate    float64 // requests per second
	length  time.Duration
}

// scaleArm is what the clients ask for.
type scaleArm struct {
	name     string
	parts    bool // some want a part only
	discover bool // they ask for the newest version
}

func scaleArms() []scaleArm {
	return []scaleArm{
		{"whole objects", false, false},
		{"parts", true, false},
		{"whole objects, newest version", false, true},
	}
}

// scaleRun is one run: the network and what was asked.
type scaleRun struct {
	scalePlan
	arm     scaleArm
	net     *sim.Network
	levels  [][]*sim.Node
	sizes   []int64
	total   int64 // bytes of the catalogue
	traffic *sim.Traffic
	wanted  []int64 // bytes, by request
	origin  []float64
	times   []float64
}

func newScaleRun(p scalePlan, arm scaleArm, seed uint64) *scaleRun {
	r := &scaleRun{scalePlan: p, arm: arm, net: sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin(), Batch: true})}
	size := sim.LogNormal(seed, scaleMedian, scaleSigma)
	for i := range p.objects {
		// Whole segments, so that all Data have the same size.
		r.sizes = append(r.sizes, (size(i)+scalePayload-1)/scalePayload*scalePayload)
		r.total += r.sizes[i]
	}
	capacity := []float64{0, regionalShare, edgeShare, 0}
	link := func(level int) sim.LinkConfig {
		rate := []int64{0, 10e9, 1e9, 50e6}[level]
		delay := []time.Duration{0, 10 * ms, 5 * ms, 5 * ms}[level]
		return sim.LinkConfig{Params: sim.Params{Rate: rate, Delay: delay, Queue: 4 << 20}}
	}
	r.levels = r.net.Tree(sim.TreeConfig{
		Fanout: p.fanout,
		Node: func(level int) (c sim.NodeConfig) {
			// By number and not by bytes: a store takes its memory in pages, and
			// one of a few hundred kilobytes would be half empty.
			if capacity[level] > 0 {
				bytes := capacity[level] * float64(r.total)
				c.Forwarder.CS = table.CSConfig{Capacity: int64(4 * bytes), MaxPackets: int(bytes / scalePayload)}
			}
			return c
		},
		Link: link,
	})
	r.net.AddProducer(r.levels[0][0], sim.ProducerConfig{
		Prefix: "/cdn", Segment: scalePayload, Freshness: time.Hour,
		Sizes: sim.RankSizes(p.objects, func(rank int) int64 { return r.sizes[rank] }),
	})
	rng := rand.New(rand.NewPCG(seed, 0x7363616c65))
	r.traffic = r.net.AddWorkload(sim.Workload{
		Clients: r.levels[3], Prefix: "/cdn", Objects: p.objects, Zipf: scaleZipf,
		Rate: p.rate, Until: p.length,
		Fetch: sim.FetchConfig{Consumer: func(c *consumer.Config) { r.ask(c, rng) }},
	})
	return r
}

// ask makes a request what the arm wants, and notes it.
func (r *scaleRun) ask(c *consumer.Config, rng *rand.Rand) {
	last, _ := c.Name.At(-1)
	rank, _ := strconv.Atoi(string(last.Value)) // the workload named it
	size := r.sizes[rank]
	part, offset := rng.Float64() < partShare, rng.Float64()
	if !r.arm.discover {
		c.Name = c.Name.Clone().AppendNumber(ndn.TypeVersion, 1)
	}
	// In whole segments: clients that know the version know its size, too.
	segments := size / scalePayload
	if !r.arm.discover {
		c.Range = consumer.Range{Kind: consumer.RangeSegments, To: uint64(segments) - 1}
	}
	if r.arm.parts && part && segments >= partSize {
		want := segments / partSize
		from := int64(offset * float64(segments-want))
		c.Range = consumer.Range{Kind: consumer.RangeSegments, From: uint64(from), To: uint64(from + want - 1)}
		size = want * scalePayload
	}
	r.wanted = append(r.wanted, size)
}

// fromOrigin is the bytes that left the origin, headers included.
func (r *scaleRun) fromOrigin() (bytes float64) {
	root := r.levels[0][0]
	for _, l := range root.Links() {
		bytes += float64(l.From(root).Counters().OutBytes)
	}
	return bytes
}

func (r *scaleRun) run() (map[string]float64, error) {
	r.net.Every(r.length/100, func() bool {
		r.times = append(r.times, r.net.Now().Seconds())
		r.origin = append(r.origin, r.fromOrigin()/1e6)
		return r.net.Now() < r.length
	})
	if err := r.net.Run(r.length + 10*time.Second); err != nil {
		return nil, err
	}
	m := map[string]float64{"nodes": float64(len(r.net.Nodes())), "requests": float64(len(r.traffic.Requests)), "failed": 0}
	var wanted, got int64
	var firsts []float64
	for i, q := range r.traffic.Requests {
		if !q.Done || q.Err != nil {
			m["failed"]++
			continue
		}
		wanted, got = wanted+r.wanted[i], got+int64(q.Bytes)
		firsts = append(firsts, 1e3*q.TTFB.Seconds())
	}
	m["delivered_mb"], m["delivered_to_wanted"] = float64(got)/1e6, float64(got)/float64(max(1, wanted))
	m["first_byte_ms"] = median(firsts)
	var asked, answered float64
	for level, name := range []string{1: "regional", 2: "edge"} {
		var hits, misses, joined float64
		for _, n := range r.levels[level] {
			i, c := n.Shard().CSInfo(), n.Counters()
			hits, misses, joined = hits+float64(i.Hits), misses+float64(i.Misses), joined+float64(c.Aggregated)
		}
		m[name+"_hits"] = hits / max(1, hits+misses)
		m[name+"_joined"] = joined / max(1, hits+misses)
		answered += hits + joined
		if level == 2 {
			asked = hits + misses
		}
	}
	for _, p := range r.net.Producers() {
		c := p.Counters()
		answered += float64(c.Segments + c.Metadata + c.Nacks)
	}
	m["answered_to_asked"] = answered / max(1, asked)
	m["origin_mb"] = r.fromOrigin() / 1e6
	m["origin_share"] = r.fromOrigin() / float64(max(1, got))
	r.files(m)
	return m, nil
}

// files replays the requests over caches of whole files of the same capacities.
func (r *scaleRun) files(m map[string]float64) {
	var regional, edges []*fileCache
	for range r.levels[1] {
		regional = append(regional, newFileCache(int64(regionalShare*float64(r.total)), r.sizes, nil))
	}
	for i := range r.levels[2] {
		edges = append(edges, newFileCache(int64(edgeShare*float64(r.total)), r.sizes, regional[i/r.fanout[1]]))
	}
	edgeOf := map[*sim.Node]int{}
	for i, n := range r.levels[3] {
		edgeOf[n] = i / r.fanout[2]
	}
	var wanted int64
	for i, q := range r.traffic.Requests {
		edges[edgeOf[q.Client]].get(q.Object, r.wanted[i])
		wanted += r.wanted[i]
	}
	var sent int64
	for _, c := range regional {
		sent += c.fetched
	}
	m["files_edge_hits"], m["files_regional_hits"] = share(edges), share(regional)
	m["files_origin_mb"], m["files_origin_share"] = float64(sent)/1e6, float64(sent)/float64(max(1, wanted))
	m["origin_to_files"] = m["origin_mb"] / m["files_origin_mb"]
}

var scaleMetrics = []string{
	"nodes", "requests", "failed", "delivered_mb", "delivered_to_wanted", "first_byte_ms", "answered_to_asked",
	"edge_hits", "edge_joined", "regional_hits", "regional_joined", "origin_mb", "origin_share",
	"files_edge_hits", "files_regional_hits", "files_origin_mb", "files_origin_share", "origin_to_files",
}

// Run implements cdnbench.Scenario.
func (s Scale) Run(ctx context.Context, o cdnbench.Options) (*cdnbench.Result, error) {
	r, runs := begin(s.Name(), o, 5, 1)
	plan := scalePlan{fanout: []int{9, 10, 10}, objects: 2000, rate: 300, length: 60 * time.Second}
	if o.Quick {
		plan.length = 20 * time.Second
	}
	if s.tiny {
		plan = scalePlan{fanout: []int{2, 2, 2}, objects: 50, rate: 20, length: 5 * time.Second}
	}
	var all []*values
	var jobs []job
	arms := scaleArms()
	kept := make([]*scaleRun, len(arms))
	for i, a := range arms {
		v := &values{a.name, make([]map[string]float64, runs)}
		all = append(all, v)
		for run := range runs {
			jobs = append(jobs, job{v.arm, run, func(seed uint64) error {
				x := newScaleRun(plan, a, seed)
				m, err := x.run()
				v.metrics[run] = m
				if run == 0 {
					kept[i] = &scaleRun{times: x.times, origin: x.origin, total: x.total}
				}
				return err
			}})
		}
	}
	if err := runJobs(ctx, o, jobs); err != nil {
		return nil, err
	}
	collect(r, all, scaleMetrics...)
	f := scaleFigures{r}
	f.text(plan, float64(kept[0].total)/1e6)
	f.plots(kept)
	f.expect()
	return r, nil
}
