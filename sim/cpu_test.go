//go:build unix

package sim_test

import (
	"syscall"
	"time"
)

// cpu is the processor time of this process so far: unlike the time of day, it
// does not depend on what else runs on the machine.
func cpu() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
