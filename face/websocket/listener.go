package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"ndnpop/face"
	"ndnpop/face/internal/share"
)

// Listener accepts WebSocket connections at every path. It implements
// face.Listener.
type Listener struct {
	l   net.Listener
	o   Options
	uri string

	share  *share.Memory
	once   sync.Once
	closed chan struct{}
}

// Listen opens a socket on addr, e.g. 0.0.0.0:9696 or [::]:9696. An IPv6
// socket does not take IPv4.
func Listen(addr string, o Options) (*Listener, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("websocket: listen on %q: an address and port are needed, such as 0.0.0.0:9696: %w", addr, err)
	}
	family := "tcp6"
	if ap.Addr().Unmap().Is4() {
		family = "tcp4"
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	l, err := lc.Listen(context.Background(), family, addr)
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	return &Listener{l: l, o: o, uri: "ws://" + addrOf(l.Addr()), share: share.New(ListenerQueue), closed: make(chan struct{})}, nil
}

// URI implements face.Listener.
func (l *Listener) URI() string { return l.uri }

// Close implements face.Listener.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		close(l.closed)
		err = l.l.Close()
	})
	return err
}

// connKey finds the connection of a request.
type connKey struct{}

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error {
	var mu sync.Mutex // an Acceptor is called by one goroutine at a time
	opts := &websocket.AcceptOptions{OriginPatterns: l.o.Origins}
	if slices.Contains(opts.OriginPatterns, "*") {
		opts.InsecureSkipVerify = true
	}
	srv := &http.Server{
		ReadHeaderTimeout: handshakeTimeout, IdleTimeout: time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // peers' faults
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			under, _ := r.Context().Value(connKey{}).(net.Conn)
			// It answers what is no handshake, and pages that may not connect.
			c, err := websocket.Accept(w, r, opts)
			if err != nil {
				return
			}
			info := face.Info{RemoteURI: "wsclient://" + addrOf(under.RemoteAddr()), LocalURI: "ws://" + addrOf(under.LocalAddr())}
			t, err := newTransport(c, under, info, l.o)
			if err != nil {
				return
			}
			t.share = l.share
			mu.Lock()
			recv, err := accept(t)
			mu.Unlock()
			if err != nil {
				_ = c.Close(websocket.StatusTryAgainLater, "too many faces")
				_ = t.Close()
				return
			}
			_ = t.Serve(recv)
		}),
	}
	srv.SetKeepAlivesEnabled(false)
	err := srv.Serve(&limited{Listener: l.l, places: make(chan struct{}, l.o.MaxConns), closed: l.closed, failed: l.o.Failed})
	// Handshakes that are under way end; connections that are faces do not.
	_ = srv.Close()
	select {
	case <-l.closed:
		return face.ErrClosed
	default:
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = face.ErrClosed
	}
	return fmt.Errorf("websocket: accept on %s: %w", l.uri, err)
}

// limited is a listener that has a bounded number of connections; others wait
// in the backlog.
type limited struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	failed func(error)
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		if l.failed != nil && !errors.Is(err, net.ErrClosed) {
			l.failed(err) // the server waits a little, and tries again
		}
		return nil, err
	}
	return &place{TCPConn: c.(*net.TCPConn), free: sync.OnceFunc(func() { <-l.places })}, nil
}

// place is a connection that gives its place back.
type place struct {
	*net.TCPConn
	free func()
}

// Close implements net.Conn.
func (p *place) Close() error {
	defer p.free()
	return p.TCPConn.Close()
}
