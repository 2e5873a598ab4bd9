package ndn

import "time"

// Time is a point in time in nanoseconds since an epoch that its driver
// chooses (start of the process, start of the simulation). Zero means unset.
type Time int64

// Never is later than every other time.
const Never Time = 1<<63 - 1

// Add returns t+d. Unset and Never absorb: Never.Add(d) is Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	if r := t + Time(d); d < 0 || r >= t {
		return r
	}
	return Never
}

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// IsSet reports whether t is not the zero Time.
func (t Time) IsSet() bool { return t != 0 }

// Earlier returns the earlier of two times, ignoring one that is unset.
func Earlier(a, b Time) Time {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
