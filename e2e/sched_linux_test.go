package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"ndnpop/internal/testbin"
)

// policies are the scheduling policies that the threads of a process have.
func policies(t *testing.T, pid int) map[uint32]int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	n := map[uint32]int{}
	for _, e := range tasks {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if a, err := unix.SchedGetAttr(tid, 0); err == nil { // or it has just ended
			n[a.Policy]++
		}
	}
	return n
}

// TestSchedulingPolicy: a forwarder is SCHED_BATCH with all its threads, unless
// somebody has chosen another policy for it.
func TestSchedulingPolicy(t *testing.T) {
	t.Parallel()
	n := startNode(t, nodeConf{})
	if p := policies(t, n.Pid()); len(p) != 1 || p[unix.SCHED_BATCH] == 0 {
		t.Errorf("threads by policy: %v, want SCHED_BATCH (%d) only", p, unix.SCHED_BATCH)
	}

	chrt, err := exec.LookPath("chrt")
	if err != nil {
		t.Fatal(err)
	}
	idle := testbin.Start(t, testbin.Cmd{
		Path: chrt, Args: []string{"--idle", "0", testbin.Ndnpop(t), "put", "/idle", testbin.Ndnpop(t)},
		Env: appEnv(t, n.unix()),
	})
	testbin.Eventually(t, patience, "put to serve", func() bool { return idle.Stderr.Contains("fetch it with") }, idle)
	if p := policies(t, idle.Pid()); len(p) != 1 || p[unix.SCHED_IDLE] == 0 {
		t.Errorf("threads by policy: %v, want SCHED_IDLE (%d) only", p, unix.SCHED_IDLE)
	}
}
