package e2e

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndnpop/internal/testbin"
)

// TestIdleMemory: a forwarder that has nothing to do is small.
func TestIdleMemory(t *testing.T) {
	n := startNode(t, nodeConf{})
	if now, _ := n.RSS(t); now > 40*mb {
		t.Errorf("%d MB, not at most 40", now/mb)
	} else {
		t.Logf("%.1f MB", float64(now)/mb)
	}
}

// TestConstantMemory: put and cat hold the same memory whatever the size of
// the file. NDNPOP_LONG=1 makes it 5 GB instead of 200 MB.
func TestConstantMemory(t *testing.T) {
	size, limit := int64(200*mb), 4*patience
	if long() {
		size, limit = 5000*mb, 10*time.Minute
	}
	dir := t.TempDir()
	file := sparseFile(t, dir, size)
	n := startNode(t, nodeConf{capacity: "10MB"})
	// The first byte is served long before the file could be read (25).
	put := serve(t, n.unix(), "/large/f", file)
	checkPeak(t, put, "put before the first Interest")

	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	stats := filepath.Join(dir, "stats")
	c := appCmd(t, n.unix(), "cat", "/large/f", "--stats", stats)
	c.Stdout = null
	cat := testbin.Start(t, c)
	var peak int64
	testbin.Eventually(t, limit, "the transfer", func() bool {
		if cat.Running() {
			if _, p, ok := cat.TryRSS(); ok {
				peak = max(peak, p)
			}
			return false
		}
		return true
	}, put, n.Proc)
	if code := cat.Wait(t, patience); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, cat.Stderr)
	}
	if s := readStats(t, stats); s.Bytes != size || !s.Complete {
		t.Errorf("%+v", s)
	}
	t.Logf("cat %.1f MB", float64(peak)/mb)
	if peak > 80*mb {
		t.Errorf("cat took %d MB, not at most 80", peak/mb)
	}
	checkPeak(t, put, "put")
	checkPeak(t, n.Proc, "the forwarder, with 10 MB of content store")
}

func checkPeak(t *testing.T, p *testbin.Proc, what string) {
	t.Helper()
	_, peak := p.RSS(t)
	t.Logf("%s %.1f MB", what, float64(peak)/mb)
	if peak > 80*mb {
		t.Errorf("%s took %d MB, not at most 80", what, peak/mb)
	}
}

// sparseFile makes a large file that takes no room on the disk, with something
// in it here and there.
func sparseFile(t *testing.T, dir string, size int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < size; at += size / 16 {
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("something"); err != nil {
			t.Fatal(err)
		}
	}
	return f.Name()
}
