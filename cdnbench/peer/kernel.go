package peer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// UDPBufferErrors is the number of datagrams that the kernel has dropped
// because a socket's buffer was full (UDP over IPv4 and IPv6).
func UDPBufferErrors() (uint64, error) {
	var sum uint64
	b, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		return 0, err
	}
	var head []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Udp:" {
			continue
		}
		if head == nil {
			head = f
			continue
		}
		for i, name := range head {
			if name != "RcvbufErrors" && name != "SndbufErrors" {
				continue
			}
			v, err := strconv.ParseUint(f[i], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/net/snmp, %s: %w", name, err)
			}
			sum += v
		}
	}
	b, err = os.ReadFile("/proc/net/snmp6")
	if err != nil {
		return sum, nil // no IPv6 here
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 2 && (f[0] == "Udp6RcvbufErrors" || f[0] == "Udp6SndbufErrors") {
			if v, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				sum += v
			}
		}
	}
	return sum, nil
}
