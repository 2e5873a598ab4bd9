package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, []uint64{1, 2}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.md", "samples.csv", "shares.svg"} {
		if _, err := os.Stat(filepath.Join(dir, "shares", name)); err != nil {
			t.Error(err)
		}
	}
}
