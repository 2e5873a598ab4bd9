package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/dial"
	"ndnpop/face/unix"
	"ndnpop/fw/run"
	"ndnpop/internal/testbin"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
	"ndnpop/ndn"
)

// TestWebSocketListener: a client over WebSocket gets an answer, has no local
// scope, and so no management.
func TestWebSocketListener(t *testing.T) {
	addr := free(t)
	d, _ := startDaemon(t, quiet+fmt.Sprintf("faces.unix.path = \"\"\nfaces.websocket.listen = [%q]\n", addr))
	tr, err := dial.Open("ws://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	recv := &counter{}
	done := make(chan struct{})
	go func() { _ = tr.Serve(recv); close(done) }()
	defer func() { _ = tr.Close(); <-done }()
	var out face.Frames
	out.Buf = ndn.AppendInterest(out.Buf, &ndn.InterestFields{Name: ndn.MustName("/nothing"), Nonce: 1})
	out.End()
	tr.Send(&out)
	eventually(t, "a Nack", func() bool { return recv.count() == 1 })
	for _, i := range d.fwd.Faces() {
		if strings.HasPrefix(i.RemoteURI, "wsclient://") && i.Scope == face.ScopeNonLocal && i.Persistency == face.PersistencyOnDemand {
			return
		}
	}
	t.Errorf("faces %+v", d.fwd.Faces())
}

// TestMulticastFaces: they are made by interface, listed, and routes use them.
func TestMulticastFaces(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			continue
		}
		d, log := startDaemon(t, quiet+fmt.Sprintf(`
faces.unix.path = ""
faces.multicast = { interfaces = [%q], ipv6 = false }
[[route]]
prefix = "/m"
face = "multicast:%s"
cost = 3
`, i.Name, i.Name))
		if strings.Contains(log.String(), "no multicast face") {
			testbin.Need(t, errors.New(log.String()))
		}
		f, ok := d.fwd.FaceByURI("udp4://224.0.23.170:56363")
		if !ok || f.Link != face.LinkMultiAccess || f.Persistency != face.PersistencyPermanent || !f.Up {
			t.Errorf("%+v, %v", f, ok)
		}
		if r := d.fwd.Routes(); len(r) != 1 || r[0].Face != f.ID || r[0].Cost != 3 {
			t.Errorf("routes %+v", r)
		}
		d.Reload(parse(t, quiet+fmt.Sprintf("faces.unix.path = \"\"\nfaces.multicast = { interfaces = [%q], ipv6 = false }", i.Name)))
		if r := d.fwd.Routes(); len(r) != 0 {
			t.Errorf("routes left: %+v", r)
		}
		return
	}
	t.Skip("no loopback interface")
}

// TestReloadPolicy: who may manage changes with a reload; a policy that cannot
// be read changes nothing.
func TestReloadPolicy(t *testing.T) {
	dir := t.TempDir()
	sock, secret := filepath.Join(dir, "s"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("only the operator knows"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := quiet + fmt.Sprintf("faces.unix.path = %q\n", sock)
	rule := base + fmt.Sprintf("[[mgmt.authorize]]\nhmac_keys = [%q]\n", secret)
	d, log := startDaemon(t, base)
	tr, err := unix.Dial(sock, unix.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(tr, client.Options{})
	defer c.Close()
	code := func() uint64 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r, _ := c.Command(ctx, "rib", "register", mgmt.Register(ndn.MustName("/a"), run.OriginClient, 0))
		return r.Code
	}
	if n := code(); n != 200 {
		t.Errorf("at first: %d", n)
	}
	if restart := d.Reload(parse(t, rule)); len(restart) != 0 {
		t.Errorf("restart needed for %v", restart)
	}
	if n := code(); n != 403 {
		t.Errorf("with a rule: %d", n)
	}
	broken := strings.Replace(rule, secret, filepath.Join(dir, "gone"), 1)
	d.Reload(parse(t, broken))
	if n := code(); n != 403 || !strings.Contains(log.String(), "the old one stays in force") {
		t.Errorf("after a rule that cannot be read: %d\n%s", n, log)
	}
	d.Reload(parse(t, base))
	if n := code(); n != 200 {
		t.Errorf("without the rule again: %d", n)
	}
}

// TestIdleIsMeasuredFromTheLastFrame: a face on demand whose peer keeps
// speaking lives, and ends when it stops.
func TestIdleIsMeasuredFromTheLastFrame(t *testing.T) {
	addr := free(t)
	d, _ := startDaemon(t, fmt.Sprintf("faces.udp = { listen = [%q], idle_timeout = \"1s\" }\nfaces.tcp.listen = []\nfaces.unix.path = \"\"\nadmin.listen = \"\"\n", addr))
	tr, err := dial.Open("udp4://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = tr.Serve(&counter{}); close(done) }()
	defer func() { _ = tr.Close(); <-done }()
	idle := face.Frames{Buf: []byte{0x64, 0}, Ends: []int{2}}
	tr.Send(&idle)
	find := func() (f run.FaceInfo, ok bool) {
		for _, i := range d.fwd.Faces() {
			if strings.HasPrefix(i.RemoteURI, "udp4://") {
				return i, true
			}
		}
		return f, false
	}
	var first run.FaceInfo
	eventually(t, "a face", func() bool { var ok bool; first, ok = find(); return ok })
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		tr.Send(&idle)
	}
	if f, ok := find(); !ok || f.ID != first.ID {
		t.Fatalf("a face whose peer speaks is gone: %+v", f)
	}
	eventually(t, "its end", func() bool { _, ok := find(); return !ok })
}

// TestInterfacesForgotten: what was said of an interface is said once, and not
// remembered when it has gone.
func TestInterfacesForgotten(t *testing.T) {
	d, log := startDaemon(t, quiet+"faces.unix.path = \"\"\n")
	m, err := followInterfaces(d, &config.Multicast{IPv4: true})
	if err != nil {
		t.Fatal(err)
	}
	m.close() // only the test updates
	said := func() int { return strings.Count(log.String(), "no multicast face\"") }
	gone := []net.Interface{{Index: 1 << 20, Name: "gone0"}}
	m.update(gone)
	m.update(gone)
	if n := said(); n != 1 || len(m.told) != 1 {
		t.Errorf("said %d times, %d remembered: %s", n, len(m.told), log)
	}
	m.update(nil)
	if len(m.told) != 0 {
		t.Errorf("remembered: %v", m.told)
	}
}
