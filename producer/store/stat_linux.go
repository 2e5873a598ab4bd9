package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep a pipe that takes the place of a file from blocking.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// descriptor returns the file's descriptor, for system calls without
// allocation. It stays valid while the file is open.
func descriptor(f *os.File) int { return int(f.Fd()) }

// infoOf is what a look at a path tells. The time of birth is not known.
func infoOf(fi fs.FileInfo) info {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return info{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	}
	return info{
		size: st.Size, mode: st.Mode, dev: uint64(st.Dev), ino: st.Ino,
		atime: st.Atim.Nano(), ctime: st.Ctim.Nano(), mtime: st.Mtim.Nano(),
	}
}

// fileInfo is what an open file tells of itself.
func fileInfo(f *os.File) (info, fs.FileMode, error) {
	fi, err := f.Stat()
	if err != nil {
		return info{}, 0, err
	}
	i := infoOf(fi)
	var stx unix.Statx_t
	if unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &stx) == nil && stx.Mask&unix.STATX_BTIME != 0 {
		i.btime = stx.Btime.Sec*1e9 + int64(stx.Btime.Nsec)
	}
	return i, fi.Mode(), nil
}

// read fills b, or returns io.EOF when the file is shorter.
func (o *object) read(b []byte, off int64) error {
	for len(b) > 0 {
		n, err := syscall.Pread(o.fd, b, off)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return &fs.PathError{Op: "read", Path: o.file.Name(), Err: err}
		case n == 0:
			return io.EOF
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// unchanged looks whether the open file is still what it was. A new name or
// the loss of one does not matter, so the time of the last status change is
// not looked at.
func (o *object) unchanged() (bool, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(o.fd, &st); err != nil {
		return false, &fs.PathError{Op: "stat", Path: o.file.Name(), Err: err}
	}
	return st.Size == o.info.size && st.Mtim.Nano() == o.info.mtime, nil
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
