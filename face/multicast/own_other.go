//go:build !linux

package multicast

import (
	"net"
	"syscall"
)

// onlyOwn does nothing: other systems deliver only to sockets that have joined
// the group themselves.
func onlyOwn(*net.UDPConn, bool) error { return nil }

// early does nothing: other systems have no such option.
func early(string, string, syscall.RawConn) error { return nil }
