package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ndnpop/ndn"
	"ndnpop/producer"
	"ndnpop/producer/sign"
)

// DefaultSegment is the payload of a segment in bytes where a producer names
// none.
const DefaultSegment = 8000

// ProducerConfig describes a producer.
type ProducerConfig struct {
	// Prefix that it serves, of generic components.
	Prefix string
	// Size of every object in bytes: any name under the prefix is one.
	Size int64
	// Sizes, if set, gives the size of each object instead; negative: there
	// is no such object. path is the name after the prefix, valid during the
	// call.
	Sizes func(path ndn.Name) int64
	// Segment is the payload of a segment in bytes.
	Segment int
	// Store, if set, is served instead of objects made up.
	Store producer.Store
	// Freshness of the content, as producer.Config has it.
	Freshness time.Duration
	// Signer of the Data; nil is the null signature.
	Signer ndn.Signer
	// Access is the link to the forwarder, in both directions.
	Access Params
	// Cost is added to the cost of the routes that lead here.
	Cost uint64
	// NoRoutes: no other node learns a route from Reroute.
	NoRoutes bool
	// Announce puts a prefix announcement on the Data for Interests that are
	// for discovery, from which the strategy self-learning makes routes. Nobody
	// checks who signed it.
	Announce bool
}

// Producer is a responder on a node.
type Producer struct {
	net  *Network
	node *Node
	core *producer.Responder
	port *port
	id   int32
}

// AddProducer puts a producer on a node, which gets a route to it. Other nodes
// get theirs when Run begins, or from Reroute.
func (n *Network) AddProducer(node *Node, c ProducerConfig) *Producer {
	p := &Producer{net: n, node: node}
	n.producers = append(n.producers, p)
	prefix := n.name(c.Prefix)
	cfg := producer.Config{Prefix: prefix, Freshness: c.Freshness, Signer: c.Signer}
	if cfg.Signer == nil {
		cfg.Signer = sign.Null{}
	}
	if c.Announce {
		var err error
		cfg.Announcement, err = producer.NewAnnouncement(prefix, 1, time.Hour, producer.Validity{}, cfg.Signer)
		n.fail(err)
	}
	store := c.Store
	if store == nil {
		if c.Segment == 0 {
			c.Segment = DefaultSegment
		}
		most, err := producer.MaxSegmentSize(prefix, cfg.Signer)
		n.fail(err)
		if c.Segment < 1 || c.Segment > most {
			n.fail(fmt.Errorf("producer of %s: segments of %d bytes: want 1 to %d", prefix, c.Segment, most))
			c.Segment = 1
		}
		store = newStore(&c)
	}
	p.port = n.attach(p, node, c.Access)
	p.id = node.zone.join(p)
	var err error
	if p.core, err = producer.New(cfg, store, p); err != nil {
		n.fail(fmt.Errorf("producer of %s on %s: %w", c.Prefix, node.name, err))
		return p
	}
	node.addRoute(route{prefix, p.port.peer, 0, false})
	if !c.NoRoutes {
		n.announced = append(n.announced, announcement{prefix, node, c.Cost})
		n.dirty = true
	}
	return p
}

// Node that the producer is on.
func (p *Producer) Node() *Node { return p.node }

// Counters are the responder's.
func (p *Producer) Counters() producer.Counters { return p.core.Counters() }

// Send implements producer.Sender.
func (p *Producer) Send(wire []byte, f *ndn.LpFields) { p.port.send(p.net.now, wire, f) }

func (p *Producer) receive(now ndn.Time, at *port, frame []byte) {
	if p.core == nil || p.node.dead || !at.parse(now, frame) {
		return
	}
	if err := p.core.Receive(now, &p.net.packet); err != nil {
		p.net.note("producer", p.node.name, err.Error())
	}
	p.node.zone.wake(p.id, p.core.Deadline())
}

func (p *Producer) gaveUp(ndn.Time, *port, []byte) {}

func (p *Producer) fire(now ndn.Time) ndn.Time {
	p.core.Tick(now)
	return p.core.Deadline()
}

// madeUp is a store whose objects exist when they are asked for. Their content
// is a fixed noise, so that a byte out of place shows.
type madeUp struct {
	sizes   func(ndn.Name) int64
	size    int64
	segment int
	object  madeUpObject // the latest, so that finding one allocates nothing
}

func newStore(c *ProducerConfig) *madeUp {
	s := &madeUp{sizes: c.Sizes, size: c.Size, segment: c.Segment}
	return s
}

func (s *madeUp) Latest(p producer.Path) (producer.Object, error) { return s.At(p, 1) }

func (s *madeUp) At(p producer.Path, v uint64) (producer.Object, error) {
	size := s.size
	if s.sizes != nil {
		size = s.sizes(p.Name)
	}
	if v != 1 || p.Listing || size < 0 {
		return nil, producer.ErrNotFound
	}
	s.object = madeUpObject{uint64(size), s.segment}
	return &s.object, nil
}

type madeUpObject struct {
	size    uint64
	segment int
}

func (o *madeUpObject) Version() uint64                 { return 1 }
func (o *madeUpObject) SegmentSize() int                { return o.segment }
func (o *madeUpObject) Size() (uint64, bool)            { return o.size, true }
func (o *madeUpObject) Attributes() producer.Attributes { return producer.Attributes{} }

func (o *madeUpObject) ReadAt(b []byte, off uint64) error {
	Content(b, off)
	return nil
}

// noise repeats with a prime period, which no segment size divides.
var noise = func() (b [65521]byte) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

// Content fills b with the content that made-up objects have from an offset
// on.
func Content(b []byte, off uint64) {
	for len(b) > 0 {
		n := copy(b, noise[off%uint64(len(noise)):])
		b, off = b[n:], off+uint64(n)
	}
}
