package udp

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Group receives for several sockets by few goroutines. What packets of two
// sockets have in common, such as the tables of a forwarder, then stays with
// one processor, and all that has come meanwhile costs one wake-up. It holds
// nothing while no socket is served.
type Group struct {
	loops []*loop
	next  atomic.Uint32
}

// NewGroup makes a group in which up to n sockets are received from at a time,
// each always by the same one of n receivers. 0 means one for two processors:
// others have something to do as well, and where all packets meet at one lock,
// more receivers share only the work of the kernel.
func NewGroup(n int) *Group {
	if n <= 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	g := &Group{loops: make([]*loop, n)}
	for i := range g.loops {
		g.loops[i] = newLoop()
	}
	return g
}

// loop chooses who receives for the next socket.
func (g *Group) loop() *loop {
	if g == nil {
		return newLoop()
	}
	return g.loops[(g.next.Add(1)-1)%uint32(len(g.loops))]
}

const (
	// roundSockets is how many sockets are received from before what their
	// packets caused is sent. Others wait for their turn.
	roundSockets = 8
	// rxMessages is how many messages are taken from a socket in its turn.
	rxMessages = 16
	// A received message may hold as many datagrams as fit into 64 KB.
	rxMessage = 64 << 10
)

// loop receives for its members. One of the calls of serve does so at a time,
// for all; it passes the duty on when its own member has ended.
//
// It waits with an epoll instance of its own (epoll(7)), for which the runtime
// waits as for a socket. A member that was found ready is not reported again
// (EPOLLONESHOT) until it was found empty: while the loop is at work, what
// arrives wakes nobody.
type loop struct {
	duty chan struct{}

	mu      sync.Mutex
	serving int             // calls of serve
	epoll   *os.File        // nil while nobody calls serve
	fd      int             // of epoll
	raw     syscall.RawConn // of epoll
	members map[uint64]*member
	last    uint64    // number of a member
	asked   []*member // whose handler wants to be looked at

	// Of whoever has the duty.
	active  []*member
	events  [roundSockets]unix.EpollEvent
	n       int // of them
	waitFn  func(fd uintptr) bool
	lookFn  func(fd uintptr)
	in      arrivals
	rx      *messages
	pending []*member // got packets in this round
}

// member is a socket that is served.
type member struct {
	s      *fast
	h      handler
	number uint64
	done   chan struct{} // closed at its end
	err    error         // why, nil if its handler wanted it

	active bool
	failed bool // there is something in the socket's error queue

	op    int // argument of ctlFn
	event unix.EpollEvent
	ctlFn func(fd uintptr)
	errno error
}

func newLoop() *loop {
	l := &loop{duty: make(chan struct{}, 1), members: make(map[uint64]*member), active: make([]*member, 0, roundSockets)}
	l.waitFn = func(fd uintptr) bool { return l.look(int(fd)) }
	l.lookFn = func(fd uintptr) { l.look(int(fd)) }
	return l
}

// serve receives for s until it is closed or h is over.
func (l *loop) serve(s *fast, h handler) error {
	m, err := l.add(s, h)
	if err != nil {
		return err
	}
	defer l.leave()
	for {
		select {
		case <-m.done:
			return m.err
		case l.duty <- struct{}{}:
			l.run(m)
			<-l.duty
		}
	}
}

// add makes s a member.
func (l *loop) add(s *fast, h handler) (*member, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoll == nil {
		if err := l.open(); err != nil {
			return nil, err
		}
	}
	l.last++
	m := &member{s: s, h: h, number: l.last, done: make(chan struct{})}
	m.event = unix.EpollEvent{Fd: int32(uint32(m.number)), Pad: int32(m.number >> 32)}
	m.ctlFn = func(fd uintptr) { m.errno = unix.EpollCtl(l.fd, m.op, int(fd), &m.event) }
	if err := m.ctl(unix.EPOLL_CTL_ADD, unix.EPOLLIN|unix.EPOLLONESHOT); err != nil {
		if l.serving == 0 {
			l.close()
		}
		return nil, err
	}
	l.members[m.number] = m
	l.serving++
	s.member.Store(m)
	// What happened before is looked at now.
	l.asked = append(l.asked, m)
	_ = l.epoll.SetReadDeadline(time.Unix(1, 0))
	return m, nil
}

