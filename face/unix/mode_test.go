//go:build linux

package unix

import (
	"net"
	"os"
	"path/filepath"
	"testing"
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
		if err := setMode(path, 0o666); (err == nil) != is {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]os.FileMode{file: 0o600, socket: 0o666} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, fi.Mode(), err)
		}
	}
}
