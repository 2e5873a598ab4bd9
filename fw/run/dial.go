package run

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"ndnpop/face"
	"ndnpop/face/dial"
	"ndnpop/face/tcp"
	"ndnpop/face/udp"
	"ndnpop/face/unix"
	"ndnpop/face/websocket"
)

// ErrURI is in the errors about a face URI that cannot be one.
var ErrURI = errors.New("not a face URI, such as udp4://192.0.2.7:6363, tcp6://[2001:db8::7]:6363, unix:///run/nfd/nfd.sock, ws://192.0.2.7:9696")

func splitURI(uri string) (scheme, rest string) {
	scheme, rest, _ = strings.Cut(uri, "://")
	return scheme, rest
}

func isDatagram(uri string) bool { return strings.HasPrefix(uri, "udp") }

// atOnce reports whether opening a transport to uri waits for nobody: neither the
// peer nor those who know the address of a host.
func atOnce(uri string) bool {
	_, rest := splitURI(uri)
	_, err := netip.ParseAddrPort(rest)
	return err == nil && isDatagram(uri)
}

// canonical checks the form of a URI and completes it: the family of an
// address, the default port. Host names stay.
func canonical(uri string) (string, error) {
	scheme, rest := splitURI(uri)
	switch scheme {
	case "unix":
		if !strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("%q: %w", uri, ErrURI)
		}
		return uri, nil
	case "ws", "wss":
		if u, err := url.Parse(uri); err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			return "", fmt.Errorf("%q: %w", uri, ErrURI)
		}
		return strings.TrimSuffix(uri, "/"), nil
	case "udp", "udp4", "udp6", "tcp", "tcp4", "tcp6":
	default:
		return "", fmt.Errorf("%q: %w", uri, ErrURI)
	}
	rest = strings.TrimSuffix(rest, "/")
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = strings.Trim(rest, "[]"), dial.DefaultPort
	}
	if host == "" || port == "" || port == "0" || strings.ContainsAny(host, "/@?#") {
		return "", fmt.Errorf("%q: %w", uri, ErrURI)
	}
	a, err := netip.ParseAddr(host)
	if err == nil {
		a = a.Unmap()
		if a.IsMulticast() {
			return "", fmt.Errorf("%s: %w", uri, ErrMulticast)
		}
		if a.IsUnspecified() {
			return "", fmt.Errorf("%s: no peer has this address: %w", uri, ErrURI)
		}
		family := "6"
		if a.Is4() {
			family = "4"
		}
		if f := scheme[3:]; f != "" && f != family {
			return "", fmt.Errorf("%q: %s is not an IPv%s address: %w", uri, a, f, ErrURI)
		}
		scheme, host = scheme[:3]+family, a.String()
	}
	full := scheme + "://" + net.JoinHostPort(host, port)
	if err == nil {
		if _, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err != nil {
			return "", fmt.Errorf("%q: %w", uri, ErrURI)
		}
	}
	return full, nil
}

// scopeOf is the scope that a transport to uri will have: local for Unix
// sockets and TCP over loopback addresses, as NFD has it.
func scopeOf(uri string) face.Scope {
	scheme, rest := splitURI(uri)
	if scheme == "unix" {
		return face.ScopeLocal
	}
	if a, err := netip.ParseAddrPort(rest); err == nil && a.Addr().IsLoopback() && strings.HasPrefix(scheme, "tcp") {
		return face.ScopeLocal
	}
	return face.ScopeNonLocal
}

// dial opens a transport. It ends early when the forwarder is closed.
func (f *Forwarder) dial(uri string, mtu int) (face.Server, error) {
	if f.opts.Dial != nil {
		return f.opts.Dial(f.ctx, uri, mtu)
	}
	scheme, rest := splitURI(uri)
	switch scheme {
	case "udp", "udp4", "udp6":
		to, err := udp.Resolve(f.ctx, scheme, rest)
		if err != nil {
			return nil, err
		}
		return udp.Dial(to.String(), udp.Options{MTU: mtu, Local: f.localFor(to.Addr()), Group: f.opts.UDP})
	case "tcp", "tcp4", "tcp6":
		return tcp.DialContext(f.ctx, rest, tcp.Options{Family: scheme})
	case "ws", "wss":
		return websocket.DialContext(f.ctx, uri, websocket.Options{})
	}
	return unix.Dial(rest, unix.Options{})
}