func (l *loop) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serving--; l.serving == 0 {
		l.close()
	}
}

func (l *loop) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// The runtime waits for non-blocking files only.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	l.fd, l.epoll = fd, os.NewFile(uintptr(fd), "epoll")
	l.raw, err = l.epoll.SyscallConn()
	if err != nil {
		l.close()
	}
	return err
}

// close gives back what the loop needs to receive. Nobody has the duty.
func (l *loop) close() {
	_ = l.epoll.Close()
	l.epoll, l.asked = nil, nil
	l.rx, l.in = nil, arrivals{}
}

// ctl changes what is waited for at m's socket.
func (m *member) ctl(op int, on uint32) error {
	m.op, m.event.Events = op, on
	if err := m.s.raw.Control(m.ctlFn); err != nil {
		return err
	}
	return m.errno
}

// ask makes the loop look at m's handler.
func (l *loop) ask(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoll != nil {
		l.asked = append(l.asked, m)
		_ = l.epoll.SetReadDeadline(time.Unix(1, 0))
	}
}

// run receives until own has ended.
func (l *loop) run(own *member) {
	if l.rx == nil {
		l.rx = newMessages()
	}
	for {
		if l.attend(); own.ended() {
			return
		}
		switch err := l.wait(); {
		case err == nil:
			l.round()
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Somebody asks. What is asked after this sets it again.
			_ = l.epoll.SetReadDeadline(time.Time{})
		default:
			l.end(own, err)
		}
	}
}

// attend looks at the handlers that wish it.
func (l *loop) attend() {
	l.mu.Lock()
	asked := l.asked
	l.asked = nil
	l.mu.Unlock()
	for _, m := range asked {
		if !m.ended() && m.h.over() {
			l.end(m, nil)
		}
	}
}

func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// wait adds members that are ready to the active ones. It waits for some if
// there are none.
func (l *loop) wait() error {
	l.n = 0
	var err error
	if len(l.active) > 0 {
		err = l.raw.Control(l.lookFn)
	} else {
		err = l.raw.Read(l.waitFn)
	}
	if err != nil || l.n == 0 {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.n {
		e := &l.events[i]
		m := l.members[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
		if m == nil {
			continue
		}
		m.failed = e.Events&unix.EPOLLERR != 0
		if !m.active {
			m.active = true
			l.active = append(l.active, m)
		}
	}
	return nil
}

// look asks which members are ready, of as many as there is room for.
func (l *loop) look(epoll int) bool {
	for {
		n, err := unix.EpollWait(epoll, l.events[:roundSockets-len(l.active)], 0)
		if err == unix.EINTR {
			continue
		}
		l.n = max(n, 0)
		return l.n > 0
	}
}

// round takes what the active members have, once each.
func (l *loop) round() {
	for i := 0; i < len(l.active); i++ {
		m := l.active[i]
		if m.failed {
			// Otherwise the socket stays ready.
			m.failed = false
			m.s.drainErrors()
		}
		some, err := m.s.receive(l.rx, &l.in)
		switch {
		case err != nil:
			l.end(m, err)
			i--
		case !some:
			l.rest(m)
			i--
		default:
			m.h.arrived(&l.in)
			l.pending = append(l.pending, m)
		}
	}
	for i, m := range l.pending {
		m.h.flush()
		l.pending[i] = nil
	}
	l.pending = l.pending[:0]
	if len(l.active) == roundSockets {
		// Whoever else is ready comes first.
		for len(l.active) > 0 {
			l.rest(l.active[0])
		}
	}
}

// rest lets the loop wait for an active member again.
func (l *loop) rest(m *member) {
	l.deactivate(m)
	if err := m.ctl(unix.EPOLL_CTL_MOD, unix.EPOLLIN|unix.EPOLLONESHOT); err != nil {
		l.end(m, err)
	}
}

func (l *loop) deactivate(m *member) {
	if m.active {
		m.active = false
		i := slices.Index(l.active, m)
		l.active = slices.Delete(l.active, i, i+1)
	}
}

// end ends the service of a member.
func (l *loop) end(m *member, err error) {
	l.deactivate(m)
	// It fails if the socket was closed, which has the same effect.
	_ = m.ctl(unix.EPOLL_CTL_DEL, 0)
	l.mu.Lock()
	delete(l.members, m.number)
	l.mu.Unlock()
	m.err = err
	close(m.done)
}
