package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ndnpop/cdnbench/emunet"
	"ndnpop/internal/testbin"
)

// TestInterfacesComeAndGo: multicast faces and their routes follow interfaces
// that appear after the start, lose their address, vanish and come back under
// the same name.
func TestInterfacesComeAndGo(t *testing.T) {
	t.Parallel()
	testbin.Need(t, emunet.Supported())
	net, err := emunet.New(emunet.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := net.AddHost("late")
	if err != nil {
		t.Fatal(err)
	}
	// The network leaves IPv6 to those links that are to have it.
	if err := h.Sysctl("net.ipv6.conf.default.disable_ipv6", "0"); err != nil {
		testbin.Need(t, err)
	}
	ip := func(args string) {
		t.Helper()
		c, out := h.Command("ip", strings.Fields(args)...), new(testbin.Output)
		c.Stderr = out
		if err := c.Run(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	// A Unix socket's path may have about 100 bytes.
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := startAt(t, dir, h, "0.0.0.0:6363", `
[faces.multicast]
interfaces = ["mc*"]
[[route]]
prefix = "/m"
face = "multicast:mc0"
cost = 7
`)
	// want waits until the multicast faces send from these addresses, and the
	// route leads to all of them.
	want := func(what string, from ...string) {
		t.Helper()
		var last string
		testbin.Eventually(t, patience, what, func() bool {
			p, code := run(t, "unix://"+n.sock, "ctl", "face", "list", "--json")
			var faces []struct {
				ID            int
				Remote, Local string
				Link          string
			}
			if code != 0 || json.Unmarshal(p.Stdout.Bytes(), &faces) != nil {
				t.Fatalf("ctl face list: %d %s", code, p.Stderr)
			}
			last = p.Stdout.String()
			var is []string
			ids := map[int]bool{}
			for _, f := range faces {
				if f.Link == "multi-access" {
					is = append(is, f.Local)
					ids[f.ID] = true
				}
			}
			if len(is) != len(from) {
				return false
			}
			for i := range from {
				if !strings.Contains(strings.Join(is, " "), from[i]) {
					return false
				}
			}
			p, code = run(t, "unix://"+n.sock, "ctl", "route", "list", "/m", "--json")
			var routes []struct{ Face, Cost int }
			if code != 0 || json.Unmarshal(p.Stdout.Bytes(), &routes) != nil {
				t.Fatalf("ctl route list: %d %s", code, p.Stderr)
			}
			for _, r := range routes {
				if r.Cost != 7 || !ids[r.Face] {
					return false
				}
			}
			last += p.Stdout.String()
			return len(routes) == len(from)
		})
		if t.Failed() {
			t.Log(last)
		}
	}
	want("no multicast faces at first")
	ip("link add mc0 type veth peer name peer0")
	ip("link set mc0 addrgenmode none")
	ip("addr add 10.99.0.1/24 dev mc0")
	ip("addr add fe80::1/64 dev mc0")
	ip("link set peer0 up")
	ip("link set mc0 up")
	want("faces of an interface that appeared", "udp4://10.99.0.1:", "udp6://[fe80::")
	ip("addr del 10.99.0.1/24 dev mc0")
	want("the IPv4 face to go with its address", "udp6://[fe80::")
	ip("addr add 10.99.0.2/24 dev mc0")
	want("a face with the new address", "udp4://10.99.0.2:", "udp6://[fe80::")
	ip("link del mc0")
	want("no faces without the interface")
	ip("link add mc0 type veth peer name peer0")
	ip("link set mc0 addrgenmode none")
	ip("addr add 10.99.0.3/24 dev mc0")
	ip("link set peer0 up")
	ip("link set mc0 up")
	want("faces of the interface that came back", "udp4://10.99.0.3:")
	ip("addr add fe80::2/64 dev mc0")
	want("its link-local address", "udp4://10.99.0.3:", "udp6://[fe80::2%mc0]:")
	ip("link set mc0 down")
	want("no faces while it is down")
}
