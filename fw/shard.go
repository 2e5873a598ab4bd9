package fw

import (
	"errors"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Sender is how the shard sends.
type Sender interface {
	// Send queues one network packet for a face: an Interest, a Data or, with
	// f.IsNack, the Interest of a Nack. Both arguments are valid during the
	// call only, and the shard must not be called from within. false says that
	// the packet was refused: no such face, or its queue is full.
	// f.IncomingFace is always set; the link service sends it only where
	// local fields are enabled.
	Send(face ndn.FaceID, wire []byte, f *ndn.LpFields) bool
}

// ContentStoreFace is the IncomingFace of Data out of the content store (NFD:
// face::FACEID_CONTENT_STORE).
const ContentStoreFace ndn.FaceID = 254

// Errors of updates. Those of packages table and strategy are returned as
// well.
var (
	ErrNoFace   = errors.New("fw: no such face")
	ErrFaceUsed = errors.New("fw: face exists already")
	ErrNoChoice = errors.New("fw: no strategy is set for this prefix")
)

// Shard is one forwarding shard. It is not safe for concurrent use.
type Shard struct {
	cfg    Config
	out    Sender
	hasher ndn.Hasher
	n      Counters
	rng    uint64

	faces    faces
	fib      *table.FIB
	pit      *table.PIT
	cs       *table.CS
	dead     *table.DeadNonces
	measured *table.Measurements
	timers   table.Timers
	plain    int // timers armed that belong to no entry
	waiting  int // in-records of all entries
	waitPool waitPool

	strategies *strategy.Set
	choices    *table.Choices
	bound      []*bound // by number; 0 is unused
	ctx        *strategy.Context

	// ending is set while an entry ends and can send no more.
	ending bool
	// event is the Interest that the strategy is being called for.
	event *arrival

	*scratch
}

// Scratch is memory that a shard uses within one call. Shards that are driven
// by one goroutine may share it, so that it stays in the processor's caches.
type Scratch struct {
	rows    [stage][ndn.MaxComponents + 2]uint64 // hashes of prefixes, for each packet at hand
	hashed  [stage][]uint64                      // what is used of each row
	asks    [stage]uint64                        // hashes of the names of the Interests at hand
	answers [stage]uint64                        // and of the Data
	hashes2 [ndn.MaxComponents + 2]uint64
	matches []*table.PitEntry
	walk    []walked
	hops    []table.NextHop
	ids     []ndn.FaceID
	buf     []byte
	fields  ndn.LpFields
	parsed  ndn.Interest
	token   [table.TokenLen]byte
	token2  [32]byte
	given   ndn.Interest
	arrived arrival

	// Events, here so that passing their addresses does not allocate.
	evI      strategy.Interest
	evD      strategy.Data
	evLoop   strategy.Loop
	evNack   strategy.Nack
	evGaveUp strategy.GaveUp
	evTimer  strategy.Timer
	evExpiry strategy.Expiry
}

// NewScratch returns memory to share.
func NewScratch() *Scratch { return &Scratch{buf: make([]byte, 0, ndn.MaxPacketSize+16)} }

type scratch = Scratch

// New returns a shard without faces and routes. The default strategy must be
// among the strategies.
func New(cfg Config, strategies *strategy.Set, out Sender) (*Shard, error) {
	cfg = cfg.withDefaults()
	s := &Shard{
		cfg: cfg, out: out, hasher: ndn.NewHasher(cfg.Seed), rng: cfg.Seed ^ 0x5851f42d4c957f2d,
		strategies: strategies, bound: make([]*bound, 1), scratch: cfg.Scratch,
	}
	if s.scratch == nil {
		s.scratch = NewScratch()
	}
	var err error
	if s.cs, err = table.NewCS(s.hasher, cfg.CS); err != nil {
		return nil, err
	}
	s.fib = table.NewFIB(s.hasher, cfg.MaxRoutes)
	s.pit = table.NewPIT(cfg.PIT, cfg.Shard)
	s.dead = table.NewDeadNonces(cfg.MaxDeadNonces, cfg.DeadNonceLifetime)
	s.measured = table.NewMeasurements(cfg.MaxMeasurements)
	s.choices = table.NewChoices(s.hasher, cfg.MaxStrategies)
	s.ctx = strategy.NewContext((*core)(s), s.hasher, s.measured, cfg.Seed+1)
	if _, err := s.SetStrategy(0, nil, cfg.DefaultStrategy); err != nil {
		return nil, err
	}
	return s, nil
}

// Receive takes one network packet from a face. p and what it points to are
// the caller's again afterwards.
func (s *Shard) Receive(now ndn.Time, in ndn.FaceID, p *ndn.Packet) {
	s.receive(now, in, p, s.hash(p, 0))
}

// stage is how many packets ReceiveBatch looks up ahead at once: enough for
// the processor to wait for all of them together, and few enough that what was
// fetched is still there when its turn comes.
const stage = table.MaxAhead

// ReceiveBatch takes packets from one face, with the same effect as Receive
// of one after the other. In large tables it is cheaper: what they will need is
// fetched from memory for many at once. The packets and what they point to are
// the caller's again afterwards.
func (s *Shard) ReceiveBatch(now ndn.Time, in ndn.FaceID, ps []ndn.Packet) {
	for len(ps) > 0 {
		n := min(len(ps), stage)
		s.lookAhead(ps[:n])
		for i := range n {
			s.receive(now, in, &ps[i], s.hashed[i])
		}
		ps = ps[n:]
	}
}

// lookAhead hashes the names of packets and reads what their pipelines will
// look for. It changes nothing.
func (s *Shard) lookAhead(ps []ndn.Packet) {
	asks, answers := s.asks[:0], s.answers[:0]
	for i := range ps {
		h := s.hash(&ps[i], i)
		s.hashed[i] = h
		if ps[i].Kind == ndn.KindData {
			answers = append(answers, h[len(h)-1])
		} else {
			asks = append(asks, h[len(h)-1])
		}
	}
	if len(asks) > 0 {
		s.pit.Ahead(asks, false)
		s.cs.Ahead(asks)
		s.fib.Ahead(s.hashed[:len(ps)])
	}
	if len(answers) > 0 {
		s.pit.Ahead(answers, true)
		s.cs.Ahead(answers)
	}
}

// hash returns the hashes of the prefixes of a packet's name, in a row of the
// scratch memory.
func (s *Shard) hash(p *ndn.Packet, row int) []uint64 {
	n := p.Interest.Name
	if p.Kind == ndn.KindData {
		n = p.Data.Name
	}
	return s.hasher.Prefixes(n, s.rows[row][:0])
}

// receive takes a packet, given the hashes of the prefixes of its name.
func (s *Shard) receive(now ndn.Time, in ndn.FaceID, p *ndn.Packet, hashes []uint64) {
	f := s.faces.get(in)
	if f == nil || f.leaving {
		s.n.BadFace++
		return
	}
	switch p.Kind {
	case ndn.KindInterest:
		s.n.InInterests++
		s.interest(now, f, p, hashes)
	case ndn.KindData:
		s.n.InData++
		s.data(now, f, p, hashes)
	case ndn.KindNack:
		s.n.InNacks++
		s.nack(now, f, p)
	}
}

// Deadline is when Tick should be called: not later than the first timer is
// due. It is ndn.Never without timers.
func (s *Shard) Deadline() ndn.Time { return s.timers.Deadline() }

// Tick fires the timers that are due.
func (s *Shard) Tick(now ndn.Time) {
	for {
		t, ok := s.timers.Next(now)
		if !ok {
			return
		}
		s.fire(now, &t)
	}
}

// Counters returns the counters and gauges.
func (s *Shard) Counters() Counters {
	c := s.n
	c.PitEntries, c.FibEntries, c.Routes = s.pit.Len(), s.fib.Len(), s.fib.Routes()
	c.Timers, c.DeadNonces, c.DeadNoncesLost = s.timers.Len(), s.dead.Len(), s.dead.Evicted()
	c.Measurements = s.measured.Len()
	return c
}

// nonce returns a pseudo-random Nonce.
func (s *Shard) nonce() uint32 {
	s.rng += 0x9e3779b97f4a7c15
	return uint32(mix(s.rng) >> 16)
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

var (
	localhost = ndn.Name(nil).AppendGeneric("localhost")
	localhop  = ndn.Name(nil).AppendGeneric("localhop")
)

// send passes a packet to the driver.
func (s *Shard) send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	if !s.out.Send(to, wire, f) {
		s.n.OutRefused++
		return false
	}
	return true
}
