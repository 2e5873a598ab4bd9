package sim

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/sim/line"
	"ndnpop/strategy"
)

// Epoch is the time that the cores are told at the start of a run. All other
// times here are relative to it.
const Epoch = ndn.Time(time.Second)

// ErrSetup is wrapped by the errors about what a network is made of.
var ErrSetup = errors.New("sim: bad network")

// ErrBatch: a function that was called for one node of a network in batches
// tried to change the network.
var ErrBatch = errors.New("sim: At from within a callback needs a network without Batch")

// ErrStuck: a million events passed without time moving on.
var ErrStuck = errors.New("sim: time stands still")

// Config of a Network.
type Config struct {
	Seed uint64
	// Strategies to choose from; at least one.
	Strategies []strategy.Factory
	// Strategy of nodes that name none: a short name, or a full one as NFD
	// writes it. Empty is best-route or, when that is not among Strategies,
	// the first.
	Strategy string
	// Controllers to choose from; nil is cc.Builtin.
	Controllers []cc.Factory
	// Routing says which routes Reroute makes.
	Routing Routing
	// Trace, if set, gets every event as a line of JSON.
	Trace io.Writer
	// Batch lets every node run ahead of the others for as long as the delays
	// of the links make safe: what it works on stays in the processor's
	// caches, which makes large networks several times faster. The results
	// are those of a run without it, except for the order of what happens at
	// different nodes, and of events at the very same nanosecond. Functions
	// that the network calls meanwhile (OnDone, OnPiece, Tracer, Watch, the
	// stop of RunUntil) see the time of one node only and must not change
	// the network; those of At and Every may. It has no effect with Trace, and
	// none for the nodes at half-duplex links and at links without delay.
	Batch bool
}

// Network is nodes, links and applications in virtual time. The methods that
// build it return something usable in any case; what was wrong is kept, like
// a bufio.Scanner's error, and returned by Err and Run.
type Network struct {
	now   ndn.Time
	calls scheduler // what At and Every were given
	zones zones

	cfg         Config
	err         error
	strategies  *strategy.Set
	controllers *cc.Registry
	strategy    ndn.Name

	nodes     []*Node
	byName    map[string]*Node // only looked up
	links     []*Link
	producers []*Producer
	fetches   []*Fetch
	announced []announcement
	dirty     bool // routes are to be computed
	stale     bool // how far zones may run ahead is to be computed
	workloads uint64
	streams   uint64
	trace     *tracer
	events    uint64
	backed    bool // by huge pages

	// Memory that all share, of which one at a time has need.
	pool    line.Pool
	linkMem lp.Scratch
	nodeMem *fw.Scratch
	packet  ndn.Packet
	frames  face.Frames
	buf     []byte
}

// New makes an empty network.
func New(cfg Config) *Network {
	cfg.Batch = cfg.Batch && cfg.Trace == nil
	n := &Network{cfg: cfg, byName: make(map[string]*Node), nodeMem: fw.NewScratch()}
	n.now = Epoch
	n.calls = newScheduler(&n.now)
	n.zones.init(n)
	if cfg.Controllers == nil {
		cfg.Controllers = cc.Builtin()
	}
	var err error
	if n.controllers, err = cc.NewRegistry(cfg.Controllers...); err != nil {
		n.fail(err)
	}
	if len(cfg.Strategies) == 0 {
		n.fail(errors.New("Config.Strategies is empty"))
		return n
	}
	if n.strategies, err = strategy.NewSet(cfg.Strategies...); err != nil {
		n.fail(err)
		return n
	}
	if cfg.Strategy == "" {
		cfg.Strategy = cfg.Strategies[0].Name
		for _, f := range cfg.Strategies {
			if f.Name == "best-route" {
				cfg.Strategy = f.Name
			}
		}
	}
	n.strategy = n.strategyName(cfg.Strategy)
	if cfg.Trace != nil {
		n.trace = newTracer(n, cfg.Trace)
	}
	return n
}

// fail keeps the first error.
func (n *Network) fail(err error) {
	if n.err == nil && err != nil {
		n.err = fmt.Errorf("%w: %w", ErrSetup, err)
	}
}

// Err is the first error that building or running met.
func (n *Network) Err() error { return n.err }

// strategyName is the full name of a strategy given by its short name or its
// full one.
func (n *Network) strategyName(s string) ndn.Name {
	if n.strategies == nil {
		return nil
	}
	var name ndn.Name
	var err error
	if strings.HasPrefix(s, "/") {
		if name, err = ndn.ParseName(s); err == nil {
			_, name, err = n.strategies.Resolve(name)
		}
	} else {
		name, err = n.strategies.Name(s, nil)
	}
	n.fail(err)
	return name
}

func (n *Network) name(uri string) ndn.Name {
	name, err := ndn.ParseName(uri)
	n.fail(err)
	return name
}

// Now is the time since the start.
func (n *Network) Now() time.Duration { return n.now.Sub(Epoch) }

// Events is the number of packets that arrived at forwarders so far.
func (n *Network) Events() uint64 { return n.events }

// Nodes, in the order they were added.
func (n *Network) Nodes() []*Node { return n.nodes }

// Links, in the order they were added.
func (n *Network) Links() []*Link { return n.links }

// Fetches, in the order they were added, those of workloads not included.
func (n *Network) Fetches() []*Fetch { return n.fetches }

// Producers, in the order they were added.
func (n *Network) Producers() []*Producer { return n.producers }

// Node finds a node by name; nil if there is none.
func (n *Network) Node(name string) *Node { return n.byName[name] }

// At calls fn at a time of the run, or at once when that is past. It may
// change the network.
func (n *Network) At(at time.Duration, fn func()) {
	if n.zones.running != nil && n.cfg.Batch {
		n.fail(ErrBatch)
	}
	n.calls.at(Epoch.Add(at), fn)
}

// Each event of a network of so many nodes finds its memory cold; huge pages save
// it the way to the page tables, too. nodeMemory is what a busy node may need in
// bytes.
const (
	largeNetwork = 256
	nodeMemory   = 1 << 20
)

// Run runs until a time, inclusive, or until nothing is left to happen. It
// may be called again with a later time.
func (n *Network) Run(until time.Duration) error {
	return n.RunUntil(until, nil)
}

// step does what is next. At the same time, calls come before all else.
func (n *Network) step(end ndn.Time) bool {
	if at := n.calls.next(); at <= n.zones.next() {
		ok := n.calls.step(end)
		n.check(&n.calls)
		return ok
	}
	return n.zones.step(end)
}

// RunUntil runs until a time, or until stop, asked after every event, returns
// true.
func (n *Network) RunUntil(until time.Duration, stop func() bool) error {
	if n.err != nil {
		return n.err
	}
	if n.dirty {
		n.Reroute()
	}
	if !n.backed && len(n.nodes) >= largeNetwork {
		n.backed = true
		hugePages(len(n.nodes) * nodeMemory)
	}
	end := Epoch.Add(until)
	for n.err == nil && n.step(end) {
		if stop != nil && stop() {
			break
		}
	}
	if n.err == nil && (stop == nil || !stop()) {
		n.now = max(n.now, end)
	}
	if n.trace != nil {
		n.trace.flush()
	}
	return n.err
}

// seed derives the seed of one purpose.
func (n *Network) seed(purpose, index uint64) uint64 {
	return mix(mix(n.cfg.Seed+0x9e3779b97f4a7c15*purpose) + index)
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Purposes of random numbers.
const (
	seedNode uint64 = iota + 1
	seedFetch
	seedController
	seedService
	seedWorkload
)
