package tcp_test

import (
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hostPort(uri string) string { return uri[strings.Index(uri, "://")+3:] }

func testCase(addr string) facetest.Case {
	return facetest.Case{
		Listen: func(t testing.TB) (face.Listener, func() (face.Server, error)) {
			l, err := tcp.Listen(addr, tcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return l, func() (face.Server, error) { return tcp.Dial(hostPort(l.URI()), tcp.Options{}) }
		},
		Raw: func(t *testing.T, l face.Listener) net.Conn {
			c, err := net.Dial("tcp", hostPort(l.URI()))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Refused: func(t *testing.T) (face.Server, error) {
			l, err := tcp.Listen(addr, tcp.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			return tcp.Dial(hostPort(l.URI()), tcp.Options{})
		},
		Bounded: true,
	}
}

func TestConformance(t *testing.T) {
	t.Run("4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0")) })
	t.Run("6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0")) })
}

func BenchmarkFrame(b *testing.B) { facetest.Benchmark(b, testCase("127.0.0.1:0"), 8800) }

func TestInfo(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		c := testCase(addr)
		n := c.Open(t)
		d, a := n.Pair()
		// Loopback is local (NFD).
		if i := d.Info(); i.Scope != face.ScopeLocal || i.RemoteURI != n.L.URI() || i.LocalURI != a.Info().RemoteURI {
			t.Errorf("%+v", i)
		}
		if i := a.Info(); i.Scope != face.ScopeLocal || i.LocalURI != n.L.URI() {
			t.Errorf("%+v", i)
		}
	}
}

func TestBadAddresses(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1", "nonsense:1"} {
		if l, err := tcp.Listen(bad, tcp.Options{}); err == nil {
			l.Close()
			t.Errorf("listened on %q", bad)
		}
	}
}
