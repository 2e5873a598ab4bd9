//go:build linux

package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer/debian"
	"ndnpop/internal/testbin"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is client – edge – parent – origin.
type lab struct {
	client, edge, mid, origin *emunet.Host
	links                     []*emunet.Link
	dir, root                 string
	content                   []byte
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLab builds the hosts and a file of 3 MB, or skips the test.
func newLab(t *testing.T, files ...debian.File) *lab {
	t.Helper()
	testbin.Need(t, emunet.Supported())
	testbin.Need(t, debian.Ensure(t.Context(), os.Stderr, append(files, debian.File{Path: curlPath, Package: "curl"})...))
	// Servers that do not run as root read below it.
	dir, err := os.MkdirTemp("", "ndnpop-web-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	l := &lab{dir: dir, root: filepath.Join(dir, "root"), content: make([]byte, 3_000_000)}
	must(t, os.Mkdir(l.root, 0o755))
	rand.NewChaCha8([32]byte{1}).Read(l.content)
	must(t, os.WriteFile(filepath.Join(l.root, "file"), l.content, 0o644))
	n, err := emunet.New(emunet.Options{Emulator: emunet.TUN})
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	hosts := []*emunet.Host{}
	for i, name := range []string{"client", "edge", "mid", "origin"} {
		h, err := n.AddHost(name)
		must(t, err)
		if hosts = append(hosts, h); i > 0 {
			p := emunet.Params{Delay: time.Millisecond}
			link, err := n.AddLink(hosts[i-1], h, emunet.LinkConfig{AB: p, BA: p})
			must(t, err)
			l.links = append(l.links, link)
		}
	}
	must(t, n.RouteAll())
	l.client, l.edge, l.mid, l.origin = hosts[0], hosts[1], hosts[2], hosts[3]
	return l
}

// get fetches a range of the file and compares it.
func (l *lab) get(t *testing.T, q Request) Reply {
	t.Helper()
	q.Host, q.To, q.Path = l.client, l.edge.Addr(), "/file"
	var got []byte
	r, err := Get(t.Context(), q, func(_ *Reply, from io.Reader) (err error) {
		got, err = io.ReadAll(from)
		return err
	})
	must(t, err)
	must(t, r.Err)
	end := q.End
	if end == 0 {
		end = int64(len(l.content))
	}
	if !bytes.Equal(got, l.content[q.Offset:end]) {
		t.Errorf("%d bytes that are not those of the file", len(got))
	}
	return r
}

// carried is how many bytes reached the near end of a link.
func carried(t *testing.T, l *emunet.Link) int64 {
	t.Helper()
	c, err := l.Counters(emunet.BA)
	must(t, err)
	return c.OutBytes
}

func TestHitMissAndRange(t *testing.T) {
	l := newLab(t)
	t.Run("whole, from nginx", func(t *testing.T) { l.hitMissAndRange(t, Nginx, 0) })
	t.Run("in blocks, from httpd", func(t *testing.T) { l.hitMissAndRange(t, Httpd, 1<<20) })
}

func (l *lab) hitMissAndRange(t *testing.T, kind OriginKind, block int64) {
	ctx, dir := t.Context(), t.TempDir()
	o, err := StartOrigin(ctx, t.Output(), kind, l.origin, filepath.Join(l.dir, t.Name()), l.root)
	testbin.Need(t, err)
	defer o.Kill()
	mid, err := StartCache(ctx, t.Output(), CacheConfig{
		Host: l.mid, Dir: filepath.Join(dir, "mid"), Bytes: 200 << 20, Origins: true, Tuned: true, Ranges: block > 0,
		Parents: []netip.Addr{l.links[2].B.Prefix.Addr()},
	})
	testbin.Need(t, err)
	defer mid.Kill()
	edge, err := StartCache(ctx, t.Output(), CacheConfig{
		Host: l.edge, Dir: filepath.Join(dir, "edge"), Bytes: 200 << 20, Tuned: true, Block: block,
		Parents: []netip.Addr{l.links[1].B.Prefix.Addr()},
	})
	testbin.Need(t, err)
	defer edge.Kill()
	size := int64(len(l.content))
	// grew says whether about want bytes came from a link's far end.
	grew := func(what string, link int, before, want int64) {
		t.Helper()
		if got := carried(t, l.links[link]) - before; got < want || got > want*11/10+20_000 {
			t.Errorf("%s: %d bytes over link %d, want %d", what, got, link, want)
		}
	}
	up, low := carried(t, l.links[2]), carried(t, l.links[1])
	l.get(t, Request{})
	grew("miss", 2, up, size)
	grew("miss", 1, low, size)
	up, low = carried(t, l.links[2]), carried(t, l.links[1])
	r := l.get(t, Request{Kept: true})
	if r.First <= 0 || r.Total < r.First {
		t.Errorf("first byte after %v, all after %v", r.First, r.Total)
	}
	grew("hit", 1, low, 0)
	l.get(t, Request{Offset: 1_000_000, End: 2_500_000})
	grew("range of a hit", 1, low, 0)
	if held, err := edge.Held(ctx); err != nil || held < size || held > size*11/10 {
		t.Errorf("the cache holds %d bytes of %d, %v", held, size, err)
	}
	must(t, edge.Clear(ctx))
	if held, err := edge.Metric(ctx, "proxy.process.cache.bytes_used"); err != nil || held > 100_000 {
		t.Errorf("emptied, the cache holds %d bytes, %v", held, err)
	}
	low = carried(t, l.links[1])
	l.get(t, Request{})
	grew("hit at the parent", 2, up, 0)
	grew("hit at the parent", 1, low, size)
}

// TestParents: requests go to new parents once they are set, and past a parent
// that was killed.
func TestParents(t *testing.T) {
	l := newLab(t)
	ctx := t.Context()
	// Two origins that have different things to say.
	var origins []*Origin
	var parents []netip.Addr
	for i, h := range []*emunet.Host{l.mid, l.origin} {
		root := filepath.Join(l.dir, h.Name())
		must(t, os.Mkdir(root, 0o755))
		for _, file := range []string{"1", "2", "3"} {
			must(t, os.WriteFile(filepath.Join(root, file), []byte(h.Name()), 0o644))
		}
		o, err := StartOrigin(ctx, t.Output(), Nginx, h, root+".nginx", root)
		testbin.Need(t, err)
		defer o.Kill()
		origins, parents = append(origins, o), append(parents, l.links[i+1].B.Prefix.Addr())
	}
	config := CacheConfig{
		Host: l.edge, Dir: filepath.Join(t.TempDir(), "edge"), Bytes: 200 << 20, Tuned: true, Managed: true, Origins: true, Parents: parents,
	}
	edge, err := StartCache(ctx, t.Output(), config)
	testbin.Need(t, err)
	defer edge.Kill()
	says := func(file, want string) {
		t.Helper()
		var got []byte
		q := Request{Host: l.client, To: l.edge.Addr(), Path: "/" + file, Stall: readyLimit}
		r, err := Get(ctx, q, func(_ *Reply, from io.Reader) (err error) {
			got, err = io.ReadAll(from)
			return err
		})
		if must(t, err); r.Err != nil || string(got) != want {
			t.Errorf("file %s says %q, %v; want %q", file, got, r.Err, want)
		}
	}
	says("1", "mid")
	must(t, edge.SetParents(ctx, parents[1:]))
	says("2", "origin")
	must(t, edge.SetParents(ctx, parents))
	must(t, origins[0].Kill())
	says("3", "origin")
	must(t, edge.Kill())
	if err := edge.Warm(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dead cache was waited for: %v", err)
	}
	if pids, err := l.edge.Processes(); err != nil || len(pids) > 0 {
		t.Errorf("processes %v are left at the edge, %v", pids, err)
	}
	plain := Cache{config: CacheConfig{}}
	if err := plain.SetParents(ctx, parents); err == nil {
		t.Error("parents were set without a manager")
	}
}

// TestReplies: what curl makes of replies that are short, partial, refused, or
// never come.
func TestReplies(t *testing.T) {
	l := newLab(t)
	ctx := t.Context()
	var at net.Listener
	must(t, l.edge.Do(func() (err error) {
		at, err = net.Listen("tcp4", netip.AddrPortFrom(l.edge.Addr(), Port).String())
		return err
	}))
	answer := make(chan string)
	asked := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for text := range answer {
			c, err := at.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			asked <- string(b[:n])
			io.WriteString(c, text)
			c.Close()
		}
	}()
	defer func() {
		close(answer)
		at.Close()
		<-done
	}()
	for _, c := range []struct {
		name, text string
		q          Request
		want       Reply
		body, err  string
		header     string // that the server must see
	}{
		{"whole", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Request{}, Reply{Status: 200}, "abc", "", "Host: " + Site},
		{"broken", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Request{}, Reply{Status: 200}, "abc", "exit status 18", ""},
		{"range", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 7-9/10\r\nContent-Length: 3\r\n\r\nabc",
			Request{Offset: 7}, Reply{Status: 206, Start: 7}, "abc", "", "Range: bytes=7-\r\n"},
		{"all for a range", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Request{Offset: 1, End: 2}, Reply{Status: 200}, "abc", "", "Range: bytes=1-1\r\n"},
		{"refusal", "HTTP/1.1 504 Later\r\nContent-Length: 2\r\n\r\nno", Request{}, Reply{Status: 504}, "no", "status 504", ""},
		{"nothing", "", Request{}, Reply{}, "", "exit status 52", ""},
	} {
		answer <- c.text
		c.q.Host, c.q.To, c.q.Path = l.client, l.edge.Addr(), "/file"
		var got []byte
		r, err := Get(ctx, c.q, func(_ *Reply, from io.Reader) (err error) {
			got, err = io.ReadAll(from)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Status != c.want.Status || r.Start != c.want.Start || string(got) != c.body {
			t.Errorf("%s: %+v with %q", c.name, r, got)
		}
		if (r.Err == nil) != (c.err == "") || r.Err != nil && !strings.Contains(r.Err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.name, r.Err, c.err)
		}
		if a := <-asked; !strings.Contains(a, c.header) {
			t.Errorf("%s: the server was asked %q", c.name, a)
		}
	}
	q := Request{Host: l.client, To: l.mid.Addr(), Path: "/"} // where nobody listens
	if r, err := Get(ctx, q, nil); err != nil || r.Err == nil || !strings.Contains(r.Err.Error(), "exit status 7") {
		t.Errorf("refused connection: %v, %v", r.Err, err)
	}
}
