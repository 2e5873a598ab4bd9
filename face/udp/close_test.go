package udp

import (
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
)

// closedCounter counts what a listener's peers are told.
type closedCounter struct{ accepted, closed atomic.Int64 }

func (c *closedCounter) Receive([][]byte) {}
func (c *closedCounter) Flush()           {}
func (c *closedCounter) Closed(error)     { c.closed.Add(1) }

// TestPeersHearOfTheEndOnce closes a listener and its peer at the same time:
// whoever is first, the peer's Receiver hears of it exactly once.
func TestPeersHearOfTheEndOnce(t *testing.T) {
	for range 300 {
		l, err := Listen("127.0.0.1:0", Options{})
		if err != nil {
			t.Fatal(err)
		}
		var c closedCounter
		peer := make(chan face.Transport, 1)
		ended := make(chan struct{})
		go func() {
			_ = l.Serve(func(p face.Transport) (face.Receiver, error) {
				c.accepted.Add(1)
				peer <- p
				return &c, nil
			})
			close(ended)
		}()
		d, err := Dial(l.URI()[len("udp4://"):], Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.Send(&face.Frames{Buf: []byte{0x64, 0}, Ends: []int{2}})
		p := <-peer
		closed := make(chan struct{})
		go func() { _ = p.Close(); close(closed) }()
		_ = l.Close()
		<-closed
		<-ended
		_ = d.Close()
		for end := time.Now().Add(10 * time.Second); c.closed.Load() != 1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("told %d times", c.closed.Load())
			}
		}
	}
}
