package daemon

import (
	"net"
	"net/http"
	"sync"
	"time"

	"ndnpop/fw/run"
)

// crowd is the listener of the admin server. Of its connections there are most at
// a time; for one more, another is closed: of the host that has the most, the one
// that asks nothing for the longest, or else that is being answered for the
// longest. So whoever connects and does nothing, or reads slowly, takes places of
// its own, and a scraper is served.
type crowd struct {
	net.Listener
	most   int
	failed func(error)

	mu    sync.Mutex
	conns map[net.Conn]*visitor
	hosts map[string]int
}

type visitor struct {
	host  string
	busy  bool      // is being answered
	since time.Time // is or is not
}

func newCrowd(l net.Listener, most int, failed func(error)) *crowd {
	return &crowd{Listener: l, most: most, failed: failed, conns: map[net.Conn]*visitor{}, hosts: map[string]int{}}
}

// Accept implements net.Listener.
func (l *crowd) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		l.failed(err)
		return nil, err
	}
	if v := l.enter(c); v != nil {
		_ = v.Close()
	}
	return c, nil
}

// enter takes in a connection, and returns the one that must make room.
func (l *crowd) enter(c net.Conn) (victim net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := &visitor{host: run.HostOf("tcp://" + c.RemoteAddr().String()), since: time.Now()}
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
func (l *crowd) worse(a, b *visitor) bool {
	switch na, nb := l.hosts[a.host], l.hosts[b.host]; {
	case na != nb:
		return na > nb
	case a.busy != b.busy:
		return b.busy
	}
	return a.since.Before(b.since)
}

// leave forgets a connection; the lock is held.
func (l *crowd) leave(c net.Conn) {
	v := l.conns[c]
	if v == nil {
		return
	}
	delete(l.conns, c)
	if l.hosts[v.host]--; l.hosts[v.host] == 0 {
		delete(l.hosts, v.host)
	}
}

// changed is the server's ConnState.
func (l *crowd) changed(c net.Conn, s http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch v := l.conns[c]; {
	case v == nil, s == http.StateNew:
	case s == http.StateActive, s == http.StateIdle:
		v.busy, v.since = s == http.StateActive, time.Now()
	default:
		l.leave(c)
	}
}
