package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/cdnbench/emunet"
	"ndnpop/internal/testbin"
)

// TestNarrowPath: the largest packets over a path whose narrow link is behind
// a router, and then behind the sender itself. "Packet too big" of the router
// and EMSGSIZE of the own host lower the MTU of the face, which lives (11).
func TestNarrowPath(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	for _, c := range []struct {
		name, listen, scheme string
		overhead             int // of IP and UDP
		ends                 [4]string
	}{
		{"IPv4", "0.0.0.0:6363", "udp4", 28, [4]string{"10.88.1.1/24", "10.88.1.2/24", "10.88.2.2/24", "10.88.2.1/24"}},
		{"IPv6", "[::]:6363", "udp6", 48, [4]string{"fd88:1::1/64", "fd88:1::2/64", "fd88:2::2/64", "fd88:2::1/64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const wide, narrow = 9000, 1400
			n, err := emunet.New(emunet.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			hosts := map[string]*emunet.Host{}
			for _, h := range []string{"origin", "router", "edge"} {
				if hosts[h], err = n.AddHost(h); err != nil {
					t.Fatal(err)
				}
			}
			at := func(i int) netip.Prefix { return netip.MustParsePrefix(c.ends[i]) }
			if _, err := n.AddLink(hosts["origin"], hosts["router"], emunet.LinkConfig{MTU: wide, AddrA: at(0), AddrB: at(1)}); err != nil {
				t.Fatal(err)
			}
			if _, err := n.AddLink(hosts["router"], hosts["edge"], emunet.LinkConfig{MTU: narrow, AddrA: at(2), AddrB: at(3)}); err != nil {
				t.Fatal(err)
			}
			if err := n.RouteAll(); err != nil {
				t.Fatal(err)
			}
			dir, err := os.MkdirTemp("", "e2e-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			uri := fmt.Sprintf("%s://%s", c.scheme, netip.AddrPortFrom(at(0).Addr(), 6363))
			origin := startAt(t, dir, hosts["origin"], c.listen, "")
			edge := startAt(t, dir, hosts["edge"], c.listen, fmt.Sprintf(
				"[[face]]\nname = \"origin\"\nuri = %q\n[[route]]\nprefix = \"/origin\"\nface = \"origin\"\n", uri))
			file := randomFile(t, mb, 90)
			publish := func(n *hostNode, name string) {
				_, said := start(t, n.h, n.sock, "put", name, file, "-s", "8500")
				testbin.Eventually(t, patience, "put to serve", func() bool { return said.Contains("fetch it with") })
			}
			fetched := func(n *hostNode, name string) {
				t.Helper()
				out := filepath.Join(t.TempDir(), "out")
				cat, _ := start(t, n.h, n.sock, "cat", name, "-o", out, "--progress", "never")
				if err := cat.Wait(); err != nil {
					t.Fatalf("cat %s: %v", name, err)
				}
				sameFile(t, out, file)
			}
			// The origin's large packets meet the narrow link at the router.
			publish(origin, "/origin/file")
			fetched(edge, "/origin/file")
			if m := faceTo(t, origin, c.scheme).MTU; m != narrow-c.overhead {
				t.Errorf("the origin's face has an MTU of %d, and %d fit", m, narrow-c.overhead)
			}
			// The edge's own link is the narrow one.
			publish(edge, "/edge/file")
			if p, code := run(t, "unix://"+origin.sock, "ctl", "route", "add", "/edge", fmt.Sprint(faceTo(t, origin, c.scheme).ID)); code != 0 {
				t.Fatalf("ctl route add ended with %d: %s", code, p.Stderr)
			}
			fetched(origin, "/edge/file")
			if m := faceTo(t, edge, c.scheme).MTU; m != narrow-c.overhead {
				t.Errorf("the edge's face has an MTU of %d, and %d fit", m, narrow-c.overhead)
			}
			for _, n := range []*hostNode{origin, edge} {
				if n.log.Contains("face down") {
					t.Errorf("a face went down: %s", n.log)
				}
			}
		})
	}
}

// listedFace is what ctl face list tells of a face.
type listedFace struct {
	ID     int
	Remote string
	MTU    int
}

// faceTo is a node's only face with a scheme.
func faceTo(t *testing.T, n *hostNode, scheme string) listedFace {
	t.Helper()
	p, code := run(t, "unix://"+n.sock, "ctl", "face", "list", "--json")
	var faces []listedFace
	if err := json.Unmarshal(p.Stdout.Bytes(), &faces); code != 0 || err != nil {
		t.Fatalf("ctl face list ended with %d, %v: %s", code, err, p.Stderr)
	}
	for _, f := range faces {
		if strings.HasPrefix(f.Remote, scheme) {
			return f
		}
	}
	t.Fatalf("no face: %s", p.Stdout)
	return listedFace{}
}
