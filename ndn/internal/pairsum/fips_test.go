//go:build amd64

package pairsum

import (
	"crypto/fips140"
	"os"
	"os/exec"
	"testing"
)

// TestFIPS: in FIPS 140-3 mode the digests are left to crypto/sha256.
func TestFIPS(t *testing.T) {
	if fips140.Enabled() {
		if _, _, ok := both(make([]byte, 64), make([]byte, 64)); ok {
			t.Error("digests are made beside the validated module")
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFIPS$")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=on")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
