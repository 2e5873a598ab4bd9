package sim

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// HugePages has the next so many bytes that the heap of this process grows by
// backed with huge pages, where the kernel leaves that to programs
// (/sys/kernel/mm/transparent_hugepage/enabled: madvise). A network of hundreds
// of nodes or more, whose memory each event finds cold, then takes about a tenth
// less time. Call it once, before the networks are made, with what they
// will need: the memory is taken when it is used, in pieces of 2 MiB.
func HugePages(bytes int) error {
	b := make([]byte, bytes)
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil {
		return fmt.Errorf("sim: no huge pages: %w", err)
	}
	// The advice stays with the addresses, which the heap uses again.
	runtime.GC()
	return nil
}
