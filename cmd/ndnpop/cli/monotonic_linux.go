package cli

import "golang.org/x/sys/unix"

// monotonic is CLOCK_MONOTONIC in microseconds, with which a service manager
// orders a reload (sd_notify(3)).
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // does not fail
	return t.Nano() / 1000
}
