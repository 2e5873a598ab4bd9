//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package unix

import (
	"context"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// bind makes the socket file. Its mode is limited from the moment that it
// exists: on Linux bind takes the mode of the descriptor.
func bind(path string, mode fs.FileMode) (*net.UnixListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode.Perm())) })
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// lockDir keeps two forwarders that start at the same time from replacing
// each other's socket. It leaves no file behind.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	// A file system without locks is no reason to fail.
	return func() { _ = d.Close() }, nil
}
