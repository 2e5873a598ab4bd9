package strategy

import (
	"fmt"
	"time"

	"ndnpop/ndn"
)

// Silence says when an upstream that reports no failure counts as dead: when
// nothing has come from it for some round-trip times, and several Interests
// have waited in vain.
type Silence struct {
	Multiple float64       // of the smoothed RTT
	Floor    time.Duration // not before that
	Unknown  time.Duration // where no RTT is known
	Evidence uint64        // Interests in a row without an answer
}

// SilenceParams describes the parameters that ParseSilence reads, with these
// defaults.
func SilenceParams(d Silence) []Param {
	return []Param{
		{"multiple", fmt.Sprintf("silence after this many smoothed RTTs (%g)", d.Multiple)},
		{"floor", fmt.Sprintf("silence not before this many milliseconds (%d)", d.Floor.Milliseconds())},
		{"unknown", fmt.Sprintf("silence in milliseconds where no RTT is known (%d)", d.Unknown.Milliseconds())},
		{"evidence", fmt.Sprintf("unanswered Interests in a row until a silent next hop is avoided (%d)", d.Evidence)},
	}
}

// ParseSilence reads a Silence from the parameters of a strategy name.
func ParseSilence(v Values, d Silence) (Silence, error) {
	var err error
	if d.Multiple, err = v.FloatIn("multiple", d.Multiple, 1, 100); err != nil {
		return d, err
	}
	if d.Floor, err = v.MillisIn("floor", d.Floor, time.Millisecond, time.Minute); err != nil {
		return d, err
	}
	if d.Unknown, err = v.MillisIn("unknown", d.Unknown, time.Millisecond, time.Minute); err != nil {
		return d, err
	}
	d.Evidence, err = v.UintIn("evidence", d.Evidence, 1, 1000)
	return d, err
}

// Limit is how long an upstream with this RTT may be silent.
func (s *Silence) Limit(r *RTT) time.Duration { return r.Timeout(s.Multiple, s.Floor, s.Unknown) }

// Counts reports whether an Interest without an answer is evidence of silence: it
// was due when the upstream was heard last, or later. One that was due before was
// lost alone.
func (s *Silence) Counts(r *RTT, sent, heard ndn.Time) bool {
	return r.N == 0 || sent.Add(r.Smooth+4*r.Var) >= heard
}

// unknownRTT at most is taken for a round-trip time that is not known.
const unknownRTT = 62500 * time.Microsecond

// Failure is what a [Spread] asks about the next hop that the event's Interest
// was at, when its last answer came at the time heard.
func (s *Silence) Failure(c *Context, at ndn.FaceID, r *RTT, heard ndn.Time) Failure {
	f := Failure{RTT: r.Smooth, Heard: heard}
	if r.N == 0 {
		f.RTT = min(s.Unknown/4, unknownRTT)
	}
	if o := c.Out(at); o != nil {
		f.Sent = o.SentAt
	}
	return f
}
