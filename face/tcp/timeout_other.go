//go:build !linux

package tcp

import (
	"net"
	"time"
)

// setUserTimeout does nothing: the system's own limit holds.
func setUserTimeout(*net.TCPConn, time.Duration) {}
