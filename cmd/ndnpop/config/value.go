package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. In a file: an integer, or a string with one of
// the units B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024).
type Size int64

var units = []struct {
	name string
	n    int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseSize reads a size in the notation of the file.
func ParseSize(s string) (Size, error) {
	num, mult := strings.TrimSpace(s), int64(1)
	for _, u := range units {
		if strings.HasSuffix(num, u.name) {
			num, mult = strings.TrimSpace(strings.TrimSuffix(num, u.name)), u.n
			break
		}
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsNaN(v) || v < 0 || strings.ContainsAny(num, "xXpP_") {
		return 0, fmt.Errorf("%q is not a size, such as \"64MiB\" or \"2GB\" (units: B kB MB GB TB KiB MiB GiB TiB)", s)
	}
	if v *= float64(mult); v >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return Size(v), nil
}

// String writes a size with the largest unit that divides it.
func (s Size) String() string {
	n, name := int64(1), "B"
	for _, u := range units {
		if s != 0 && int64(s)%u.n == 0 && u.n > n {
			n, name = u.n, u.name
		}
	}
	return strconv.FormatInt(int64(s)/n, 10) + name
}

// Duration is a time span. In a file: a string as "10ms", "1m30s".
type Duration time.Duration

// ParseDuration reads a duration in the notation of the file.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration, such as \"10ms\", \"1m30s\" (units: ns us ms s m h)", s)
	}
	return Duration(d), nil
}

// String writes a duration without units that are zero.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Toggle is a feature of a link that is off, on, or used if the peer has it. In
// a file: false, true, or "auto".
type Toggle uint8

// The values of Toggle.
const (
	Off Toggle = iota
	On
	Auto
)

// String writes the value as in a file.
func (t Toggle) String() string { return [...]string{"false", "true", `"auto"`}[t] }

// Rate is in bit/s. In a file: a string with one of tc's units of bits per second,
// bit, kbit, mbit, gbit (powers of 1000).
type Rate int64

var rateUnits = []struct {
	name string
	n    int64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate reads a rate in the notation of the file.
func ParseRate(s string) (Rate, error) {
	for _, u := range rateUnits {
		num, ok := strings.CutSuffix(strings.TrimSpace(s), u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(v >= 0) || v*float64(u.n) > 1e15 || strings.ContainsAny(num, "xXpP_") {
			break
		}
		return Rate(v * float64(u.n)), nil
	}
	return 0, fmt.Errorf("%q is not a rate, such as \"100mbit\" (units: bit kbit mbit gbit)", s)
}

// String writes a rate with the largest unit that divides it.
func (r Rate) String() string {
	for _, u := range rateUnits {
		if r > 0 && int64(r)%u.n == 0 {
			return strconv.FormatInt(int64(r)/u.n, 10) + u.name
		}
	}
	return "0bit"
}
