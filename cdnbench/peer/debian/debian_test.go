//go:build linux

package debian

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWhatIsThereIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", "") // whatever is run fails
	p := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(p, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(t.Context(), io.Discard, File{Path: p, Package: "no-such-package"}); err != nil {
		t.Error(err)
	}
	err := Ensure(t.Context(), io.Discard, File{Path: p + "2", Package: "no-such-package"})
	if !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
}

func TestPolicyIsRestored(t *testing.T) {
	const own = "#!/bin/sh\nexit 104\n"
	for _, there := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "policy-rc.d")
		if there {
			if err := os.WriteFile(file, []byte(own), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		// The first is never restored: its process was killed.
		if _, err := denyServices(file); err != nil {
			t.Fatal(err)
		}
		restore, err := denyServices(file)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(file); string(b) != policy {
			t.Errorf("during the installation: %q", b)
		}
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if there && string(b) != own || !there && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("afterwards: %q, %v", b, err)
		}
		if left, _ := filepath.Glob(file + "*"); len(left) > 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}
