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
	// Failed, if set before Serve, is told of each error of accept that may go
	// away by itself, such as want of descriptors; Serve goes on.
	Failed func(error)

	uri  string
	wrap func(net.Conn) (*Transport, error)

	mu     sync.Mutex
	l      net.Listener // guarded by mu
	ended  bool         // guarded by mu
	share  *share.Memory
	pool   buffers
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	close(l.closed)
	return l.l.Close()
}

// Replace has Serve go on with another socket, which the listener then owns,
// and closes the one before. What has been accepted stays.
func (l *Listener) Replace(by net.Listener) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = by.Close()
		return face.ErrClosed
	}
	old := l.l
	l.l = by
	return old.Close()
}

func (l *Listener) current() net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.l
}

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error {
	wait := time.Duration(0)
	for {
		from := l.current()
		conn, err := from.Accept()
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
		if from != l.current() {
			continue // replaced
		}
		if !passing(err) {
			return fmt.Errorf("accept on %s: %w", l.uri, err)
		}
		if l.Failed != nil {
			l.Failed(err)
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
