// Package outq reads how many bytes of a socket's outgoing queue the kernel
// still holds.
package outq

import (
	"sync"
	"syscall"
)

// Meter reads the queue of one socket, without allocating. It may be used by
// several goroutines.
type Meter struct {
	raw  syscall.RawConn
	read func(fd uintptr)

	mu sync.Mutex
	n  int
}

// New makes the meter of a socket.
func New(raw syscall.RawConn) *Meter {
	m := &Meter{raw: raw}
	m.read = func(fd uintptr) { m.n = length(int(fd)) }
	return m
}

// Len is the number of bytes: of TCP what is not acknowledged, of a Unix
// socket what the peer has not read, of UDP what has not left the host. It is
// 0 for a closed socket, and where the system does not tell.
func (m *Meter) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n = 0
	_ = m.raw.Control(m.read)
	return m.n
}
