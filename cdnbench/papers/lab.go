package papers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/face/lp"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

const (
	ms   = time.Millisecond
	mbit = 1e6 // bit/s
)

// bottleneck is the link that all flows of an experiment share. It carries
// Data one way and Interests the other.
type bottleneck struct {
	rate    int64 // bit/s
	buffer  int64 // bytes for Data
	payload int   // bytes per segment
	loss    float64
	marking bool
	size    int64 // of each object; 0: more than can be fetched
	// bin is the interval of the samples; 0 takes 100 ms.
	bin time.Duration
}

// flow is one fetch over the bottleneck.
type flow struct {
	controller string
	options    map[string]string
	rtt        time.Duration // without queue
	cap        float64       // bit/s, 0: none
	start      time.Duration
	// noise adds a random delay with a mean of 1 % of the RTT.
	noise bool
	bin   time.Duration // of the flow's own samples; 0 takes the bottleneck's
}

// lab is a network with a bottleneck and its flows.
type lab struct {
	bottleneck
	net     *sim.Network
	link    *sim.Link
	fetches []*sim.Fetch
	flows   []flow
	rtts    []*rttLog
	queue   *sim.LinkProbe

	warm     time.Duration
	segments []uint64 // of each flow at the end of the warm-up
	bytes    int64    // that had passed the bottleneck then
}

// rttLog keeps the RTT samples, in milliseconds, from a time on.
type rttLog struct {
	from time.Duration
	ms   []float64
}

// Trace implements consumer.Tracer.
func (l *rttLog) Trace(e *consumer.TraceEvent) {
	if e.Kind == consumer.TraceData && e.RTT > 0 && e.Now.Sub(sim.Epoch) >= l.from {
		l.ms = append(l.ms, e.RTT.Seconds()*1e3)
	}
}

// newLab builds two forwarders and the bottleneck between them. The delay of
// each flow is that of its own link to the first one, half of it each way.
func newLab(b bottleneck, seed uint64, warm time.Duration, flows []flow) *lab {
	l := &lab{bottleneck: b, net: sim.New(sim.Config{Seed: seed, Strategies: strategies.Builtin()}), flows: flows, warm: warm}
	near, far := l.net.AddNode("near", sim.NodeConfig{}), l.net.AddNode("far", sim.NodeConfig{})
	c := sim.LinkConfig{
		Params: sim.Params{Rate: b.rate},
		Back:   &sim.Params{Rate: b.rate, Queue: b.buffer, Loss: b.loss},
	}
	if b.marking {
		c.Marking = &lp.Marking{}
	}
	l.link = l.net.Connect(near, far, c)
	size := b.size
	if size == 0 {
		size = 1 << 40
	}
	l.net.AddProducer(far, sim.ProducerConfig{Prefix: "/far", Size: size, Segment: b.payload})
	bin := b.bin
	if bin == 0 {
		bin = 100 * ms
	}
	l.queue = l.link.BA.Probe(min(bin, 10*ms))
	for i, f := range flows {
		access := sim.Params{Delay: f.rtt / 2}
		if f.noise {
			access.Noise, access.Reorder = f.rtt/200, true
		}
		rec := &rttLog{from: warm}
		l.rtts = append(l.rtts, rec)
		flowBin := f.bin
		if flowBin == 0 {
			flowBin = bin
		}
		l.fetches = append(l.fetches, l.net.AddFetch(near, sim.FetchConfig{
			Name: fmt.Sprintf("/far/object%d", i), Start: f.start, Controller: f.controller,
			Params: cc.Params{Options: f.options, MaxRate: f.cap / 8},
			Access: access, Probe: flowBin, Tracer: rec,
			// A small full queue can shut a flow out for long; that is a figure
			// and not the end of the experiment.
			Consumer: func(c *consumer.Config) { c.Retries = -1 },
		}))
	}
	return l
}

// run runs the warm-up and then until the end.
func (l *lab) run(end time.Duration) error {
	if err := l.net.Run(l.warm); err != nil {
		return err
	}
	for _, f := range l.fetches {
		l.segments = append(l.segments, f.Stats().Segments)
	}
	l.bytes = l.link.BA.Counters().OutBytes
	if err := l.net.Run(end); err != nil {
		return err
	}
	for _, f := range l.fetches {
		if err := f.Err(); err != nil {
			return fmt.Errorf("%s: %w", f.Node().Name(), err)
		}
	}
	return nil
}

