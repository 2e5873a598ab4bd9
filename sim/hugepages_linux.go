package sim

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// hugePages has the heap of this process backed with huge pages up to a size in
// bytes, where the kernel leaves that to programs
// (/sys/kernel/mm/transparent_hugepage/enabled: madvise). What the heap has
// already keeps its pages. The memory is taken when it is used, in pieces of 2
// MiB.
func hugePages(size int) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	more := size - int(m.HeapSys)
	if more <= 0 || debug.SetMemoryLimit(-1) < int64(size) {
		return
	}
	b := make([]byte, more)
	// Without them the network is only slower.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	// The advice stays with the addresses, which the heap uses again.
	runtime.GC()
}
