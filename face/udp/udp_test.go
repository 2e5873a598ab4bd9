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

func testCase(addr string, plain bool) facetest.Case { return mixedCase(addr, plain, plain) }

// mixedCase has one end plain and the other not, or both alike.
func mixedCase(addr string, plain, dialPlain bool) facetest.Case {
	return optionsCase(addr, udp.Options{Plain: plain}, udp.Options{Plain: dialPlain})
}

// groupCase has one group for all sockets of one kind.
func groupCase(addr string) facetest.Case {
	return optionsCase(addr, udp.Options{Group: udp.NewGroup(1)}, udp.Options{Group: udp.NewGroup(2)})
}

func optionsCase(addr string, o, do udp.Options) facetest.Case {
	listen := func(t testing.TB) *udp.Listener {
		l, err := udp.Listen(addr, o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return facetest.Case{
		Listen: func(t testing.TB) (face.Listener, func() (face.Server, error)) {
			l := listen(t)
			return l, func() (face.Server, error) { return udp.Dial(hostPort(l.URI()), do) }
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
			return udp.Dial(hostPort(l.URI()), do)
		},
		Datagram: true,
		Deaf:     o.Plain || runtime.GOOS != "linux",
	}
}

func TestConformance(t *testing.T) {
	t.Run("4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0", false)) })
	t.Run("6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0", false)) })
	t.Run("plain 4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0", true)) })
	t.Run("plain to fast", func(t *testing.T) { facetest.Run(t, mixedCase("127.0.0.1:0", false, true)) })
	t.Run("fast to plain", func(t *testing.T) { facetest.Run(t, mixedCase("127.0.0.1:0", true, false)) })
	t.Run("groups 4", func(t *testing.T) { facetest.Run(t, groupCase("127.0.0.1:0")) })
	t.Run("groups 6", func(t *testing.T) { facetest.Run(t, groupCase("[::1]:0")) })
	t.Run("plain 6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0", true)) })
}

func BenchmarkFrame(b *testing.B) {
	b.Run("8800", func(b *testing.B) { facetest.Benchmark(b, testCase("127.0.0.1:0", false), 8800) })
	b.Run("1400", func(b *testing.B) { facetest.Benchmark(b, testCase("127.0.0.1:0", false), 1400) })
	b.Run("plain 8800", func(b *testing.B) { facetest.Benchmark(b, testCase("127.0.0.1:0", true), 8800) })
}
