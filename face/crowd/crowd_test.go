package crowd

import (
	"net"
	"net/http"
	"testing"
)

// remote is a connection of which only the other end matters.
type remote struct {
	net.Conn
	addr string
}

func (r *remote) RemoteAddr() net.Addr { return r }
func (r *remote) Network() string      { return "tcp" }
func (r *remote) String() string       { return r.addr }

func conn(host string) net.Conn { return &remote{addr: host} }

// TestWhoGoes when there are too many.
func TestWhoGoes(t *testing.T) {
	const most = 4
	l := New(nil, most)
	a, b := conn("192.0.2.1:1"), conn("192.0.2.2:1")
	many := []net.Conn{conn("[2001:db8::1]:1"), conn("[2001:db8::2]:1")} // one host
	for i, c := range []net.Conn{a, b, many[0], many[1]} {
		if v := l.enter(c); v != nil {
			t.Fatalf("connection %d had somebody go", i)
		}
	}
	l.Changed(many[0], http.StateActive)
	l.Changed(a, http.StateActive)
	for i, c := range []struct {
		enters, goes net.Conn
	}{
		{conn("192.0.2.4:1"), many[1]}, // of the host with the most, who asks nothing
		{conn("192.0.2.5:1"), b},       // the oldest that asks nothing
	} {
		if v := l.enter(c.enters); v != c.goes {
			t.Errorf("%d: %v goes", i, v)
		}
	}
	l.Changed(many[0], http.StateClosed)
	l.Changed(a, http.StateHijacked)
	if len(l.conns) != most-1 {
		t.Errorf("%d connections", len(l.conns))
	}
	l.Leave(a)
	l.Leave(b) // has gone already
	if len(l.conns) != most-2 || len(l.hosts) != most-2 {
		t.Errorf("%d connections of %d hosts", len(l.conns), len(l.hosts))
	}
	// All are being answered, and the new one is not yet: it stays.
	for range 2 {
		l.enter(conn("192.0.2.6:1"))
	}
	for c := range l.conns {
		l.Changed(c, http.StateActive)
	}
	last := conn("192.0.2.7:1")
	if v := l.enter(last); v == last || v == nil {
		t.Errorf("%v goes", v)
	}
}
