package dataplane

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/face"
	"ndnpop/face/udp"
	"ndnpop/ndn"
)

// Every Interest of a load is for loadPrefix and one component of eight bytes,
// its number; the number follows the prefix in the encoded name.
const (
	loadPrefix = "/bench/load"
	numberSize = 8
)

// load is a consumer and a producer of one-segment objects, each on a UDP
// socket of its own, that spend as little as they can: packets are copied from
// templates, nothing is signed, verified or measured but the time.
type load struct {
	interest, data           []byte // templates
	interestNumber, dataHead int    // where the number and, in a Data, the name is

	consumer, producer face.Server
	wg                 sync.WaitGroup

	mu       sync.Mutex // of out, next and what the consumer sends
	out      face.Frames
	next     uint64
	open     bool          // a pacer sends; arrivals do not
	window   uint64        // otherwise
	received atomic.Uint64 // Data
	began    time.Time

	recording atomic.Bool
	schedule  schedule // of what the pacer asks for; fixed while recording
	delays    []time.Duration

	answers face.Frames
	packet  ndn.LpPacket
	got     ndn.LpPacket
}

// newLoad makes templates of Data of size bytes, the whole packet.
func newLoad(size int) (*load, error) {
	l := &load{began: time.Now()}
	name := ndn.MustName(loadPrefix)
	number := ndn.Component{Type: ndn.TypeGeneric, Value: make([]byte, numberSize)}
	full := name.Clone().Append(number)
	l.interest = ndn.AppendInterest(nil, &ndn.InterestFields{Name: full, Nonce: 1})
	var in ndn.Interest
	if err := in.Parse(l.interest); err != nil {
		return nil, err
	}
	// Name first in both, in an Interest of less than 253 bytes.
	l.interestNumber = 2 + 2 + len(full) - numberSize
	var err error
	for content := size; ; content-- {
		if l.data, err = ndn.AppendData(nil, &ndn.DataFields{Name: full, Freshness: time.Hour, Content: make([]byte, max(content, 0))}, ndn.DigestSigner{}); err != nil {
			return nil, err
		}
		if len(l.data) <= size || content <= 0 {
			break
		}
	}
	_, _, h, err := ndn.ReadTL(l.data)
	l.dataHead = h + 2 + len(full) - numberSize
	return l, err
}

// connect gives the load its sockets. Both peers may be one address.
func (l *load) connect(consumer, producer int, toConsumer, toProducer string) error {
	var err error
	local := func(port int) udp.Options {
		return udp.Options{Local: fmt.Sprintf("127.0.0.1:%d", port), Family: "udp4"}
	}
	if l.consumer, err = udp.Dial(toConsumer, local(consumer)); err != nil {
		return err
	}
	if l.producer, err = udp.Dial(toProducer, local(producer)); err != nil {
		l.consumer.Close()
		return err
	}
	l.wg.Go(func() { _ = l.consumer.Serve((*loadConsumer)(l)) })
	l.wg.Go(func() { _ = l.producer.Serve((*loadProducer)(l)) })
	return nil
}

func (l *load) close() {
	l.consumer.Close()
	l.producer.Close()
	l.wg.Wait()
}

// loadProducer answers every Interest.
type loadProducer load

func (p *loadProducer) Receive(frames [][]byte) {
	for _, f := range frames {
		if p.packet.Parse(f) != nil || len(p.packet.Fragment) < p.interestNumber+numberSize || p.packet.Fragment[0] != byte(ndn.TypeInterest) {
			continue
		}
		copy(p.data[p.dataHead:], p.packet.Fragment[p.interestNumber:][:numberSize])
		h := ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: p.packet.PitToken}}
		p.answers.Buf = ndn.AppendLpPacket(p.answers.Buf, &h, p.data)
		p.answers.End()
	}
}

func (p *loadProducer) Flush() {
	p.producer.Send(&p.answers)
	p.answers.Reset()
}
func (p *loadProducer) Closed(error) {}

// loadConsumer counts Data, and asks for as many more when it is not paced.
type loadConsumer load

func (c *loadConsumer) Receive(frames [][]byte) {
	now := time.Since(c.began)
	recording := c.recording.Load()
	n := uint64(0)
	for _, f := range frames {
		if c.got.Parse(f) != nil || len(c.got.Fragment) < c.dataHead+numberSize || c.got.Fragment[0] != byte(ndn.TypeData) {
			continue
		}
		n++
		if number := binary.BigEndian.Uint64(c.got.Fragment[c.dataHead:]); recording && number >= c.schedule.first && len(c.delays) < cap(c.delays) {
			c.delays = append(c.delays, now-c.schedule.due(number))
		}
	}
	c.received.Add(n)
}

