// Package dial opens a transport by its URI, and finds the local forwarder's.
package dial

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"ndnpop/face"
	"ndnpop/face/tcp"
	"ndnpop/face/udp"
	"ndnpop/face/unix"
	"ndnpop/face/websocket"
)

// Schemes that Open knows.
var schemes = []string{"unix", "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "ws", "wss"}

// DefaultPort of NDN over UDP and TCP.
const DefaultPort = "6363"

// Check reports whether Open knows what to do with a URI: its form and scheme
// are right. The error says what they should be.
func Check(uri string) error {
	scheme, _, ok := strings.Cut(uri, "://")
	switch {
	case !ok:
		return fmt.Errorf("%q is not a URI such as unix:///run/nfd/nfd.sock or tcp4://127.0.0.1:6363", uri)
	case !slices.Contains(schemes, scheme):
		return fmt.Errorf("unknown scheme %q in %q: choose one of %s", scheme, uri, strings.Join(schemes, ", "))
	}
	return nil
}

// Open connects to the forwarder at uri: unix:///run/nfd/nfd.sock,
// tcp4://192.0.2.7:6363, udp6://[2001:db8::7]:6363, and with a host name or
// without a port, which is then 6363; or ws://192.0.2.7:9696 and
// wss://example.com/ndn. An error names the URI.
func Open(uri string) (face.Server, error) {
	if err := Check(uri); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	var s face.Server
	var err error
	switch scheme {
	case "unix":
		s, err = unix.Dial(rest, unix.Options{})
	case "tcp", "tcp4", "tcp6":
		s, err = tcp.Dial(withPort(rest), tcp.Options{Family: scheme})
	case "ws", "wss":
		s, err = websocket.Dial(uri, websocket.Options{})
	default: // udp, udp4, udp6
		s, err = udp.Dial(withPort(rest), udp.Options{Family: scheme})
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", uri, err)
	}
	return s, nil
}

// withPort adds the default port to an authority that has none.
func withPort(host string) string {
	host = strings.TrimSuffix(host, "/")
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), DefaultPort)
}
