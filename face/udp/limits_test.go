package udp_test

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/udp"
	"ndnpop/ndn"
)

// served is a listener that is being served, and what it accepted.
type served struct {
	*udp.Listener
	mu    sync.Mutex
	peers []facetest.Side
}

func serve(t *testing.T, o udp.Options, accept func(n int) error) *served {
	t.Helper()
	l, err := udp.Listen("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Listener: l}
	done := make(chan error, 1)
	go func() {
		done <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := accept(len(s.peers)); err != nil {
				return nil, err
			}
			side := facetest.Side{Transport: tr, Sink: &facetest.Sink{Raw: true}}
			s.peers = append(s.peers, side)
			return side.Sink, nil
		})
	}()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; !errors.Is(err, face.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	return s
}

func (s *served) peer(i int) *facetest.Side {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.peers) {
		return nil
	}
	return &s.peers[i]
}

func always(int) error { return nil }

func rawDial(t *testing.T, l *udp.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", hostPort(l.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

var interest = []byte{0x05, 0x0b, 0x07, 0x03, 0x08, 0x01, 'A', 0x0a, 0x04, 1, 2, 3, 4}

func TestWhatIsDroppedIsCounted(t *testing.T) {
	for _, plain := range []bool{false, true} {
		s := serve(t, udp.Options{MaxPeers: 2, Plain: plain}, func(n int) error {
			if n == 1 {
				return errors.New("no")
			}
			return nil
		})
		a, b := rawDial(t, s.Listener), rawDial(t, s.Listener)
		// Not NDN, empty, too large: no peer.
		write(t, a, []byte("GET / HTTP/1.1"))
		write(t, a, nil)
		write(t, a, make([]byte, ndn.MaxPacketSize+1))
		write(t, a, make([]byte, 60000))
		facetest.Eventually(t, "counters", func() bool {
			c := s.Counters()
			return c.Foreign == 1 && c.Oversize == 2
		})
		if s.peer(0) != nil {
			t.Error("a peer was made")
		}
		write(t, a, interest)
		facetest.Eventually(t, "the first frame", func() bool { p := s.peer(0); return p != nil && p.Count() == 1 })
		write(t, b, interest)
		write(t, b, interest)
		facetest.Eventually(t, "refusal", func() bool { return s.Counters().Refused == 2 })
		if s.peer(0).Reason() != nil || s.Counters().OverLimit != 0 {
			t.Error("the other peer suffered")
		}
	}
}

func TestPeersAreBounded(t *testing.T) {
	s := serve(t, udp.Options{MaxPeers: 2}, always)
	var conns []net.Conn
	for i := range 3 {
		conns = append(conns, rawDial(t, s.Listener))
		write(t, conns[i], interest)
		facetest.Eventually(t, "the frame", func() bool {
			return i < 2 && s.peer(i) != nil || i == 2 && s.Counters().OverLimit == 1
		})
	}
	// The owner makes room.
	s.peer(0).Close()
	facetest.Eventually(t, "end", func() bool { return s.peer(0).Reason() != nil })
	write(t, conns[2], interest)
	facetest.Eventually(t, "the frame", func() bool { p := s.peer(2); return p != nil && p.Count() == 1 })
}

func TestAddressIsNotStolen(t *testing.T) {
	a, err := udp.Listen("127.0.0.1:0", udp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if b, err := udp.Listen(hostPort(a.URI()), udp.Options{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second listener: %v", err)
		b.Close()
	}
}

// A dialled face with the listener's address: its peer sees one address, and
// both get what is for them.
func TestDialFromListenersAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux")
	}
	here, there := serve(t, udp.Options{}, always), serve(t, udp.Options{}, always)
	d, err := udp.Dial(hostPort(there.URI()), udp.Options{Local: hostPort(here.URI())})
	if err != nil {
		t.Fatal(err)
	}
	side := facetest.Side{Transport: d, Sink: &facetest.Sink{Raw: true}}
	done := make(chan error)
	go func() { done <- d.Serve(side.Sink) }()
	f := face.Frames{Buf: interest, Ends: []int{len(interest)}}
	d.Send(&f)
	facetest.Eventually(t, "peer", func() bool { p := there.peer(0); return p != nil && p.Count() == 1 })
	if got := there.peer(0).Info().RemoteURI; got != here.URI() {
		t.Errorf("the peer sees %s instead of %s", got, here.URI())
	}
	there.peer(0).Send(&f)
	facetest.Eventually(t, "answer", func() bool { return side.Count() == 1 })
	if here.peer(0) != nil {
		t.Error("the listener got the answer")
	}
	write(t, rawDial(t, here.Listener), interest)
	facetest.Eventually(t, "somebody else", func() bool { p := here.peer(0); return p != nil && p.Count() == 1 })
	d.Close()
	<-done
}

func TestBuffersAreReported(t *testing.T) {
	for _, plain := range []bool{false, true} {
		l, err := udp.Listen("127.0.0.1:0", udp.Options{Plain: plain, ReadBuffer: 100_000, WriteBuffer: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		if r, w := l.Buffers(); r < 50_000 || w < 50_000 || r > 1<<20 || w > 1<<20 {
			t.Errorf("buffers of %d and %d bytes", r, w)
		}
		l.Close()
	}
}

func TestURIsAndMTU(t *testing.T) {
	s := serve(t, udp.Options{MTU: 1300}, always)
	d, err := udp.Dial(hostPort(s.URI()), udp.Options{MTU: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.MTU() != 2000 || d.Info().RemoteURI != s.URI() || d.Info().Scope != face.ScopeNonLocal || d.Info().Stream {
		t.Errorf("MTU %d, %+v", d.MTU(), d.Info())
	}
	f := face.Frames{Buf: interest, Ends: []int{len(interest)}}
	d.Send(&f)
	facetest.Eventually(t, "peer", func() bool { return s.peer(0) != nil })
	if p := s.peer(0); p.MTU() != 1300 || p.Info().LocalURI != s.URI() || p.Info().RemoteURI != d.Info().LocalURI {
		t.Errorf("MTU %d, %+v", p.MTU(), p.Info())
	}
	for _, bad := range []string{"", "127.0.0.1", "127.0.0.1:0", "0.0.0.0:6363", "nonsense:port"} {
		if _, err := udp.Dial(bad, udp.Options{}); err == nil {
			t.Errorf("dialled %q", bad)
		}
	}
	if _, err := udp.Listen("nonsense", udp.Options{}); err == nil {
		t.Error("listened on nonsense")
	}
	if _, err := udp.Dial(hostPort(s.URI()), udp.Options{Local: "nonsense"}); err == nil {
		t.Error("dialled from nonsense")
	}
}
