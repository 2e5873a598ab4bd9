package dial

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/face"
	"ndnpop/face/tcp"
	"ndnpop/face/udp"
	"ndnpop/face/unix"
)

func TestOpen(t *testing.T) {
	var listeners []face.Listener
	add := func(l face.Listener, err error) {
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	{
		l, err := tcp.Listen("127.0.0.1:0", tcp.Options{})
		add(l, err)
	}
	{
		l, err := tcp.Listen("[::1]:0", tcp.Options{})
		add(l, err)
	}
	{
		l, err := udp.Listen("127.0.0.1:0", udp.Options{})
		add(l, err)
	}
	{
		l, err := unix.Listen(filepath.Join(t.TempDir(), "s"), unix.Options{})
		add(l, err)
	}
	for _, l := range listeners {
		s, err := Open(l.URI())
		if err != nil {
			t.Errorf("%s: %v", l.URI(), err)
			continue
		}
		if s.Info().RemoteURI != l.URI() {
			t.Errorf("%s became %s", l.URI(), s.Info().RemoteURI)
		}
		s.Close()
		l.Close()
	}
}

func TestOpenErrors(t *testing.T) {
	for uri, want := range map[string]string{
		"":                          "is not a URI",
		"/run/nfd/nfd.sock":         "is not a URI",
		"quic://127.0.0.1":          "choose one of unix, tcp",
		"tcp4://127.0.0.1:1":        "refused",
		"tcp4://[::1]:1":            "tcp4://[::1]:1",
		"udp6://127.0.0.1:1":        "udp6://127.0.0.1:1",
		"unix:///does/not/exist":    "/does/not/exist",
		"udp4://not a host at all!": "not a host",
	} {
		s, err := Open(uri)
		if err == nil {
			s.Close()
			t.Errorf("%q was opened", uri)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", uri, err)
		}
	}
	if _, err := Open("unix:///does/not/exist"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestWithPort(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7":           "192.0.2.7:6363",
		"192.0.2.7:99":        "192.0.2.7:99",
		"[2001:db8::7]":       "[2001:db8::7]:6363",
		"[2001:db8::7]:99":    "[2001:db8::7]:99",
		"router.example":      "router.example:6363",
		"router.example:99/":  "router.example:99",
		"[fe80::1%eth0]:6363": "[fe80::1%eth0]:6363",
	} {
		if got := withPort(in); got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Setenv("NDN_CLIENT_TRANSPORT", "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	check := func(flag, want string) {
		t.Helper()
		if got, err := Local(flag); err != nil || got != want {
			t.Errorf("got %s, %v instead of %s", got, err, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, ".ndn"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(home, ".ndn", "client.conf")
	for content, want := range map[string]string{
		"transport=unix:///a/b": "unix:///a/b",
		"; transport=x://y\n# z\n pib = pib-sqlite3\ntransport = tcp4://192.0.2.1:6363 \n": "tcp4://192.0.2.1:6363",
		"pib=x\n": DefaultLocal,
		"":        DefaultLocal,
	} {
		if err := os.WriteFile(conf, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		check("", want)
	}
	if err := os.WriteFile(conf, []byte("transport=unix:///conf"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NDN_CLIENT_TRANSPORT", "unix:///env")
	check("", "unix:///env")
	check("unix:///flag", "unix:///flag")
	// The first file counts, also for what it does not say.
	a, b := t.TempDir(), t.TempDir()
	for dir, content := range map[string]string{a: "pib=x", b: "transport=unix:///second"} {
		if err := os.WriteFile(filepath.Join(dir, "client.conf"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := fromConf([]string{"/does/not/exist", a, b}); err != nil || got != DefaultLocal {
		t.Error(got, err)
	}
	if got, err := fromConf([]string{b, a}); err != nil || got != "unix:///second" {
		t.Error(got, err)
	}
	if err := os.Mkdir(filepath.Join(t.TempDir(), "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "client.conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := fromConf([]string{dir}); err == nil || !strings.Contains(err.Error(), "client.conf") {
		t.Errorf("error %v", err)
	}
}
