package mem_test

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listener makes a face.Listener of pairs, as the suite needs one.
type listener struct {
	peers chan face.Server
	once  sync.Once
	done  chan struct{}
}

func (l *listener) URI() string { return "mem://" }

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Serve(accept face.Acceptor) error {
	for {
		select {
		case s := <-l.peers:
			r, err := accept(s)
			if err != nil {
				s.Close()
				continue
			}
			go s.Serve(r)
		case <-l.done:
			return face.ErrClosed
		}
	}
}

func (l *listener) dial() (face.Server, error) {
	a, b := mem.Pair()
	l.peers <- b
	return a, nil
}

func listen(testing.TB) (face.Listener, func() (face.Server, error)) {
	l := &listener{peers: make(chan face.Server, 16), done: make(chan struct{})}
	return l, l.dial
}

func TestConformance(t *testing.T) {
	facetest.Run(t, facetest.Case{Listen: listen, Bounded: true})
}

func BenchmarkFrame(b *testing.B) {
	facetest.Benchmark(b, facetest.Case{Listen: listen}, 8800)
}
