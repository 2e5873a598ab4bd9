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
	"ndnpop/face/crowd"
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
	visitors := crowd.New(l.l, handshakes)
	visitors.Failed = l.o.Failed
	var mu sync.Mutex // an Acceptor is called by one goroutine at a time
	opts := &websocket.AcceptOptions{OriginPatterns: l.o.Origins}
	if slices.Contains(opts.OriginPatterns, "*") {
		opts.InsecureSkipVerify = true
	}
	srv := &http.Server{
		ReadHeaderTimeout: handshakeTimeout, IdleTimeout: time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog:  log.New(io.Discard, "", 0), // peers' faults
		ConnState: visitors.Changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			under, _ := r.Context().Value(connKey{}).(net.Conn)
			defer visitors.Leave(under)
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
			visitors.Leave(under) // a face, whose number the acceptor bounds
			_ = t.Serve(recv)
		}),
	}
	srv.SetKeepAlivesEnabled(false)
	err := srv.Serve(visitors)
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
