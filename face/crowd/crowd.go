// Package crowd bounds the connections of an HTTP server that strangers reach, so
// that whoever connects and does nothing, or reads slowly, keeps nobody else out.
package crowd

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Listener has a bounded number of connections at a time. For one more, another is
// closed: of the host that has the most, the one that asks nothing for the longest,
// or else that is being answered for the longest.
type Listener struct {
	net.Listener
	// Failed, if set, is told of each error of accept; the server goes on after
	// those that may go away by themselves, such as want of descriptors.
	Failed func(error)
	most   int

	mu    sync.Mutex
	conns map[net.Conn]*visitor
	hosts map[netip.Prefix]int // connections of each
}

type visitor struct {
	host  netip.Prefix
	busy  bool      // is being answered
	since time.Time // is or is not
}

// New makes a Listener of l that has most connections.
func New(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, most: most, conns: map[net.Conn]*visitor{}, hosts: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		if l.Failed != nil && !errors.Is(err, net.ErrClosed) {
			l.Failed(err)
		}
		return nil, err
	}
	if v := l.enter(c); v != nil {
		_ = v.Close()
	}
	return c, nil
}

// hostOf is an IPv4 address, or 64 bits of an IPv6 address, which is what one host
// may choose from.
func hostOf(a net.Addr) netip.Prefix {
	ap, _ := netip.ParseAddrPort(a.String())
	ip := ap.Addr().Unmap().WithZone("")
	p, _ := ip.Prefix(min(ip.BitLen(), 64)) // there are so many bits
	return p
}

// enter takes in a connection, and returns the one that must make room.
func (l *Listener) enter(c net.Conn) (victim net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &visitor{host: hostOf(c.RemoteAddr()), since: time.Now()}
	l.conns[c] = n
	l.hosts[n.host]++
	if len(l.conns) <= l.most {
		return nil
	}
	var worst *visitor
	for c, v := range l.conns {
		if v != n && (worst == nil || l.worse(v, worst)) {
			victim, worst = c, v
		}
	}
	l.leave(victim)
	return victim
}

// worse reports whether a should go before b.
func (l *Listener) worse(a, b *visitor) bool {
	switch na, nb := l.hosts[a.host], l.hosts[b.host]; {
	case na != nb:
		return na > nb
	case a.busy != b.busy:
		return b.busy
	}
	return a.since.Before(b.since)
}

// leave forgets a connection; the lock is held.
func (l *Listener) leave(c net.Conn) {
	v := l.conns[c]
	if v == nil {
		return
	}
	delete(l.conns, c)
	if l.hosts[v.host]--; l.hosts[v.host] == 0 {
		delete(l.hosts, v.host)
	}
}

// Leave has a connection not count any more: it has ended, or somebody else bounds
// it.
func (l *Listener) Leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(c)
}

// Changed is to be the server's ConnState. A hijacked connection stays until Leave.
func (l *Listener) Changed(c net.Conn, s http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch v := l.conns[c]; {
	case v == nil:
	case s == http.StateActive, s == http.StateIdle:
		v.busy, v.since = s == http.StateActive, time.Now()
	case s == http.StateClosed:
		l.leave(c)
	}
}
