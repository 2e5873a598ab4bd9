//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package unix

import (
	"io/fs"
	"net"
	"os"
)

func bind(path string, _ fs.FileMode) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

func lockDir(string) (unlock func(), err error) { return func() {}, nil }

func makeDir(path string, like fs.FileInfo) error { return os.Mkdir(path, like.Mode().Perm()) }
