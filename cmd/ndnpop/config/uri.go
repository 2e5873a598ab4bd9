package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

const uriForms = "udp4://192.0.2.7:6363, udp6://[2001:db8::7]:6363, tcp4://…, tcp6://…, unix:///run/nfd/nfd.sock, ws://192.0.2.7:9696, wss://…"

// defaultPorts are those of URIs that name none.
var defaultPorts = map[string]string{"udp": "6363", "tcp": "6363", "ws": "80", "wss": "443"}

// checkURI checks the form of a face's URI and returns the peer, which is the
// same however the URI is written. Whether it exists is found out when the face
// is made.
func checkURI(s string) (peer string, err error) {
	scheme, rest, _ := strings.Cut(s, "://")
	switch scheme {
	case "unix":
		if !strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "?#") {
			return "", fmt.Errorf("%q needs an absolute path, such as unix:///run/nfd/nfd.sock", s)
		}
		return "unix://" + path.Clean(rest), nil
	case "ws", "wss":
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			return "", fmt.Errorf("%q must be %s://HOST, with a port and a path if needed", s, scheme)
		}
		authority, err := checkHost(s, scheme, u.Hostname(), u.Port())
		if err != nil {
			return "", err
		}
		u.Host = authority
		return strings.TrimSuffix(u.String(), "/"), nil
	case "udp", "tcp", "udp4", "tcp4", "udp6", "tcp6":
	default:
		if lower := strings.ToLower(scheme); slices.Contains([]string{"unix", "ws", "wss", "udp", "tcp", "udp4", "tcp4", "udp6", "tcp6"}, lower) {
			return "", fmt.Errorf("%q: %s must be in small letters", s, scheme)
		}
		return "", fmt.Errorf("%q is not a face URI, such as %s", s, uriForms)
	}
	rest = strings.TrimSuffix(rest, "/")
	if strings.Contains(rest, "@") {
		return "", fmt.Errorf("%q: a peer has no user and no password, must be %s://ADDRESS:PORT", s, scheme)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		// Without a port; an IPv6 address is in brackets all the same.
		if host, port, err = net.SplitHostPort(rest + ":"); err != nil {
			return "", fmt.Errorf("%q must be %s://ADDRESS:PORT", s, scheme)
		}
	} else if port == "" {
		return "", fmt.Errorf("%q must be %s://ADDRESS:PORT", s, scheme)
	}
	if host == "" || strings.ContainsAny(rest, "/?# \t") {
		return "", fmt.Errorf("%q must be %s://ADDRESS:PORT", s, scheme)
	}
	authority, err := checkHost(s, scheme[:3], host, port)
	if err != nil {
		return "", err
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return scheme + "://" + authority, nil
	}
	family := "6"
	if a.Unmap().Is4() {
		family = "4"
	}
	if want := scheme[3:]; want != "" && want != family {
		return "", fmt.Errorf("%q: %s is not an IPv%s address", s, a, want)
	}
	return scheme[:3] + family + "://" + authority, nil
}

// checkHost checks the address and port in a URI and returns them in the form
// that all ways to write them share.
func checkHost(uri, scheme, host, port string) (authority string, err error) {
	if port == "" {
		port = defaultPorts[scheme]
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("%q: port must be 1 to 65535", uri)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		switch a = a.Unmap(); {
		case a.IsUnspecified():
			return "", fmt.Errorf("%q: %s is no peer's address, only one to listen on", uri, a)
		case a.IsMulticast():
			return "", fmt.Errorf("%q: %s is a multicast address, for which faces.multicast makes faces", uri, a)
		}
		host = a.String()
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(n, 10)), nil
}