func (c *loadConsumer) Flush() {
	l := (*load)(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		// After a restart, what was given up may come too.
		l.ask(min(l.received.Load()+l.window-l.next, l.window))
	}
}
func (c *loadConsumer) Closed(error) {}

// ask sends n Interests; the lock is held.
func (l *load) ask(n uint64) {
	if n == 0 {
		return
	}
	for range n {
		b := l.interest
		binary.BigEndian.PutUint64(b[l.interestNumber:], l.next)
		l.out.Buf = append(l.out.Buf, b...)
		l.out.End()
		l.next++
	}
	l.consumer.Send(&l.out)
	l.out.Reset()
}

// restart forgets what is in flight and fills the window; with a window of 0
// it stops.
func (l *load) restart(window int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.window = false, uint64(window)
	l.next = max(l.next, l.received.Load())
	l.received.Store(l.next)
	l.ask(l.window)
}

// wait lets a time pass. With stalls, a load that has lost so many packets that
// nothing moves is started again, and that counted.
func (l *load) wait(ctx context.Context, d time.Duration, window int) (stalls int, err error) {
	const look = 50 * time.Millisecond
	tick := time.NewTicker(look)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		before := l.received.Load()
		select {
		case <-ctx.Done():
			return stalls, ctx.Err()
		case <-tick.C:
		}
		if l.received.Load() == before && window > 0 {
			stalls++
			l.restart(window)
		}
	}
	return stalls, nil
}

// paceInterval is the time between two bursts of a pacer. Shorter ones would
// cost more in wake-ups, of five sockets' readers for each, than the packets do.
const paceInterval = 50 * time.Microsecond

// schedule says when each Interest of a paced load is due: burst of them
// together, every paceInterval.
type schedule struct {
	first, burst uint64
	begin        time.Duration // since the load began
}

func (s *schedule) due(number uint64) time.Duration {
	return s.begin + time.Duration((number-s.first)/s.burst+1)*paceInterval
}

// paced is what a paced load found. Both lists are sorted.
type paced struct {
	// delays counts from when an Interest was due, not from when it was sent:
	// otherwise what holds the load up would hide what it holds up the device
	// for, and the Interests that should have been sent meanwhile.
	delays []time.Duration
	late   []time.Duration // of the load itself, for each wake-up that sent
	lost   int             // Interests without Data; their delay is giveUp
}

// giveUp is how long a paced load waits for the last Data.
const giveUp = 200 * time.Millisecond

// pace asks for rate Data a second, whatever comes back.
func (l *load) pace(ctx context.Context, rate float64, d time.Duration) (paced, error) {
	burst := max(1, uint64(rate*paceInterval.Seconds()+0.5))
	total := uint64(d/paceInterval) * burst
	p := paced{late: make([]time.Duration, 0, d/paceInterval)}
	l.delays = make([]time.Duration, 0, total)
	l.mu.Lock()
	l.open, l.window = true, 0
	l.received.Store(l.next) // what came of the load before was counted too
	l.schedule = schedule{first: l.next, burst: burst, begin: time.Since(l.began)}
	l.mu.Unlock()
	b, err := newBeat(paceInterval)
	if err != nil {
		return p, err
	}
	defer b.close()
	l.recording.Store(true)
	for end := l.schedule.first + total; l.next < end && ctx.Err() == nil; {
		if err := b.wait(); err != nil {
			return p, err
		}
		now := time.Since(l.began)
		n := min(uint64((now-l.schedule.begin)/paceInterval)*burst+l.schedule.first, end) - l.next
		if n == 0 {
			continue
		}
		p.late = append(p.late, now-l.schedule.due(l.next))
		l.mu.Lock()
		l.ask(n)
		l.mu.Unlock()
	}
	for end := time.Now().Add(giveUp); l.received.Load() < l.next && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	l.recording.Store(false)
	l.close() // after which the receiver writes no more
	p.delays, p.lost = l.delays, int(l.next-l.schedule.first)-len(l.delays)
	for range p.lost {
		p.delays = append(p.delays, giveUp)
	}
	slices.Sort(p.delays)
	slices.Sort(p.late)
	return p, nil
}

// quantile returns a quantile of a sorted list in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]) / 1e3
}

// shuffled is a random number from which a load counts, so that no two are for
// the same names.
func shuffled() uint64 { return rand.Uint64() >> 2 }
