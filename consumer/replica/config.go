package replica

import "time"

// Config holds the constants of the decision. Zero values take the defaults.
type Config struct {
	// Timeouts is k of equation (1): more timeouts than this in a row, without
	// Data and within two RTOs, are a sign of heavy congestion (3).
	Timeouts int
	// Delta is δ of equation (2) (1.2).
	Delta float64
	// Rounds in a row have to exceed Delta (3).
	Rounds int
	// BaseWindow is the memory of RTTbase (10 s).
	BaseWindow time.Duration
	// Interrupt is the least silence that counts as an interruption; two RTOs
	// if that is longer (1 s).
	Interrupt time.Duration
	// HoldDown is the time after a switch in which congestion causes none (2 s).
	HoldDown time.Duration
	// Avoid is how long a replica that was left is returned to once at most
	// (10 s).
	Avoid time.Duration
	// Memory is how long a measured rate counts (60 s).
	Memory time.Duration
	// Unknown is the rate of a replica of which nothing is known, as a share of
	// the rate before the congestion (0.7).
	Unknown float64
	// CostRTTs is the cost of a switch before one was measured, in round-trip
	// times of the candidate (8).
	CostRTTs float64
	// Elsewhere is the rate, in bytes per second, that the replica which the
	// network would choose is known to give; 0: unknown.
	Elsewhere float64
}

// Defaults of Config. See the package comment for where they come from.
const (
	defaultTimeouts   = 3
	defaultDelta      = 1.2
	defaultRounds     = 3
	defaultBaseWindow = 10 * time.Second
	defaultInterrupt  = time.Second
	defaultHoldDown   = 2 * time.Second
	defaultAvoid      = 10 * time.Second
	defaultMemory     = 60 * time.Second
	defaultUnknown    = 0.7
	defaultCostRTTs   = 8
)

// or is v, or def when v is not positive.
func or[T int | float64 | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

func (c Config) withDefaults() Config {
	return Config{
		Timeouts:   or(c.Timeouts, defaultTimeouts),
		Delta:      or(c.Delta, defaultDelta),
		Rounds:     or(c.Rounds, defaultRounds),
		BaseWindow: or(c.BaseWindow, defaultBaseWindow),
		Interrupt:  or(c.Interrupt, defaultInterrupt),
		HoldDown:   or(c.HoldDown, defaultHoldDown),
		Avoid:      or(c.Avoid, defaultAvoid),
		Memory:     or(c.Memory, defaultMemory),
		Unknown:    or(c.Unknown, defaultUnknown),
		CostRTTs:   or(c.CostRTTs, defaultCostRTTs),
		Elsewhere:  c.Elsewhere,
	}
}
