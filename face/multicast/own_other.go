//go:build !linux

package multicast

import "net"

// onlyOwn does nothing: other systems deliver only to sockets that have joined
// the group themselves.
func onlyOwn(*net.UDPConn, bool) error { return nil }
