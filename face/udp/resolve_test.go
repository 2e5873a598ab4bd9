package udp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
)

// TestNameWithoutAnswer: asking for the addresses of a host ends with the context.
func TestNameWithoutAnswer(t *testing.T) {
	asked := make(chan struct{}, 16)
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	defer func() { net.DefaultResolver = old }()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := Resolve(ctx, "udp", "host.example:6363")
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
}

// TestResolve: the family of an address must be what was asked for.
func TestResolve(t *testing.T) {
	for _, x := range []struct{ family, remote, want string }{
		{"udp", "192.0.2.1:6363", "192.0.2.1:6363"},
		{"udp4", "[::ffff:192.0.2.1]:6363", "192.0.2.1:6363"},
		{"udp6", "[2001:db8::1]:1", "[2001:db8::1]:1"},
		{"udp6", "192.0.2.1:6363", ""},
		{"udp4", "[2001:db8::1]:1", ""},
		{"udp", "192.0.2.1", ""},
		{"udp", "192.0.2.1:66666", ""},
		{"udp4", "localhost:6363", "127.0.0.1:6363"},
	} {
		to, err := Resolve(context.Background(), x.family, x.remote)
		if got := to.String(); err == nil && got != x.want || err != nil && x.want != "" {
			t.Errorf("%s %s: %s, %v, want %q", x.family, x.remote, got, err, x.want)
		}
	}
}
