// Package tcp carries frames over TCP connections.
package tcp

import (
	"errors"

	"ndnpop/face"
)

// Options of a connection. The zero value is usable.
type Options struct {
	// Queue bounds the bytes that wait when the peer does not drain; 0 means
	// stream.DefaultQueue.
	Queue int
}

// Listener accepts connections.
type Listener struct{}

var errNotYet = errors.New("tcp: not yet")

// Listen opens a socket on addr, e.g. 0.0.0.0:6363 or [::]:6363. An IPv6
// socket does not take IPv4.
func Listen(addr string, o Options) (*Listener, error) { return nil, errNotYet }

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error { return errNotYet }

// URI implements face.Listener.
func (l *Listener) URI() string { return "" }

// Close implements face.Listener.
func (l *Listener) Close() error { return nil }

// Dial connects to remote, e.g. 192.0.2.7:6363, within 5 seconds. Host names
// are resolved.
func Dial(remote string, o Options) (face.Server, error) { return nil, errNotYet }
