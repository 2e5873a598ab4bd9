//go:build unix

package stream

import "syscall"

// writeNow writes what the non-blocking socket takes.
func writeNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN, syscall.ENOBUFS:
			return 0, nil
		default:
			return 0, err
		}
	}
}
