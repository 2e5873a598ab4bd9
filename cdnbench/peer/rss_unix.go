//go:build unix

package peer

import (
	"os"
	"runtime"
	"syscall"
)

// peakRSS is the largest resident set that an ended process had, in bytes.
func peakRSS(st *os.ProcessState) int64 {
	r, ok := st.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss) // bytes there
	}
	return int64(r.Maxrss) * 1024
}
