//go:build unix

package stream

import (
	"io"
	"syscall"
)

// read waits for the socket to have something and reads it. The buffer is
// there only while it is read into.
func (t *Transport) read() error {
	if err := t.raw.Read(t.readFn); err != nil {
		return err
	}
	return t.in.err
}

// readNow reads what a non-blocking socket has. False means that it has
// nothing.
func (t *Transport) readNow(fd uintptr) bool {
	in := &t.in
	in.take()
	for {
		in.n, in.err = syscall.Read(int(fd), in.buf.bytes[in.have:])
		switch {
		case in.err == syscall.EINTR:
			continue
		case in.err == syscall.EAGAIN:
			in.n, in.err = 0, nil
			in.release()
			return false
		case in.err != nil:
			in.n = 0
		case in.n == 0:
			in.err = io.EOF
		}
		return true
	}
}
