// Package tcp carries frames over TCP connections.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/face/stream"
)

// Options of a connection. The zero value is usable.
type Options struct {
	// Queue bounds the bytes that wait when the peer does not drain; 0 means
	// stream.DefaultQueue.
	Queue int
	// Failed is told of what keeps a listener from accepting for a while
	// (stream.Listener).
	Failed func(error)
	// Family is "tcp", "tcp4" or "tcp6"; empty means "tcp". It matters to
	// Dial, when a host has addresses of both.
	Family string
}

// A peer that vanished without a word is noticed after about half a minute of
// silence, or a minute of data that it does not acknowledge.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

const (
	userTimeout = time.Minute
	dialTimeout = 5 * time.Second
)

// Listener accepts connections.
type Listener struct{ *stream.Listener }

// Listen opens a socket on addr, e.g. 0.0.0.0:6363 or [::]:6363. An IPv6
// socket does not take IPv4.
func Listen(addr string, o Options) (*Listener, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: listen on %q: an address and port are needed, such as 0.0.0.0:6363: %w", addr, err)
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := lc.Listen(context.Background(), "tcp"+family(ap.Addr()), addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	wrap := func(c net.Conn) (*stream.Transport, error) { return wrap(c, o) }
	sl := stream.NewListener(l, uri(l.Addr()), wrap)
	sl.Failed = o.Failed
	return &Listener{sl}, nil
}

// Dial connects to remote, e.g. 192.0.2.7:6363, within 5 seconds. Host names
// are resolved.
func Dial(remote string, o Options) (face.Server, error) {
	return DialContext(context.Background(), remote, o)
}

// DialContext is Dial that ends early when ctx does.
func DialContext(ctx context.Context, remote string, o Options) (face.Server, error) {
	if o.Family == "" {
		o.Family = "tcp"
	}
	d := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}
	c, err := d.DialContext(ctx, o.Family, remote)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("tcp: %w: %w", face.ErrRefused, err)
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	return wrap(c, o)
}

func wrap(c net.Conn, o Options) (*stream.Transport, error) {
	tc := c.(*net.TCPConn)
	// Go turns Nagle's algorithm off itself.
	setUserTimeout(tc, userTimeout)
	info := face.Info{
		RemoteURI: uri(c.RemoteAddr()),
		LocalURI:  uri(c.LocalAddr()),
		Scope:     scope(c),
	}
	t, err := stream.New(tc, info, o.Queue)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("tcp: %w", err)
	}
	return t, nil
}

// scope is local if both ends are on the loopback interface (NFD,
// TcpChannel).
func scope(c net.Conn) face.Scope {
	if addrPort(c.LocalAddr()).Addr().IsLoopback() && addrPort(c.RemoteAddr()).Addr().IsLoopback() {
		return face.ScopeLocal
	}
	return face.ScopeNonLocal
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func family(a netip.Addr) string {
	if a.Unmap().Is4() {
		return "4"
	}
	return "6"
}

func uri(a net.Addr) string {
	ap := addrPort(a)
	return "tcp" + family(ap.Addr()) + "://" + ap.String()
}
