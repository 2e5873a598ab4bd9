package udp_test

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hostPort(uri string) string { return uri[strings.Index(uri, "://")+3:] }

func testCase(addr string, plain bool) facetest.Case {
	o := udp.Options{Plain: plain}
	listen := func(t *testing.T) *udp.Listener {
		l, err := udp.Listen(addr, o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return facetest.Case{
		Listen: func(t *testing.T) (face.Listener, func() (face.Server, error)) {
			l := listen(t)
			return l, func() (face.Server, error) { return udp.Dial(hostPort(l.URI()), o) }
		},
		Raw: func(t *testing.T, l face.Listener) net.Conn {
			c, err := net.Dial("udp", hostPort(l.URI()))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Refused: func(t *testing.T) (face.Server, error) {
			l := listen(t)
			l.Close()
			return udp.Dial(hostPort(l.URI()), o)
		},
		Datagram: true,
		Deaf:     plain || runtime.GOOS != "linux",
	}
}

func TestConformance(t *testing.T) {
	t.Run("4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0", false)) })
	t.Run("6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0", false)) })
	t.Run("plain 4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0", true)) })
	t.Run("plain 6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0", true)) })
}
