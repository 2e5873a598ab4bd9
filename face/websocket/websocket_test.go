package websocket_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/websocket"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testCase(addr string) facetest.Case {
	return facetest.Case{
		Listen: func(t testing.TB) (face.Listener, func() (face.Server, error)) {
			l, err := websocket.Listen(addr, websocket.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return l, func() (face.Server, error) { return websocket.Dial(l.URI(), websocket.Options{}) }
		},
		Raw: func(t *testing.T, l face.Listener) net.Conn { return &raw{t: t, c: dialRaw(t, l, nil)} },
		Refused: func(t *testing.T) (face.Server, error) {
			l, err := websocket.Listen(addr, websocket.Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			return websocket.Dial(l.URI(), websocket.Options{})
		},
		Bounded:   true,
		Allocates: true,
	}
}

func dialRaw(t *testing.T, l face.Listener, header http.Header) *ws.Conn {
	t.Helper()
	c, err := tryRaw(l, header)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryRaw(l face.Listener, header http.Header) (*ws.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, _, err := ws.Dial(ctx, l.URI(), &ws.DialOptions{HTTPHeader: header,
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	return c, err
}

// raw is a peer that sends what it is told, one message for each element as
// far as there are any.
type raw struct {
	net.Conn
	t *testing.T
	c *ws.Conn
}

func (r *raw) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		size, err := ndn.PacketSize(p, ndn.MaxPacketSize)
		if err != nil || size == 0 || size > len(p) {
			size = len(p)
		}
		if err := r.c.Write(context.Background(), ws.MessageBinary, p[:size]); err != nil {
			return 0, err
		}
		p = p[size:]
	}
	return n, nil
}

func (r *raw) Read(p []byte) (int, error) {
	_, b, err := r.c.Read(context.Background())
	return copy(p, b), err
}

func (r *raw) Close() error { return r.c.CloseNow() }

func TestConformance(t *testing.T) {
	t.Run("4", func(t *testing.T) { facetest.Run(t, testCase("127.0.0.1:0")) })
	t.Run("6", func(t *testing.T) { facetest.Run(t, testCase("[::1]:0")) })
}

func BenchmarkFrame(b *testing.B) { facetest.Benchmark(b, testCase("127.0.0.1:0"), 8800) }

func TestInfo(t *testing.T) {
	c := testCase("127.0.0.1:0")
	n := c.Open(t)
	d, a := n.Pair()
	if i := d.Info(); i.Scope != face.ScopeNonLocal || i.RemoteURI != n.L.URI() || i.LocalURI != a.Info().RemoteURI {
		t.Errorf("%+v", i)
	}
	if i := a.Info(); i.Scope != face.ScopeNonLocal || i.LocalURI != n.L.URI() || !strings.HasPrefix(i.RemoteURI, "wsclient://127.0.0.1:") {
		t.Errorf("%+v", i)
	}
}

// TestMessages: each binary message is one packet; anything else ends the
// connection and no other.
func TestMessages(t *testing.T) {
	c := testCase("127.0.0.1:0")
	n := c.Open(t)
	_, other := n.Pair()
	var two face.Frames
	facetest.Frame(&two, 1, 20)
	facetest.Frame(&two, 2, 20)
	for _, m := range []struct {
		name string
		typ  ws.MessageType
		data []byte
	}{
		{"text", ws.MessageText, two.Frame(0)},
		{"two packets", ws.MessageBinary, two.Buf},
		{"half a packet", ws.MessageBinary, two.Buf[:10]},
		{"empty", ws.MessageBinary, nil},
		{"too large", ws.MessageBinary, make([]byte, ndn.MaxPacketSize+1)},
		{"huge", ws.MessageBinary, make([]byte, 1<<20)},
	} {
		before := len(n.Accepted())
		peer := dialRaw(t, n.L, nil)
		_ = peer.Write(context.Background(), m.typ, m.data)
		facetest.Eventually(t, "accept", func() bool { return len(n.Accepted()) > before })
		x := n.Accepted()[before]
		facetest.Eventually(t, "end", func() bool { return x.Reason() != nil })
		if !errors.Is(x.Reason(), face.ErrFraming) || x.Count() != 0 {
			t.Errorf("%s: %v, %d frames", m.name, x.Reason(), x.Count())
		}
		_ = peer.CloseNow()
	}
	if other.Reason() != nil {
		t.Errorf("another peer ended: %v", other.Reason())
	}
}

// TestOrigins: a page of another host may connect only if the operator says
// so; programs send no origin.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		allowed []string
		origin  string
		ok      bool
	}{
		{nil, "", true},
		{nil, "https://evil.example", false},
		{nil, "null", false},
		{[]string{"good.example"}, "https://good.example", true},
		{[]string{"good.example"}, "https://evil.example", false},
		{[]string{"*.good.example"}, "https://www.good.example", true},
		{[]string{"https://good.example"}, "http://good.example", false},
		{[]string{"*"}, "https://evil.example", true},
		{[]string{"*"}, "null", true},
	} {
		tc := testCase("127.0.0.1:0")
		tc.Listen = func(t testing.TB) (face.Listener, func() (face.Server, error)) {
			l, err := websocket.Listen("127.0.0.1:0", websocket.Options{Origins: c.allowed})
			if err != nil {
				t.Fatal(err)
			}
			return l, nil
		}
		n := tc.Open(t)
		h := http.Header{}
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		conn, err := tryRaw(n.L, h)
		if (err == nil) != c.ok {
			t.Errorf("origin %q with %q: %v", c.origin, c.allowed, err)
		}
		if conn != nil {
			_ = conn.CloseNow()
		}
	}
}

// TestPlainHTTP: what is no handshake is answered and costs nothing.
func TestPlainHTTP(t *testing.T) {
	c := testCase("127.0.0.1:0")
	n := c.Open(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http" + strings.TrimPrefix(n.L.URI(), "ws") + "/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusUpgradeRequired || len(n.Accepted()) != 0 {
		t.Errorf("status %d, %d accepted", r.StatusCode, len(n.Accepted()))
	}
}

// TestSecure: wss needs a certificate that the system trusts.
func TestSecure(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	if c, err := websocket.Dial("wss"+strings.TrimPrefix(s.URL, "https"), websocket.Options{}); err == nil {
		_ = c.Close()
		t.Error("an unknown certificate was trusted")
	} else if !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1", "nonsense:1"} {
		if l, err := websocket.Listen(bad, websocket.Options{}); err == nil {
			l.Close()
			t.Errorf("listened on %q", bad)
		}
	}
	for _, bad := range []string{"", "ws://", "http://127.0.0.1:1", "ws:/x", "ws://%zz"} {
		if c, err := websocket.Dial(bad, websocket.Options{}); err == nil {
			_ = c.Close()
			t.Errorf("dialled %q", bad)
		}
	}
}

// TestWriteOrder: what was queued while others wrote comes in order and whole.
func TestWriteOrder(t *testing.T) {
	c := testCase("127.0.0.1:0")
	n := c.Open(t)
	d, a := n.Pair()
	var b face.Frames
	for i := range 200 {
		b.Reset()
		facetest.Frame(&b, uint64(i+1), 8000)
		if d.Send(&b) != 0 {
			t.Fatal("dropped")
		}
		if !bytes.Equal(b.Frame(0)[:1], []byte{byte(ndn.TypeData)}) {
			t.Fatal("the batch was changed")
		}
	}
	facetest.Eventually(t, "all", func() bool { return a.Count() == 201 })
}
