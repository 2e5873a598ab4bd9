// Package udp carries frames in UDP datagrams: one socket that listens for
// many peers, and connected sockets for configured ones.
//
// On Linux a batch of frames of one size is one system call and one
// datagram to the kernel (GSO), and arrives as one (GRO); the path MTU is
// followed, never relying on IP fragmentation; ICMP errors are attributed to
// the peer they are about. Elsewhere, and with Options.Plain, one system call
// carries one datagram.
package udp

import (
	"errors"

	"ndnpop/face"
)

// Options of a socket. The zero value is usable.
type Options struct {
	// MTU bounds the frame size in bytes; 0 means ndn.MaxPacketSize. The path
	// may bound it further.
	MTU int
	// Local is the address that Dial sends from; empty lets the system
	// choose. It may be that of a Listener of this process, so that the peer
	// sees both as one.
	Local string
	// ReadBuffer and WriteBuffer are the socket's buffers in bytes, 0 means
	// DefaultBuffer. Without the privilege to exceed it, the system's maximum
	// (net.core.rmem_max) holds; Buffers tells what was reached.
	ReadBuffer, WriteBuffer int
	// MaxPeers bounds the peers of a Listener; 0 means 65536. When reached,
	// new ones are dropped and counted until one is closed.
	MaxPeers int
	// Family is "udp", "udp4" or "udp6"; empty means "udp". It matters to
	// Dial, when a host has addresses of both.
	Family string
	// Plain avoids everything that only Linux has.
	Plain bool
}

// DefaultBuffer is the default size of the socket buffers in bytes: some
// windows of 256 Data of 8 KB.
const DefaultBuffer = 8 << 20

// Listener is one socket that serves every peer that sends to it.
type Listener struct{}

var errNotYet = errors.New("udp: not yet")

// Listen opens a socket on addr, e.g. 0.0.0.0:6363 or [::]:6363. An IPv6
// socket does not take IPv4.
func Listen(addr string, o Options) (*Listener, error) { return nil, errNotYet }

// Serve implements face.Listener. Peers are made on demand.
func (l *Listener) Serve(accept face.Acceptor) error { return errNotYet }

// URI implements face.Listener.
func (l *Listener) URI() string { return "" }

// Close implements face.Listener.
func (l *Listener) Close() error { return nil }

// Buffers is the size of the socket's buffers in bytes, as reached.
func (l *Listener) Buffers() (read, write int) { return 0, 0 }

// Counters of a Listener. They only grow.
type Counters struct {
	Refused   uint64 // frames of peers that the Acceptor refused
	OverLimit uint64 // frames of new peers while there were MaxPeers
	Oversize  uint64 // datagrams larger than ndn.MaxPacketSize
}

// Counters returns a copy of the counters.
func (l *Listener) Counters() Counters { return Counters{} }

// Dial opens a socket that is connected to remote, e.g. 192.0.2.7:6363. Host
// names are resolved. Whether the peer is there is not known until it
// answers or ICMP refuses.
func Dial(remote string, o Options) (face.Server, error) { return nil, errNotYet }
