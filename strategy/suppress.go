package strategy

import "time"

// SuppressionScope says what a suppression interval belongs to.
type SuppressionScope uint8

// Scopes of suppression.
const (
	// SuppressEntry: an Interest that comes too soon after the last one that
	// was sent to any upstream is not shown to the strategy at all.
	SuppressEntry SuppressionScope = iota
	// SuppressUpstream: the strategy sees every Interest, and Send refuses to
	// repeat one too soon to the same upstream.
	SuppressUpstream
	// SuppressNothing leaves all of it to the strategy.
	SuppressNothing
)

// Suppression swallows retransmissions that come too fast, with an interval
// that grows with every one that passes (NFD: RetxSuppressionExponential). It
// concerns what consumers repeat; re-sends and probes of a strategy's own are
// not suppressed.
type Suppression struct {
	Scope      SuppressionScope
	Initial    time.Duration // the first interval
	Max        time.Duration
	Multiplier float64
}

// DefaultSuppression is NFD's: 10 ms, doubling to 250 ms.
func DefaultSuppression() Suppression {
	return Suppression{Initial: 10 * time.Millisecond, Max: 250 * time.Millisecond, Multiplier: 2}
}

// Next is the interval that follows an interval.
func (s *Suppression) Next(d time.Duration) time.Duration {
	return min(s.Max, time.Duration(float64(d)*s.Multiplier))
}

// Suppressor is for strategies that do not want DefaultSuppression. It is
// asked once, when the strategy is bound.
type Suppressor interface {
	Suppression() Suppression
}

// Parameters that configure a Suppression, as NFD names them.
const (
	paramInitial    = "retx-suppression-initial"
	paramMax        = "retx-suppression-max"
	paramMultiplier = "retx-suppression-multiplier"
)

// SuppressionParams describes the parameters that ParseSuppression reads.
func SuppressionParams() []Param {
	return []Param{
		{paramInitial, "first suppression interval in milliseconds (10)"},
		{paramMax, "longest suppression interval in milliseconds (250)"},
		{paramMultiplier, "growth of the interval per retransmission (2)"},
	}
}

// ParseSuppression reads a Suppression from the parameters of a strategy name.
func ParseSuppression(v Values) (Suppression, error) {
	s := DefaultSuppression()
	var err error
	if s.Initial, err = v.Millis(paramInitial, s.Initial); err != nil {
		return s, err
	}
	if s.Max, err = v.Millis(paramMax, max(s.Max, s.Initial)); err != nil {
		return s, err
	}
	if s.Multiplier, err = v.Float(paramMultiplier, s.Multiplier); err != nil {
		return s, err
	}
	switch {
	case s.Initial <= 0:
		return s, v.bad(paramInitial, "must be at least 1")
	case s.Max < s.Initial:
		return s, v.bad(paramMax, "must not be less than "+paramInitial)
	case !(s.Multiplier >= 1 && s.Multiplier <= 1000):
		return s, v.bad(paramMultiplier, "must be from 1 to 1000")
	}
	return s, nil
}

// SuppressingFactory is the factory of a strategy whose only parameters are
// those of a Suppression.
func SuppressingFactory(name string, version uint64, usage string, make func(Suppression) Strategy) Factory {
	return Factory{
		Name: name, Version: version, Usage: usage, Params: SuppressionParams(),
		New: func(v Values) (Strategy, error) {
			s, err := ParseSuppression(v)
			return make(s), err
		},
	}
}
