package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"ndnpop/face/internal/facetest"
	"ndnpop/internal/testbin"
)

// unreachableBy sends the ICMP error of type 3 with a code about a datagram from
// one address of this host to another, which anybody can who forges its source.
func unreachableBy(t *testing.T, code byte, from, to netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		testbin.Need(t, fmt.Errorf("no raw socket: %w", err))
	}
	defer func() { _ = unix.Close(fd) }()
	p := make([]byte, 8+20+8)
	p[0], p[1] = 3, code
	ip := p[8:28]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], 20+8)
	src, dst := from.Addr().As4(), to.Addr().As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	udp := p[28:]
	binary.BigEndian.PutUint16(udp, from.Port())
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	binary.BigEndian.PutUint16(udp[4:], 8)
	binary.BigEndian.PutUint16(p[2:], checksum(p))
	if err := unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: src}); err != nil {
		t.Fatal(err)
	}
}

// checksum is that of IP and ICMP (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// No error that a stranger can send ends a listener, when it meets the receiver
// at work, who is told of it in place of data.
func TestListenerOutlivesICMP(t *testing.T) {
	l := listen(t, nil)
	s := l.sock.(*fast)
	rx := newMessages()
	var in arrivals
	for code := byte(0); code <= 15; code++ {
		if code == 4 {
			continue // the host would believe it, and send everybody less at a time
		}
		unreachableBy(t, code, l.local, netip.MustParseAddrPort("127.0.0.1:9"))
		facetest.Eventually(t, fmt.Sprintf("the error of code %d", code), func() bool {
			some, err := s.receive(rx, &in)
			if err != nil {
				t.Fatalf("code %d ends the listener: %v", code, err)
			}
			return some
		})
	}
}
