package websocket

import (
	"context"
	"testing"

	ws "github.com/coder/websocket"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/internal/share"
)

// TestDeafPeersShareTheMemory: what waits for peers that do not read is bounded
// for all of them together, and given back when they go.
func TestDeafPeersShareTheMemory(t *testing.T) {
	l, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	l.share = share.New(most)
	accepted := make(chan *transport, 1)
	ended := make(chan error)
	go func() {
		ended <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr.(*transport)
			return new(facetest.Sink), nil
		})
	}()
	var b face.Frames
	for i := range 100 {
		facetest.Frame(&b, uint64(i), 8000)
	}
	var peers []*transport
	for range 8 {
		c, _, err := ws.Dial(context.Background(), l.URI(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		tr := <-accepted
		peers = append(peers, tr)
		for range 8 {
			tr.Send(&b)
		}
	}
	sum := int64(0)
	for _, tr := range peers {
		sum += tr.queued.Load()
	}
	if sum > most+8*(share.Least+8000) {
		t.Errorf("%d bytes wait, of at most %d", sum, most)
	}
	for _, tr := range peers {
		tr.Close()
	}
	l.Close()
	<-ended
	facetest.Eventually(t, "everything is given back", func() bool { return l.share.Used() == 0 })
}
