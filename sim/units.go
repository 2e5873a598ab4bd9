package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrUnit is wrapped by the errors about rates, sizes and shares in text.
var ErrUnit = errors.New("bad quantity")

type unit struct {
	suffix string
	factor float64
}

// The longest suffix that fits counts.
var (
	rateUnits  = []unit{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}}
	sizeUnits  = []unit{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}
	shareUnits = []unit{{"%", 0.01}, {"", 1}}
)

func parseUnit(s, what string, units []unit) (float64, error) {
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err == nil && v >= 0 && v*u.factor < 1<<62 {
				return v * u.factor, nil
			}
			break
		}
	}
	var names []string
	for _, u := range units {
		if u.suffix != "" {
			names = append(names, u.suffix)
		}
	}
	return 0, fmt.Errorf("%w: %s %q: want a number with one of %s", ErrUnit, what, s, strings.Join(names, ", "))
}

// ParseRate reads a rate in bit/s, such as 100Mbit.
func ParseRate(s string) (int64, error) {
	v, err := parseUnit(strings.TrimSuffix(s, "/s"), "rate", rateUnits)
	return int64(v), err
}

// ParseSize reads a number of bytes, such as 125kB or 64MiB.
func ParseSize(s string) (int64, error) {
	v, err := parseUnit(s, "size", sizeUnits)
	return int64(v), err
}

// Quantities as they stand in a file.
type (
	rateText     int64
	sizeText     int64
	shareText    float64
	durationText time.Duration
)

func (r *rateText) UnmarshalText(b []byte) error {
	v, err := ParseRate(string(b))
	*r = rateText(v)
	return err
}

func (r *sizeText) UnmarshalText(b []byte) error {
	v, err := ParseSize(string(b))
	*r = sizeText(v)
	return err
}

func (r *shareText) UnmarshalText(b []byte) error {
	v, err := parseUnit(string(b), "share", shareUnits)
	*r = shareText(v)
	return err
}

func (r *durationText) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%w: duration %q: want a number with one of ns, us, ms, s, m", ErrUnit, b)
	}
	*r = durationText(v)
	return nil
}
