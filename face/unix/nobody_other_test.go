//go:build !linux

package unix_test

import (
	"os"
	"testing"
)

// asNobody runs f, unless root runs the test, who may write everywhere.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	f()
}
