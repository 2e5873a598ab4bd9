package websocket

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
)

// TestSilentConnectionsMakeRoom: those that begin no handshake, however many, keep
// nobody out, and nobody's face ends for them.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	l, err := Listen("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	accepted, ended := make(chan face.Transport, 2*handshakes), make(chan error)
	go func() {
		ended <- l.Serve(func(tr face.Transport) (face.Receiver, error) {
			accepted <- tr
			return new(facetest.Sink), nil
		})
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// More faces than there may be handshakes.
	var faces []*ws.Conn
	open := func() {
		t.Helper()
		c, _, err := ws.Dial(ctx, l.URI(), nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := <-accepted
		faces = append(faces, c)
		t.Cleanup(func() { _ = c.CloseNow(); _ = tr.Close() })
	}
	for range handshakes + 8 {
		open()
	}
	var silent []net.Conn
	for range 4 * handshakes {
		c, err := net.Dial("tcp", strings.TrimPrefix(l.URI(), "ws://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	if err := silent[0].SetReadDeadline(time.Now().Add(handshakeTimeout / 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the first does not make room")
	}
	begun := time.Now()
	open()
	if d := time.Since(begun); d >= handshakeTimeout {
		t.Errorf("a new one waited for others to time out: %v", d)
	}
	for _, c := range faces {
		if err := c.Write(ctx, ws.MessageBinary, []byte{0x64, 0}); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	<-ended
}
