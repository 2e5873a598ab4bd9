// Package unix carries frames over Unix stream sockets.
package unix

import (
	"errors"
	"io/fs"

	"ndnpop/face"
)

// Options of a socket. The zero value is usable.
type Options struct {
	// Queue bounds the bytes that wait when the peer does not drain; 0 means
	// stream.DefaultQueue.
	Queue int
	// Mode of the socket file; 0 means 0666, so that every user's
	// applications may connect, as NFD has it.
	Mode fs.FileMode
}

// Listener accepts connections.
type Listener struct{}

var errNotYet = errors.New("unix: not yet")

// Listen makes a socket file at path. The directory is made if it does not
// exist. A socket file that nobody listens on is replaced; one that a process
// listens on is refused with a *LiveError.
func Listen(path string, o Options) (*Listener, error) { return nil, errNotYet }

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error { return errNotYet }

// URI implements face.Listener.
func (l *Listener) URI() string { return "" }

// Close implements face.Listener. It removes the socket file, unless another
// process has replaced it.
func (l *Listener) Close() error { return nil }

// Dial connects to the socket at path.
func Dial(path string, o Options) (face.Server, error) { return nil, errNotYet }
