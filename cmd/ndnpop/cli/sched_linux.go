package cli

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// schedBatch makes all threads of the process SCHED_BATCH (sched(7)), which keeps
// its share of the processors but does not interrupt whoever runs when it wakes.
// Programs that pass packets on to each other then find many at a time, where each
// would otherwise preempt the one that sends to it after the first few. A policy
// that somebody has chosen (chrt(1), the service manager) stays, and where setting
// one is forbidden nothing changes.
func schedBatch() {
	const tasks = "/proc/self/task"
	done := map[string]bool{}
	for more := true; more; {
		more = false
		entries, err := os.ReadDir(tasks)
		if err != nil {
			return
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || done[e.Name()] {
				continue
			}
			// One that has not been set may have started another meanwhile.
			done[e.Name()], more = true, true
			a, err := unix.SchedGetAttr(tid, 0)
			if err != nil || a.Policy != unix.SCHED_NORMAL {
				continue
			}
			a.Policy = unix.SCHED_BATCH
			_ = unix.SchedSetAttr(tid, a, 0) // it may have ended
		}
	}
}
