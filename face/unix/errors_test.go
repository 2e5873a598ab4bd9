package unix

import (
	"io/fs"
	"strings"
	"testing"
)

func TestPermissionErrorNamesTheRemedy(t *testing.T) {
	err := cannot("create", "/run/nfd/nfd.sock", &fs.PathError{Op: "mkdir", Path: "/run/nfd", Err: fs.ErrPermission})
	for _, want := range []string{"/run/nfd/nfd.sock", "choose another path"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
