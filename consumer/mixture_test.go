package consumer

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
)

// mixture fetches over 50 Mbit/s and 50 ms with a cache at 5 ms that holds a
// share h of the segments, and returns the rate as a share of 50/(1−h) Mbit/s
// (experiment E7).
func mixture(t testing.TB, pipe string, h float64, tags bool, length time.Duration, seed uint64) (float64, *bellFlow) {
	n := newBell(t, 50*mbit, 50*mbit*0.05, seed)
	fl := n.add(pipe, cc.Params{Seed: seed}, 50*ms, 1500, Config{})
	fl.hits, fl.hitRTT, fl.tags = h, 5*ms, tags
	warm := length / 6
	n.run(warm)
	n.mark()
	n.run(length)
	return fl.got(n.now) * (1 - h) / n.rate, fl
}

// Hits of a cache do not mislead a controller when path tags tell them apart.
func TestCacheMixtureTagged(t *testing.T) {
	t.Parallel()
	pipes := []string{"reno", "cubic", "vegas", "bbr", "bbr-gc", "bbq", "bbr-acw", "mpc"}
	length, hits := 25*time.Second, []float64{0.02, 0.5}
	if !*papers {
		pipes = []string{"bbr", "mpc"}
	} else {
		length, hits = time.Minute, []float64{0, 0.02, 0.1, 0.3, 0.5}
	}
	for _, pipe := range pipes {
		for _, h := range hits {
			got, fl := mixture(t, pipe, h, true, length, 1)
			t.Logf("%-7s %2.0f %% hits: %.3f of ideal, retx %d", pipe, 100*h, got, fl.f.stats.Retransmissions)
			if got < 0.95 {
				t.Errorf("%s, %.0f %% hits: %.3f of ideal", pipe, 100*h, got)
			}
		}
	}
}

// Without tags, the distribution of the RTT tells them apart while they are
// few.
func TestCacheMixtureUntagged(t *testing.T) {
	t.Parallel()
	pipes, length, hits := []string{"bbr"}, 15*time.Second, []float64{0.02}
	if *papers { // the others are shown
		pipes, length, hits = []string{"bbr", "cubic", "mpc"}, time.Minute, []float64{0.02, 0.1, 0.3}
	}
	for _, pipe := range pipes {
		for _, h := range hits {
			got, fl := mixture(t, pipe, h, false, length, 1)
			t.Logf("%s, no tags, %2.0f %% hits: %.3f of ideal, retx %d", pipe, 100*h, got, fl.f.stats.Retransmissions)
			if pipe == "bbr" && h == 0.02 && got < 0.95 {
				t.Errorf("%s: %.3f of ideal", pipe, got)
			}
		}
	}
}
