package line

import (
	"errors"
	"fmt"
	"time"
)

// DefaultQueue is the queue limit in bytes where Params.Queue is zero.
const DefaultQueue = 1 << 20

// ErrParams is wrapped by every error about parameters.
var ErrParams = errors.New("bad link parameters")

// Params describe one direction of a link. The zero value delivers at once.
type Params struct {
	Delay  time.Duration // one way, after serialisation
	Jitter time.Duration // uniform in [-Jitter, +Jitter], added to Delay
	// Noise is the mean of a delay with exponential distribution, cut off at
	// ten times the mean, that is added to Delay and Jitter.
	Noise time.Duration
	// Reorder lets jitter, or a delay that shrinks in mid-run, reorder
	// packets. Otherwise a packet never arrives before an earlier one: of many
	// within the Jitter all are as late as the latest so far, and the mean delay
	// is above Delay (with ten packets in that time by half of Jitter, with a
	// hundred by 0.8 of it).
	Reorder bool
	Loss    float64        // Bernoulli: probability per packet, 0 to 1
	Burst   GilbertElliott // instead of Loss
	Rate    int64          // bit/s; 0 is unlimited, otherwise at least 1000
	// Queue is of bytes waiting or being sent, drop-tail; 0 is DefaultQueue. What
	// waits already when it becomes shorter stays.
	Queue int64
	// QueuePackets bounds the packets waiting or being sent as well; 0 does not.
	QueuePackets int
	CoDel        CoDel
	Overhead     int // link-layer bytes that count per packet beside the IP packet
}

// CoDel drops from the head of the queue what has waited for longer than
// Target for at least Interval (RFC 8289). Zero values are the RFC's.
type CoDel struct {
	On       bool
	Target   time.Duration // 5 ms
	Interval time.Duration // 100 ms
}

// GilbertElliott is loss in bursts: a good and a bad state with a loss
// probability each and a probability per packet of changing to the other
// (E. O. Elliott, Bell System Technical Journal 42(5), 1963). The zero value
// is off.
type GilbertElliott struct {
	ToBad, ToGood     float64 // per packet, before its loss is decided
	LossGood, LossBad float64
}

// Mean is the loss probability per packet in the long run.
func (g GilbertElliott) Mean() float64 {
	if g.ToBad+g.ToGood == 0 {
		return g.LossGood
	}
	bad := g.ToBad / (g.ToBad + g.ToGood)
	return bad*g.LossBad + (1-bad)*g.LossGood
}

// MeanLoss is the loss probability per packet in the long run.
func (p Params) MeanLoss() float64 {
	if p.Burst != (GilbertElliott{}) {
		return p.Burst.Mean()
	}
	return p.Loss
}

// queue is the limit that applies.
func (p Params) queue() int64 {
	if p.Queue == 0 {
		return DefaultQueue
	}
	return p.Queue
}

// Validate names the first parameter that is out of bounds, wrapping ErrParams.
func (p Params) Validate() error {
	bad := func(what string, v any, want string) error {
		return fmt.Errorf("%w: %s %v: want %s", ErrParams, what, v, want)
	}
	const maxDelay = 10 * time.Minute
	switch {
	case p.Delay < 0 || p.Delay > maxDelay:
		return bad("delay", p.Delay, "0 to 10m")
	case p.Jitter < 0 || p.Jitter > p.Delay:
		return bad("jitter", p.Jitter, "0 to the delay")
	case p.Noise < 0 || p.Noise > maxDelay/10:
		return bad("noise", p.Noise, "0 to 1m")
	case p.Rate != 0 && (p.Rate < 1000 || p.Rate > 1e12):
		return bad("rate", p.Rate, "0 or 1e3 to 1e12 bit/s")
	case p.Queue < 0 || p.Queue > maxHeld:
		return bad("queue", p.Queue, fmt.Sprintf("0 to %d bytes", maxHeld))
	case p.QueuePackets < 0:
		return bad("queue packets", p.QueuePackets, "0 or more")
	case p.CoDel.Target < 0 || p.CoDel.Interval < 0:
		return bad("codel", p.CoDel, "a target and an interval of 0 or more")
	case p.Overhead < 0 || p.Overhead > 1000:
		return bad("overhead", p.Overhead, "0 to 1000 bytes")
	case p.Loss > 0 && p.Burst != (GilbertElliott{}):
		return bad("loss", p.Loss, "either loss or burst")
	}
	for _, v := range []struct {
		name string
		p    float64
	}{{"loss", p.Loss}, {"burst.to-bad", p.Burst.ToBad}, {"burst.to-good", p.Burst.ToGood}, {"burst.loss-good", p.Burst.LossGood}, {"burst.loss-bad", p.Burst.LossBad}} {
		if !(v.p >= 0 && v.p <= 1) {
			return bad(v.name, v.p, "0 to 1")
		}
	}
	return nil
}
