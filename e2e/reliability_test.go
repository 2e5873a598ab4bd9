package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ndnpop/internal/testbin"
)

// lossyRelay carries datagrams between whoever sends to its address and a
// target, and loses some of them, chosen by a seed.
type lossyRelay struct {
	uri          string
	front, back  *net.UDPConn
	passed, lost atomic.Int64
}

// newLossyRelay starts a relay that loses a share of the datagrams each way,
// but none of the first ones: the links learn their round trip from those.
func newLossyRelay(t *testing.T, target string, share float64, seed uint64) *lossyRelay {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.ResolveUDPAddr("udp4", target)
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.DialUDP("udp4", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	r := &lossyRelay{uri: "udp4://" + front.LocalAddr().String(), front: front, back: back}
	for _, c := range []*net.UDPConn{front, back} {
		// Only what is meant to be lost is.
		if err := c.SetReadBuffer(4 << 20); err != nil {
			t.Fatal(err)
		}
	}
	var client atomic.Pointer[net.UDPAddr]
	var running sync.WaitGroup
	carry := func(from *net.UDPConn, stream uint64, send func(b []byte) error) {
		random := rand.New(rand.NewPCG(seed, stream))
		b := make([]byte, 64<<10)
		for n := 0; ; n++ {
			size, addr, err := from.ReadFromUDP(b)
			if err != nil {
				return
			}
			if from == front {
				client.Store(addr)
			}
			if n >= 40 && random.Float64() < share {
				r.lost.Add(1)
				continue
			}
			r.passed.Add(1)
			if send(b[:size]) != nil {
				return
			}
		}
	}
	running.Go(func() { carry(front, 1, func(b []byte) error { _, err := back.Write(b); return err }) })
	running.Go(func() {
		carry(back, 2, func(b []byte) error {
			_, err := front.WriteToUDP(b, client.Load())
			return err
		})
	})
	t.Cleanup(func() {
		front.Close()
		back.Close()
		running.Wait()
	})
	return r
}

// sum adds up a metric over its labels.
func (n *node) sum(t *testing.T, name string) (v float64) {
	t.Helper()
	for k, x := range n.metrics(t) {
		if k == name || strings.HasPrefix(k, name+"{") {
			v += x
		}
	}
	return v
}

// TestReliableLink: two forwarders on a path that loses packets. With
// reliability on the faces the links repair the losses, and the consumer sees
// none; without, it sees them all.
func TestReliableLink(t *testing.T) {
	origin := startNode(t, nodeConf{capacity: "0", extra: "[faces.udp.unproven]\nrate = \"0\"\n"})
	relay := newLossyRelay(t, origin.udp, 0.05, 18)
	edge := startNode(t, nodeConf{
		capacity: "0",
		faces:    []faceConf{{"lossy", relay.uri}},
		routes:   []routeConf{{"/lossy", "lossy", 0}},
	})
	file := randomFile(t, 6*mb, 80)
	serve(t, origin.unix(), "/lossy/file", file)

	// The origin's end is a face on demand; it exists when the edge has greeted.
	var far string
	testbin.Eventually(t, patience, "the origin's face", func() bool {
		far = "udp4://" + relay.back.LocalAddr().String()
		p, code := run(t, origin.unix(), "ctl", "face", "list", "--json")
		return code == 0 && p.Stdout.Contains(far)
	}, origin.Proc, edge.Proc)
	reliability := func(on string) {
		for n, uri := range map[*node]string{edge: relay.uri, origin: far} {
			if p, code := run(t, n.unix(), "ctl", "face", "update", uri, "--reliability", on); code != 0 {
				t.Fatalf("ctl face update ended with %d: %s", code, p.Stderr)
			}
			p, _ := run(t, n.unix(), "ctl", "face", "list", "--json")
			var list []struct {
				Remote string
				Flags  []string
			}
			if err := json.Unmarshal(p.Stdout.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				if f.Remote == uri && strings.Contains(strings.Join(f.Flags, ","), "reliability") != (on == "on") {
					t.Errorf("%s after --reliability %s: %v", uri, on, f.Flags)
				}
			}
		}
	}
	const repaired, here = "ndnpop_face_retransmissions_total", "ndnpop_other_faces_retransmissions_total"

	reliability("on")
	// A process that waits for a processor is late without any loss.
	again(t, "without a retransmission or a timeout", func(t *testing.T) catStats {
		lost, there, back := relay.lost.Load(), edge.sum(t, repaired), origin.sum(t, here)
		out, s := fetch(t, edge.unix(), "/lossy/file", "--hop-by-hop", "--max-cwnd", "8")
		sameFile(t, out, file)
		lost, there, back = relay.lost.Load()-lost, edge.sum(t, repaired)-there, origin.sum(t, here)-back
		if lost == 0 || there == 0 || back == 0 {
			t.Errorf("%d datagrams lost, %v and %v frames repeated", lost, there, back)
		}
		return s
	}, func(s catStats) bool { return s.Retransmissions == 0 && s.Timeouts == 0 })
	if v := edge.sum(t, "ndnpop_interests_given_up_total"); v != 0 {
		t.Errorf("%v Interests given up", v)
	}

	reliability("off")
	there, back := edge.sum(t, repaired), origin.sum(t, here)
	out, s := fetch(t, edge.unix(), "/lossy/file")
	sameFile(t, out, file)
	if s.Retransmissions == 0 {
		t.Errorf("the consumer saw no loss although the links repair none: %+v", s)
	}
	if a, b := edge.sum(t, repaired), origin.sum(t, here); a != there || b != back {
		t.Errorf("without reliability the links repeated %v and %v frames", a-there, b-back)
	}
}
