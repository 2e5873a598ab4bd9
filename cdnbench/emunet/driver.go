//go:build linux

package emunet

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"ndnpop/ndn"
	"ndnpop/sim/line"

	"golang.org/x/sys/unix"
)

// driver moves packets between TUN devices and lines on one thread. Descriptors
// are non-blocking and watched edge-triggered.
type driver struct {
	vnet  bool
	spin  time.Duration
	epoch time.Time
	ep    int
	wake  int // eventfd: something changed, look again
	done  chan struct{}

	mu     sync.Mutex // all below, and every line
	pool   line.Pool
	dirs   []*direction
	stop   bool // the loop is to end
	closed bool // its descriptors are gone
	err    error
}

// direction is a line with the devices at its ends.
type direction struct {
	*line.Line
	in, out     int // descriptors
	ready       bool
	writeErrors int64
}

// wakeID marks the eventfd among the indices of directions in epoll events.
const wakeID = -1

// batch is how many packets one direction moves before the next has its turn.
const batch = 16

// longestSleep bounds a wait, in case a wake-up was lost.
const longestSleep = 100 * time.Millisecond

func newDriver(vnet bool, spin time.Duration) (*driver, error) {
	d := &driver{vnet: vnet, spin: spin, epoch: time.Now(), done: make(chan struct{})}
	var err error
	if d.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if d.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(d.ep)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if err = d.watch(d.wake, wakeID); err != nil {
		unix.Close(d.ep)
		unix.Close(d.wake)
		return nil, err
	}
	go d.run()
	return d, nil
}

func (d *driver) watch(fd, id int) error {
	err := unix.EpollCtl(d.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: int32(id)})
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (d *driver) now() ndn.Time { return ndn.Time(time.Since(d.epoch)) + 1 }

// add starts a direction from descriptor in to out.
func (d *driver) add(in, out int, p line.Params, seed, stream uint64) (*direction, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, err := line.New(p, &d.pool, seed, stream)
	if err != nil {
		return nil, err
	}
	if err := d.watch(in, len(d.dirs)); err != nil {
		return nil, err
	}
	x := &direction{Line: l, in: in, out: out, ready: true}
	d.dirs = append(d.dirs, x)
	return x, nil
}

// do runs f on the lines' state and lets the loop look at it again.
func (d *driver) do(f func(now ndn.Time)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.now())
	if !d.closed {
		unix.Write(d.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// remove stops a direction, so that its descriptors may be closed.
func (d *driver) remove(x *direction) {
	d.do(func(now ndn.Time) {
		x.SetState(now, line.BlackHole)
		x.in, x.out, x.ready = -1, -1, false
	})
}

// close ends the loop and waits for it. The directions' descriptors stay open.
func (d *driver) close() error {
	d.do(func(ndn.Time) { d.stop = true })
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	unix.Close(d.ep)
	unix.Close(d.wake)
	return d.err
}

// run is the loop. System calls that cannot block bypass the Go scheduler,
// which would otherwise take the processor away in the middle of a burst.
func (d *driver) run() {
	defer close(d.done)
	runtime.LockOSThread() // for good: the timer slack must not leak to others
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	// Beside four busy processes on two cores this halves the lateness or
	// better. A real-time class would starve the endpoints.
	unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	scratch := make([]byte, line.MaxPacket)
	events := make([]unix.EpollEvent, 64)
	for {
		d.mu.Lock()
		if d.stop {
			d.mu.Unlock()
			return
		}
		busy, next := d.pass(scratch)
		var ts unix.Timespec
		if !busy {
			ts = unix.NsecToTimespec(int64(min(max(0, next.Sub(d.now())-d.spin), longestSleep)))
		}
		d.mu.Unlock()

		n, errno := d.wait(events, &ts)
		if errno == unix.EINTR {
			continue
		}
		d.mu.Lock()
		if errno != 0 {
			d.err, d.stop = fmt.Errorf("epoll_pwait2: %w", errno), true
		}
		for _, e := range events[:n] {
			if e.Fd == wakeID {
				unix.Read(d.wake, scratch[:8])
			} else {
				d.dirs[e.Fd].ready = d.dirs[e.Fd].in >= 0
			}
		}
		d.mu.Unlock()
	}
}

// wait fills events; with a zero timeout it only looks.
func (d *driver) wait(events []unix.EpollEvent, ts *unix.Timespec) (n int, errno syscall.Errno) {
	var r uintptr
	if ts.Nano() > 0 {
		r, _, errno = syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(d.ep), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(ts)), 0, 0)
	} else {
		r, _, errno = syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(d.ep), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(ts)), 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(r), 0
}

// pass delivers what is due and takes in what has arrived, a batch per
// direction. It reports whether there is more to do at once, and otherwise when.
func (d *driver) pass(scratch []byte) (busy bool, next ndn.Time) {
	next = ndn.Never
	now := d.now()
	for _, x := range d.dirs {
		for k := 0; k < batch; k++ {
			b, ok := x.Deliver(now)
			if !ok {
				break
			}
			if _, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(x.out), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); errno != 0 {
				x.writeErrors++
			}
			if k&3 == 3 {
				now = d.now()
			}
		}
		for k := 0; x.ready && k < batch; k++ {
			n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(x.in), uintptr(unsafe.Pointer(&scratch[0])), uintptr(len(scratch)))
			if errno != 0 {
				x.ready = false
				break
			}
			now = d.now()
			if n > 0 {
				x.Push(now, d.pool.Packet(scratch[:n], d.vnet))
			}
		}
		busy = busy || x.ready
		next = min(next, x.Deadline())
	}
	return busy, next
}
