//go:build linux

package unix

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ndnpop/face/internal/facetest"
)

// TestModeIsOfTheSocket: nobody has the mode of another file changed by putting it,
// or a link to it, in the socket's place.
func TestModeIsOfTheSocket(t *testing.T) {
	dir := t.TempDir()
	file, link, socket := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "socket")
	err := os.WriteFile(file, nil, 0o600)
	if err == nil {
		err = os.Symlink(file, link)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, is := range map[string]bool{file: false, link: false, socket: true} {
		if err := setMode(path, 0o666, nil); (err == nil) != is {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]os.FileMode{file: 0o600, socket: 0o666} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
}

// TestRemadeSocketKeepsMode, owner and group, as somebody has set them by hand.
func TestRemadeSocketKeepsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, told, accepted := served(t, path)
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		gid = 12345
	}
	err := os.Chown(path, uid, gid)
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	if err != nil {
		t.Fatal(err)
	}
	is := func(fi os.FileInfo) bool {
		s := fi.Sys().(*syscall.Stat_t)
		return fi.Mode().Perm() == 0o660 && int(s.Uid) == uid && int(s.Gid) == gid
	}
	facetest.Eventually(t, "the listener to see it", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return is(l.file)
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := next(t, told, "word of a new socket"); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(path); err != nil || !is(fi) {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	connect(t, path, accepted)
}
