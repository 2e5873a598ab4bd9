//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package unix

import (
	"context"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
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
// each other's socket. It leaves no file behind. A lock that somebody keeps, as
// any user may, is no reason to wait for long, nor is a file system without locks
// one to fail.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range lockTries {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR && err != syscall.EWOULDBLOCK {
			break
		}
		time.Sleep(lockPause)
	}
	return func() { _ = d.Close() }, nil
}

// A second is a hundred times what making a socket takes.
const (
	lockTries = 100
	lockPause = 10 * time.Millisecond
)

// makeDir makes a directory with the mode of another, and its owner and group as far
// as it may: with others fewer may use it, not more.
func makeDir(path string, like fs.FileInfo) error {
	if err := os.Mkdir(path, like.Mode().Perm()); err != nil {
		return err
	}
	// The mode is limited by the umask, and somebody may have put something else there.
	d, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	if s := like.Sys().(*syscall.Stat_t); d.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = d.Chown(-1, int(s.Gid))
	}
	return d.Chmod(like.Mode().Perm())
}
