package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

// lossyProducer answers the segments of an object, except that it does not
// hear the first Interest for some of them, nor any within a time after that.
type lossyProducer struct {
	segments     uint64
	from, until  uint64        // the segments of which Interests are lost
	deaf         time.Duration // to them, after the first
	first        map[uint64]time.Time
	answered     time.Duration // the least time between a lost Interest and the answer
	interests    int
	sameNonce    int
	lastNonce    map[uint64]uint32
	unanswerable int
}

func (p *lossyProducer) serve(b *testbed, consumer *testbin.Proc) {
	b.Helper()
	p.first, p.lastNonce = map[uint64]time.Time{}, map[uint64]uint32{}
	for {
		var f []byte
		select {
		case <-consumer.Exited():
			return
		case f = <-b.up.frames:
		}
		var pkt ndn.Packet
		ok, err := b.up.link.Receive(1, f, &pkt)
		if err != nil {
			b.Fatal(err)
		}
		if !ok || pkt.Kind != ndn.KindInterest || pkt.Interest.Name.HasPrefix(echo) {
			continue
		}
		seg, isSeg := last(pkt.Interest.Name).NumberAs(ndn.TypeSegment)
		if !isSeg || seg >= p.segments {
			p.unanswerable++
			continue
		}
		p.interests++
		now := time.Now()
		if at, seen := p.first[seg]; !seen {
			p.first[seg] = now
			p.lastNonce[seg] = pkt.Interest.Nonce
			if seg >= p.from && seg < p.until {
				continue
			}
		} else {
			if p.lastNonce[seg] == pkt.Interest.Nonce {
				p.sameNonce++
			}
			p.lastNonce[seg] = pkt.Interest.Nonce
			since := now.Sub(at)
			if since < p.deaf {
				continue
			}
			if p.answered == 0 || since < p.answered {
				p.answered = since
			}
		}
		fields := ndn.DataFields{Name: pkt.Interest.Name, Content: []byte("x"), FinalBlock: ndn.Name(nil).AppendNumber(ndn.TypeSegment, p.segments-1)}
		w, err := ndn.AppendData(nil, &fields, ndn.DigestSigner{})
		if err != nil {
			b.Fatal(err)
		}
		b.up.send(link(ndn.LpFields{PitToken: pkt.PitToken}, w))
	}
}

// lossStats are what a summary says of losses.
type lossStats struct {
	Retransmissions, Timeouts int
	Decreases                 int     `json:"window_decreases"`
	RTTMax                    float64 `json:"rtt_max_s"`
}

func fetchFrom(t *testing.T, b *testbed, p *lossyProducer, flags ...string) (s lossStats) {
	t.Helper()
	stats := filepath.Join(t.TempDir(), "stats")
	cat := ndnpop(t, b.n.unix(), append([]string{"cat", "/f/burst/v=1", "-D", "--stats", stats}, flags...)...)
	p.serve(b, cat)
	if code := cat.Wait(t, patience); code != 0 || len(cat.Stdout.Bytes()) != int(p.segments) {
		t.Fatalf("exit %d, %d bytes: %s", code, len(cat.Stdout.Bytes()), cat.Stderr)
	}
	text, err := os.ReadFile(stats)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.sameNonce != 0 {
		t.Errorf("%d retransmissions with the same Nonce", p.sameNonce)
	}
	return s
}

// TestBurstOfLosses: twenty losses of one window are one decrease, and what is
// asked for again has a new Nonce and comes late enough for no forwarder to
// swallow it (17, 18, 19).
func TestBurstOfLosses(t *testing.T) {
	for _, pipeline := range []string{"aimd", "reno", "cubic"} {
		t.Run(pipeline, func(t *testing.T) {
			b := newTestbed(t, "udp", nodeConf{capacity: "0"})
			p := &lossyProducer{segments: 400, from: 100, until: 120}
			s := fetchFrom(t, b, p, "-p", pipeline)
			n := int(p.until - p.from)
			if s.Retransmissions < n {
				t.Errorf("%d losses: %+v", n, s)
			}
			// A machine under load may let timers run out as well.
			if s.Decreases < 1 || s.Decreases > 1+s.Timeouts {
				t.Errorf("the losses of one window: %+v", s)
			}
			if v := b.n.metric(t, "ndnpop_interests_suppressed_total"); v > float64(n/2) {
				t.Errorf("%v retransmissions came within the suppression interval: %+v", v, s)
			}
		})
	}
}

// TestRoundTripsOfRetransmissions: round trips are not measured from an
// Interest that was lost (Karn; 17).
func TestRoundTripsOfRetransmissions(t *testing.T) {
	b := newTestbed(t, "udp", nodeConf{capacity: "0"})
	p := &lossyProducer{segments: 300, from: 100, until: 110, deaf: time.Second}
	s := fetchFrom(t, b, p)
	if p.answered < p.deaf || s.RTTMax >= p.answered.Seconds() {
		t.Errorf("answered %v after the first Interest, and the longest round trip is %v s", p.answered, s.RTTMax)
	}
}
