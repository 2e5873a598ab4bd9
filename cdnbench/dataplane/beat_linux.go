package dataplane

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// beat wakes a pacer at even intervals. It is a timer of the kernel that the
// runtime waits for as for a socket: time.Sleep wakes an idle process up to a
// millisecond late.
type beat struct {
	f   *os.File
	buf [8]byte
}

func newBeat(interval time.Duration) (*beat, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	b := &beat{f: os.NewFile(uintptr(fd), "timerfd")}
	t := unix.NsecToTimespec(interval.Nanoseconds())
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: t, Value: t}, nil); err != nil {
		_ = b.f.Close()
		return nil, os.NewSyscallError("timerfd_settime", err)
	}
	return b, nil
}

// wait returns after the next beat, or at once when one has passed.
func (b *beat) wait() error {
	_, err := b.f.Read(b.buf[:])
	return err
}

func (b *beat) close() { _ = b.f.Close() }
