package stream

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/face/internal/share"
)

// Listener accepts connections. It implements face.Listener.
type Listener struct {
	l    net.Listener
	uri  string
	wrap func(net.Conn) (*Transport, error)

	share  *share.Memory
	pool   buffers
	once   sync.Once
	closed chan struct{}
}

// NewListener makes a listener of l and owns it. wrap makes the transport of
// an accepted connection; on an error it closes the connection.
func NewListener(l net.Listener, uri string, wrap func(net.Conn) (*Transport, error)) *Listener {
	return &Listener{l: l, uri: uri, wrap: wrap, share: share.New(ListenerQueue), closed: make(chan struct{})}
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

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error {
	wait := time.Duration(0)
	for {
		conn, err := l.l.Accept()
		if err == nil {
			wait = 0
			l.take(conn, accept)
			continue
		}
		select {
		case <-l.closed:
			return face.ErrClosed
		default:
		}
		if !passing(err) {
			return fmt.Errorf("accept on %s: %w", l.uri, err)
		}
		// Out of descriptors or memory: connections wait in the backlog until
		// others end.
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		select {
		case <-time.After(wait):
		case <-l.closed:
			return face.ErrClosed
		}
	}
}

func (l *Listener) take(conn net.Conn, accept face.Acceptor) {
	t, err := l.wrap(conn)
	if err != nil {
		return
	}
	t.share, t.in.pool = l.share, &l.pool
	r, err := accept(t)
	if err != nil {
		_ = t.Close()
		return
	}
	go t.Serve(r)
}

// passing reports whether an error of accept may go away by itself.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
