//go:build linux

package cdn

import (
	"io"
	"os"
	"strings"
	"testing"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer/web"
	"ndnpop/internal/testbin"
)

// TestReceive: content counts once, from where it was wanted.
func TestReceive(t *testing.T) {
	for _, c := range []struct {
		name          string
		offset        int64
		reply         web.Reply
		body          string
		bytes, twice  int64
		fails         bool
		contentPrefix string
	}{
		{"whole", 0, web.Reply{Status: 200}, "abcdef", 6, 0, false, "abcdef"},
		{"range", 4, web.Reply{Status: 206, Start: 4}, "ef", 2, 0, false, "ef"},
		{"all for a range", 4, web.Reply{Status: 200}, "abcdef", 2, 4, false, "ef"},
		{"all for a range, broken early", 4, web.Reply{Status: 200}, "ab", 0, 2, false, ""},
		{"a range that starts too late", 4, web.Reply{Status: 206, Start: 5}, "f", 0, 0, true, ""},
		{"an error's text", 0, web.Reply{Status: 504}, "sorry", 0, 0, false, ""},
	} {
		var r Fetched
		got := newArrivals(nil)
		err := receive(got, &r, c.offset, &c.reply, strings.NewReader(c.body))
		want := newArrivals(nil)
		io.WriteString(want.hash, c.contentPrefix)
		if (err != nil) != c.fails || got.bytes != c.bytes || r.Twice != c.twice || got.sum() != want.sum() {
			t.Errorf("%s: %d bytes, %d twice, %v", c.name, got.bytes, r.Twice, err)
		}
	}
}

// TestHTTPArm fetches over the paper's topology from nothing, from the cache, in
// part, and past a killed intermediate.
func TestHTTPArm(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	const size = 300_000
	top, err := NewTopology(t.TempDir(), cdnbench.Options{Log: t.Output()}, Layout{Lossless: true, Sizes: []int64{size}, CacheBytes: 200 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	arm, err := ats(httpConfig{congestion: "cubic"}).Start(t.Context(), top)
	testbin.Need(t, err)
	defer arm.Stop()
	fetch := func(what string, f Fetch) Fetched {
		t.Helper()
		f.Object = top.Objects[0]
		r, err := arm.Fetch(t.Context(), f)
		if err != nil || r.Err != nil {
			t.Fatalf("%s: %v, %v", what, err, r.Err)
		}
		want := int64(size) - f.Offset
		if f.Length > 0 {
			want = f.Length
		}
		if r.Bytes != want || r.First <= 0 || r.Elapsed < r.First || len(r.Points) == 0 {
			t.Errorf("%s: %d bytes, first after %v, all after %v, %d points", what, r.Bytes, r.First, r.Elapsed, len(r.Points))
		}
		return r
	}
	err = top.Hosts[Edge].Do(func() error {
		b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_slow_start_after_idle")
		if err == nil && strings.TrimSpace(string(b)) != "0" {
			t.Error("connections of a tuned cache slow down after a pause")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	cold := fetch("cold", Fetch{})
	cached := fetch("cached", Fetch{})
	// A round trip for the connection, and one to where the content lies.
	if cached.First < 2*accessRTT || cold.First < 2*accessRTT+midRTT+originRTT {
		t.Errorf("first byte after %v cached and %v cold, sooner than the links allow", cached.First, cold.First)
	}
	fetch("range", Fetch{Offset: 100_000, Length: 50_000})
	fetch("kept connection", Fetch{Kept: true, Offset: 1})
	if held, err := arm.Held(t.Context(), Edge); err != nil || held < size {
		t.Errorf("the edge holds %d bytes, %v", held, err)
	}
	if err := arm.Kill(Mid1); err != nil {
		t.Fatal(err)
	}
	if err := arm.Forget(t.Context(), Edge); err != nil {
		t.Fatal(err)
	}
	fetch("by the other intermediate", Fetch{Resume: true})
	if err := arm.Stop(); err != nil {
		t.Error(err)
	}
	for _, h := range top.Hosts {
		if pids, err := h.Processes(); err != nil || len(pids) > 0 {
			t.Errorf("processes %v are left at %s, %v", pids, h.Name(), err)
		}
	}
}