// finish runs until all fetches are done and returns how long the last took.
func (l *lab) finish(limit time.Duration) (time.Duration, error) {
	err := l.net.RunUntil(limit, func() bool {
		return !slices.ContainsFunc(l.fetches, func(f *sim.Fetch) bool { return !f.Done() })
	})
	var longest time.Duration
	for _, f := range l.fetches {
		if f.Err() != nil || !f.Done() {
			return 0, errors.Join(err, f.Err(), fmt.Errorf("a fetch has not ended after %v", limit))
		}
		longest = max(longest, f.Elapsed())
	}
	return longest, err
}

// rates are the payload rates of the flows after the warm-up, in Mbit/s.
func (l *lab) rates() []float64 {
	var r []float64
	for i, f := range l.fetches {
		r = append(r, float64(f.Stats().Segments-l.segments[i])*float64(l.payload)*8/(l.net.Now()-l.warm).Seconds()/mbit)
	}
	return r
}

// utilisation is the share of the bottleneck that Data used after the warm-up,
// in bytes on the wire.
func (l *lab) utilisation() float64 {
	return float64(l.link.BA.Counters().OutBytes-l.bytes) * 8 / (l.net.Now() - l.warm).Seconds() / float64(l.rate)
}

// wireShare is the mean of wire bytes per byte of payload.
func (l *lab) wireShare() float64 {
	c := l.link.BA.Counters()
	return float64(c.OutBytes) / float64(max(1, c.OutPackets)) / float64(l.payload)
}

// resent is the share of repeated Interests of the whole run.
func (l *lab) resent() float64 {
	var sent, again uint64
	for _, f := range l.fetches {
		s := f.Stats()
		sent, again = sent+s.Interests, again+s.Retransmissions
	}
	return float64(again) / float64(max(1, sent))
}

// queueDelay is the mean time that the queue would take to empty, after the
// warm-up, in milliseconds.
func (l *lab) queueDelay() float64 { return l.queueBytes() * 8 / float64(l.rate) * 1e3 }

func (l *lab) queueBytes() float64 {
	var sum, n float64
	for _, s := range l.queue.Samples() {
		if s.At > l.warm {
			sum, n = sum+float64(s.Queue), n+1
		}
	}
	return sum / max(1, n)
}

// drops of the bottleneck's queue after a time.
func (l *lab) drops(after time.Duration) (n int64) {
	for _, s := range l.queue.Samples() {
		if s.At > after {
			n += s.Drops
		}
	}
	return n
}

// sending is the variation of a flow's rate of Interests after the warm-up.
func (l *lab) sending(i int) float64 {
	var v []float64
	for _, s := range l.fetches[i].Samples() {
		if s.At > l.warm {
			v = append(v, float64(s.Sent))
		}
	}
	return variation(v)
}

// jain is Jain's index: 1 when all are equal, 1/n when one has everything.
func jain(v []float64) float64 {
	var sum, squares float64
	for _, x := range v {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(v)) * squares)
}

// mean of values; NaN of none.
func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// variation is the coefficient of variation: the deviation over the mean.
func variation(v []float64) float64 {
	m, squares := mean(v), 0.0
	for _, x := range v {
		squares += (x - m) * (x - m)
	}
	return math.Sqrt(squares/float64(len(v))) / m
}

// job is one run of one arm. Its value is kept by fn itself.
type job struct {
	arm string
	run int
	fn  func(seed uint64) error
}

// runJobs runs jobs on all processors. Runs with the same number have the same
// seed, whatever the arm.
func runJobs(ctx context.Context, o cdnbench.Options, jobs []job) error {
	errs := make([]error, len(jobs))
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex // of the log
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				j := jobs[i]
				if err := j.fn(o.Seed + uint64(j.run)); err != nil {
					errs[i] = fmt.Errorf("%s, run %d: %w", j.arm, j.run, err)
					return
				}
				mu.Lock()
				o.Did("%s, run %d", j.arm, j.run)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(ctx.Err(), errors.Join(errs...))
}

// begin is what all scenarios have in common.
func begin(name string, o cdnbench.Options, full, quick int) (*cdnbench.Result, int) {
	runs := o.Runs
	if runs == 0 {
		if runs = full; o.Quick {
			runs = quick
		}
	}
	return &cdnbench.Result{
		Scenario: name, Seed: o.Seed, Runs: runs, Reduced: o.Quick, Environment: cdnbench.Environment(),
		Exact: !o.Quick && o.Runs == 0 && o.Seed == cdnbench.DefaultSeed,
	}, runs
}

// average is the mean of a metric over the runs of an arm.
func average(r *cdnbench.Result, arm, metric string) float64 { return mean(r.Values(arm, metric)) }

var inf = math.Inf(1)
