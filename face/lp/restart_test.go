package lp

import (
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// TestRestartedPeerIsRepeatedToBriefly: a peer that was started anew without the
// feature gets few packets twice. That is known by what it sends within a
// time-out, however many are under way, and not only when one has been repeated
// as often as may be: that takes eight time-outs, in which everything would go
// three times into a link that is in order.
func TestRestartedPeerIsRepeatedToBriefly(t *testing.T) {
	for _, rtt := range []time.Duration{2, 20, 100, 300} {
		rtt *= time.Millisecond
		a, b := New(reliable(Reliability{})), New(reliable(Reliability{}))
		type flight struct {
			at     ndn.Time
			to     int
			frames *face.Frames
		}
		var way []flight
		restarted, needless := 5000*ms, uint64(0)
		var last ndn.Time // repetition
		for now := 1 * ms; now < restarted+20_000*ms; now += 1 * ms {
			if now == restarted {
				b = New(Config{Fragment: true})
				needless = a.Counters().Retransmitted // before the round trip was known
			}
			for ; len(way) > 0 && now >= way[0].at; way = way[1:] {
				receive(t, [...]*Link{a, b}[way[0].to], now, way[0].frames)
			}
			for i, l := range []*Link{a, b} {
				out := new(face.Frames)
				before := l.Counters().Retransmitted
				l.Tick(now, out)
				if l == a && l.Counters().Retransmitted > before {
					last = now
				}
				if out.Len() > 0 {
					way = append(way, flight{now.Add(rtt / 2), 1 - i, out})
				}
			}
			way = append(way, flight{now.Add(rtt / 2), 1, send(t, a, now, data(t, 1, 1000), nil)})
			way = append(way, flight{now.Add(rtt / 2), 0, send(t, b, now, interest(2), nil)})
		}
		n, took := a.Counters().Retransmitted-needless, last.Sub(restarted)
		t.Logf("round trip %v: %d repetitions, the last %v after the restart", rtt, n, took)
		if n > deafAfter || took > 3*rtt+10*time.Millisecond || a.rel.flying > 0 || a.rel.lost.head != nil {
			t.Errorf("round trip %v: %d repetitions, the last %v after the restart, %d in flight", rtt, n, took, a.rel.flying)
		}
	}
}
