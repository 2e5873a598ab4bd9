package ping

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"ndnpop/ndn"
)

// Options of a Client.
type Options struct {
	Prefix   ndn.Name
	Count    uint64 // pings to send; 0 means no end
	Interval time.Duration
	Timeout  time.Duration
	Start    uint64 // the first number
	// AllowStale lets caches answer with Data that is not fresh.
	AllowStale bool
	// Identifier, when not empty, is a component before the number, which
	// keeps the pings of several clients apart.
	Identifier string
	Seed       uint64 // of the Nonces
}

// Outcome of one ping.
type Outcome uint8

// Outcomes.
const (
	Answered Outcome = iota + 1
	Nacked           // by a forwarder
	Refused          // by an application, which has no such content
	TimedOut
)

// Result is what became of one ping.
type Result struct {
	Outcome Outcome
	Number  uint64
	RTT     time.Duration // except of TimedOut
	Reason  ndn.NackReason
}

// Statistics sum up the pings that have an outcome. Times are zero when
// nothing was answered.
type Statistics struct {
	Sent, Answered, Nacked, TimedOut uint64
	Min, Avg, Max, Mdev              time.Duration
}

// Lost is the number of pings in percent that timed out, NackedPercent of
// those that were refused.
func (s *Statistics) Lost() float64 { return percent(s.TimedOut, s.Sent) }

// NackedPercent is the share of the pings that met a Nack.
func (s *Statistics) NackedPercent() float64 { return percent(s.Nacked, s.Sent) }

func percent(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}

// Client sends pings at an interval. It is a state machine: its user tells
// it the time.
type Client struct {
	opts   Options
	out    Sender
	report func(Result)
	rng    *rand.Rand

	base    ndn.Name // what the number follows
	next    uint64
	due     ndn.Time // of the next ping; Never after the last one
	pending []pending
	stats   Statistics
	sum     float64 // of RTTs in seconds
	squares float64
	buf     []byte
}

type pending struct {
	name   ndn.Name
	number uint64
	sent   ndn.Time
}

// NewClient returns a client that has not started. report, if not nil, hears
// of each outcome.
func NewClient(o Options, out Sender, report func(Result)) *Client {
	base := Name(o.Prefix)
	if o.Identifier != "" {
		base = base.AppendGeneric(o.Identifier)
	}
	if report == nil {
		report = func(Result) {}
	}
	return &Client{
		opts: o, out: out, report: report, rng: rand.New(rand.NewPCG(o.Seed, 0)),
		base: base, next: o.Start, due: ndn.Never,
	}
}

// Begin sends the first ping.
func (c *Client) Begin(now ndn.Time) {
	c.due = now
	c.Tick(now)
}

// Stop sends no further pings. Those on their way are forgotten.
func (c *Client) Stop() {
	c.due = ndn.Never
	c.stats.Sent -= uint64(len(c.pending))
	c.pending = nil
}

// Done reports that the last ping has been sent and has its outcome.
func (c *Client) Done() bool {
	return c.opts.Count > 0 && c.next-c.opts.Start >= c.opts.Count && len(c.pending) == 0
}

// Deadline is when Tick is due.
func (c *Client) Deadline() ndn.Time {
	if len(c.pending) == 0 {
		return c.due
	}
	return min(c.due, c.pending[0].sent.Add(c.opts.Timeout))
}

// Tick sends what is due and gives up what took too long.
func (c *Client) Tick(now ndn.Time) {
	for len(c.pending) > 0 && c.pending[0].sent.Add(c.opts.Timeout) <= now {
		p := c.pending[0]
		c.pending = c.pending[1:]
		c.stats.TimedOut++
		c.report(Result{Outcome: TimedOut, Number: p.number})
	}
	if now < c.due {
		return
	}
	c.send(now)
	// A late tick sends one ping and not all those that it missed.
	if c.due = c.due.Add(c.opts.Interval); c.due <= now {
		c.due = now.Add(c.opts.Interval)
	}
	if c.opts.Count > 0 && c.next-c.opts.Start >= c.opts.Count {
		c.due = ndn.Never
	}
}

func (c *Client) send(now ndn.Time) {
	name := c.base.Clone().AppendGeneric(strconv.FormatUint(c.next, 10))
	c.buf = ndn.AppendInterest(c.buf[:0], &ndn.InterestFields{
		Name: name, MustBeFresh: !c.opts.AllowStale, Nonce: c.rng.Uint32(), Lifetime: c.opts.Timeout,
	})
	c.pending = append(c.pending, pending{name, c.next, now})
	c.next++
	c.stats.Sent++
	c.out.Send(c.buf, nil)
}

// Receive takes a packet and looks whether it answers a ping.
func (c *Client) Receive(now ndn.Time, p *ndn.Packet) error {
	name, r := p.Interest.Name, Result{Outcome: Nacked, Reason: p.NackReason}
	switch p.Kind {
	case ndn.KindInterest:
		return nil
	case ndn.KindData:
		name, r = p.Data.Name, Result{Outcome: Answered}
		if p.Data.ContentType == ndn.ContentNack {
			r.Outcome = Refused
		}
	}
	for i := range c.pending {
		if q := &c.pending[i]; bytes.Equal(q.name, name) {
			r.Number, r.RTT = q.number, now.Sub(q.sent)
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			c.account(&r)
			c.report(r)
			return nil
		}
	}
	return nil
}

func (c *Client) account(r *Result) {
	if r.Outcome != Answered {
		c.stats.Nacked++
		return
	}
	if c.stats.Answered == 0 || r.RTT < c.stats.Min {
		c.stats.Min = r.RTT
	}
	c.stats.Max = max(c.stats.Max, r.RTT)
	c.stats.Answered++
	s := r.RTT.Seconds()
	c.sum += s
	c.squares += s * s
}

// Statistics returns the sums so far.
func (c *Client) Statistics() Statistics {
	s := c.stats
	s.Sent -= uint64(len(c.pending))
	if n := float64(s.Answered); n > 0 {
		avg := c.sum / n
		s.Avg = seconds(avg)
		s.Mdev = seconds(math.Sqrt(max(0, c.squares/n-avg*avg)))
	}
	return s
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
