package sim

import (
	"fmt"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// FetchConfig describes a fetch of one object.
type FetchConfig struct {
	Name string
	// Start is when it begins.
	Start time.Duration
	// Controller is the name of the congestion control; empty is cubic.
	Controller string
	// Params of the controller; a zero Seed is filled in.
	Params cc.Params
	// Consumer, if set, changes the configuration of the fetch core.
	Consumer func(*consumer.Config)
	// Access is the link to the forwarder, in both directions.
	Access Params
	// Probe, if positive, records samples at this interval.
	Probe time.Duration
	// Tracer, if set, sees the core's events.
	Tracer consumer.Tracer
	// OnPiece, if set, gets the content in its order.
	OnPiece func(*consumer.Piece)
	// OnDone, if set, is called when the fetch has ended.
	OnDone func(*Fetch)
}

// Fetch is a consumer on a node.
type Fetch struct {
	net   *Network
	node  *Node
	cfg   FetchConfig
	index uint64
	core  *consumer.Fetch
	ctrl  cc.Controller
	port  *port
	id    int32
	ended bool
	err   error

	tracing  flowTracer
	samples  []FlowSample
	arrivals arrivals
}

// AddFetch puts a consumer on a node.
func (n *Network) AddFetch(node *Node, c FetchConfig) *Fetch {
	f := n.newFetch(node, c, uint64(len(n.fetches)))
	n.fetches = append(n.fetches, f)
	n.At(c.Start, f.begin)
	return f
}

func (n *Network) newFetch(node *Node, c FetchConfig, index uint64) *Fetch {
	if c.Controller == "" {
		c.Controller = "cubic"
	}
	return &Fetch{net: n, node: node, cfg: c, index: index, id: noActor}
}

func (f *Fetch) begin() {
	n := f.net
	if f.ended {
		return
	}
	if f.node.dead {
		f.err = ErrKilled
		f.end()
		return
	}
	name, err := ndn.ParseName(f.cfg.Name)
	if err != nil {
		n.fail(err)
		return
	}
	cfg := consumer.DefaultConfig(name)
	cfg.Seed = n.seed(seedFetch, f.index)
	params := f.cfg.Params
	if params.Seed == 0 {
		params.Seed = n.seed(seedController, f.index)
	}
	if f.cfg.Consumer != nil {
		f.cfg.Consumer(&cfg)
	}
	if cfg.MultiSource && cfg.NewController == nil {
		further := params
		cfg.NewController = func() (cc.Controller, error) {
			further.Seed++
			return n.controllers.New(f.cfg.Controller, further)
		}
	}
	if f.ctrl, err = n.controllers.New(f.cfg.Controller, params); err != nil {
		n.fail(err)
		return
	}
	f.core, err = consumer.New(cfg, f.ctrl, (*sink)(f), f.tracer(), n.now)
	if err != nil {
		n.fail(fmt.Errorf("fetch of %s: %w", f.cfg.Name, err))
		return
	}
	f.port = n.attach(f, f.node, f.cfg.Access)
	f.id = f.node.zone.join(f)
	n.note("fetch", f.cfg.Name, "begins")
	if f.cfg.Probe > 0 {
		f.probe(f.cfg.Probe)
	}
	f.pump(n.now)
	f.node.zone.wake(f.id, f.deadline(n.now))
}

func (f *Fetch) receive(now ndn.Time, at *port, frame []byte) {
	if f.ended || !at.parse(now, frame) {
		return
	}
	p := &f.net.packet
	switch p.Kind {
	case ndn.KindData:
		f.core.Data(now, p)
	case ndn.KindNack:
		f.core.Nack(now, p)
	}
	f.pump(now)
	if !f.ended {
		f.node.zone.wake(f.id, f.deadline(now))
	}
}

func (f *Fetch) gaveUp(now ndn.Time, _ *port, interest []byte) {
	var i ndn.Interest
	if i.Parse(interest) == nil {
		f.core.LinkGaveUp(now, &i)
	}
}

// fire implements actor.
func (f *Fetch) fire(now ndn.Time) ndn.Time {
	if f.ended {
		return ndn.Never
	}
	if f.core.Deadline() <= now {
		f.core.Tick(now)
		f.pump(now)
	}
	return f.deadline(now)
}

// deadline is the core's, and later than now: a driver on sockets does not
// come back at once either.
func (f *Fetch) deadline(now ndn.Time) ndn.Time { return max(f.core.Deadline(), now+1) }

// pump sends what may leave.
func (f *Fetch) pump(now ndn.Time) {
	n := f.net
	for {
		b, ok := f.core.Next(now, n.buf[:0])
		n.buf = b
		if !ok {
			break
		}
		f.port.send(now, b, f.core.Fields())
	}
	if f.core.Done() && !f.ended {
		f.err = f.core.Err()
		f.end()
	}
}

// end takes the fetch off the network.
func (f *Fetch) end() {
	n := f.net
	f.ended = true
	if n.trace != nil {
		what := "done"
		if f.err != nil {
			what = f.err.Error()
		}
		n.note("fetch", f.cfg.Name, what)
	}
	if f.port != nil {
		z := f.node.zone
		z.leave(f.id)
		z.at(n.now, func() { n.detach(f.port) })
	}
	if f.cfg.OnDone != nil {
		f.cfg.OnDone(f)
	}
}

// abort ends the fetch from outside.
func (f *Fetch) abort(err error) {
	if f.ended {
		return
	}
	f.err = err
	if f.core != nil {
		f.core.Fail(f.net.now, err)
	}
	f.end()
}

// Node that the fetch is on.
func (f *Fetch) Node() *Node { return f.node }

// Done reports whether the fetch has ended, well or not.
func (f *Fetch) Done() bool { return f.ended }

// Err is why it failed; nil otherwise.
func (f *Fetch) Err() error { return f.err }

// Controller is the fetch's congestion control; nil before it began.
func (f *Fetch) Controller() cc.Controller { return f.ctrl }

// Switches are the fetch's changes of the replica.
func (f *Fetch) Switches() []consumer.ReplicaSwitch {
	if f.core == nil {
		return nil
	}
	return f.core.Switches()
}

// Replicas is what each replica did for the fetch.
func (f *Fetch) Replicas() []consumer.ReplicaStats {
	if f.core == nil {
		return nil
	}
	return f.core.Replicas()
}

// Stats are the core's; zero before the fetch began.
func (f *Fetch) Stats() consumer.Stats {
	if f.core == nil {
		return consumer.Stats{}
	}
	return f.core.Stats()
}

// Elapsed is how long the fetch took, or has taken so far.
func (f *Fetch) Elapsed() time.Duration {
	s := f.Stats()
	switch {
	case f.core == nil:
		return 0
	case s.Finished.IsSet():
		return s.Finished.Sub(s.Started)
	}
	return f.net.now.Sub(s.Started)
}

// sink is the Fetch as its core's Sink.
type sink Fetch

func (s *sink) Metadata(*ndn.Data) error { return nil }

func (s *sink) Object(*consumer.Object) (consumer.Resume, error) { return consumer.Resume{}, nil }

func (s *sink) Ready() bool { return true }

func (s *sink) Deliver(p *consumer.Piece) {
	if s.cfg.OnPiece != nil {
		s.cfg.OnPiece(p)
	}
}
