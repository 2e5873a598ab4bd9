// Package rtt estimates the round-trip time of a path and the time after
// which an unanswered Interest counts as lost.
//
// It is RFC 6298 with the scaling of RFC 7323, appendix G, for several samples
// per round trip, as NDN software does it (ndn-cxx, RttEstimator). Karn's rule
// is the caller's: a segment that was asked for more than once gives no
// sample.
package rtt

import "time"

// Config bounds the retransmission timeout. A zero field takes its default.
type Config struct {
	// Initial is the timeout before the first sample (1 s).
	Initial time.Duration
	// Min and Max bound the timeout (200 ms and 60 s).
	Min, Max time.Duration
	// MaxBackoff bounds what backing off alone can make of the timeout
	// (Max): an estimate above it stands, but is not doubled further. A
	// fetcher that lives through outages wants it short, so that it notices
	// soon when a path is back.
	MaxBackoff time.Duration
	// Multiple is how many smoothed round-trip times the timeout holds beside
	// four deviations (1, as RFC 6298 says). Paths that repair losses on their
	// links need more.
	Multiple int
}

// Defaults of Config (ndn-cxx, RttEstimator::Options).
const (
	DefaultInitial = time.Second
	DefaultMin     = 200 * time.Millisecond
	DefaultMax     = 60 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Initial <= 0 {
		c.Initial = DefaultInitial
	}
	if c.Min <= 0 {
		c.Min = DefaultMin
	}
	if c.Max <= 0 {
		c.Max = DefaultMax
	}
	if c.Max < c.Min {
		c.Max = c.Min
	}
	if c.MaxBackoff <= 0 || c.MaxBackoff > c.Max {
		c.MaxBackoff = c.Max
	}
	c.Multiple = max(1, c.Multiple)
	return c
}

// Estimator is the estimate of one path. Make it with New.
type Estimator struct {
	cfg        Config
	srtt, rvar time.Duration
	rto        time.Duration
	last       time.Duration
	min, max   time.Duration
	sum        time.Duration
	n          uint64
}

// New returns an estimator without samples.
func New(cfg Config) Estimator {
	cfg = cfg.withDefaults()
	return Estimator{cfg: cfg, rto: clamp(cfg.Initial, cfg.Min, cfg.Max)}
}

// Sample takes a measured round-trip time, of which about half as many as
// inflight (packets in flight) arrive per round trip. A time that is not
// positive is ignored. It ends backing off.
func (e *Estimator) Sample(r time.Duration, inflight int) {
	if r <= 0 {
		return
	}
	if e.n == 0 {
		e.srtt, e.rvar = r, r/2
		e.min, e.max = r, r
	} else {
		n := time.Duration(max(1, (inflight+1)/2))
		e.rvar += (abs(e.srtt-r) - e.rvar) / (4 * n)
		e.srtt += (r - e.srtt) / (8 * n)
		e.min, e.max = min(e.min, r), max(e.max, r)
	}
	e.last = r
	e.sum += r
	e.n++
	e.rto = e.Base()
}

// Backoff doubles the timeout, up to MaxBackoff. Call it once per loss event,
// not once per lost segment.
func (e *Estimator) Backoff() {
	if b := min(2*e.rto, e.cfg.MaxBackoff); b > e.rto {
		e.rto = b
	}
}

// RTO is the retransmission timeout, backing off included.
func (e *Estimator) RTO() time.Duration { return e.rto }

// SRTT is the smoothed round-trip time, 0 before the first sample.
func (e *Estimator) SRTT() time.Duration { return e.srtt }

// Var is the smoothed mean deviation, 0 before the first sample.
func (e *Estimator) Var() time.Duration { return e.rvar }

// Last is the latest sample, 0 before the first.
func (e *Estimator) Last() time.Duration { return e.last }

// Min, Max and Avg are taken over all samples; 0 before the first.
func (e *Estimator) Min() time.Duration { return e.min }

// Max is the largest sample.
func (e *Estimator) Max() time.Duration { return e.max }

// Avg is the mean of the samples.
func (e *Estimator) Avg() time.Duration {
	if e.n == 0 {
		return 0
	}
	return e.sum / time.Duration(e.n)
}

// Samples is the number of samples taken.
func (e *Estimator) Samples() uint64 { return e.n }

func abs(d time.Duration) time.Duration {
	if d < 0 {
		return -d
	}
	return d
}

func clamp(d, lo, hi time.Duration) time.Duration { return max(lo, min(d, hi)) }

// Base is the retransmission timeout without backing off.
func (e *Estimator) Base() time.Duration {
	if e.n == 0 {
		return clamp(e.cfg.Initial, e.cfg.Min, e.cfg.Max)
	}
	return clamp(time.Duration(e.cfg.Multiple)*e.srtt+4*e.rvar, e.cfg.Min, e.cfg.Max)
}
