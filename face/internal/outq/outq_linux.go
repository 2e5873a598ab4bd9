package outq

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func length(fd int) int {
	var n int32
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	if errno != 0 || n < 0 {
		return 0
	}
	return int(n)
}
