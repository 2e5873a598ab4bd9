package consumer

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBimodal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	noise := func(d time.Duration) time.Duration { return d + time.Duration(r.ExpFloat64()*0.01*float64(d)) }
	type sample struct {
		rtt      time.Duration
		overtook bool
	}
	for _, c := range []struct {
		name string
		at   func(i int) sample
		far  time.Duration // 0: one source
		near float64       // share of samples taken for near ones
	}{
		{"one source", func(int) sample { return sample{noise(50 * ms), false} }, 0, 0},
		{"a queue that grows and drains", func(i int) sample {
			return sample{10*ms + time.Duration(i%400)*ms/10, false}
		}, 0, 0},
		{"the same with losses, which later ones seem to overtake", func(i int) sample {
			return sample{10*ms + time.Duration(i%400)*ms/10, i%3 == 0}
		}, 0, 0},
		{"hosts that stall", func(i int) sample {
			if i%40 < 20 {
				return sample{noise(5 * ms), false}
			}
			return sample{noise(ms / 2), false}
		}, 0, 0},
		{"a LAN", func(i int) sample { return sample{noise(200 * time.Microsecond * time.Duration(1+i%7)), i%2 == 0} }, 0, 0},
		{"2 % hits", func(i int) sample {
			if i%50 == 7 {
				return sample{noise(5 * ms), true}
			}
			return sample{noise(50 * ms), r.IntN(20) == 0}
		}, 50 * ms, 0.02},
		{"50 % hits", func(i int) sample {
			if i%2 == 0 {
				return sample{noise(5 * ms), true}
			}
			return sample{noise(50 * ms), false}
		}, 50 * ms, 0.5},
		{"80 % hits, too many to follow the rest", func(i int) sample {
			if i%5 > 0 {
				return sample{noise(5 * ms), true}
			}
			return sample{noise(50 * ms), false}
		}, 0, 0},
		{"the path gets longer", func(i int) sample {
			if i < 500 {
				return sample{noise(20 * ms), false}
			}
			return sample{noise(50 * ms), false}
		}, 0, 0},
		{"hits that end, and a path that gets shorter", func(i int) sample {
			switch {
			case i < 500 && i%3 == 0:
				return sample{noise(5 * ms), true}
			case i < 500:
				return sample{noise(50 * ms), false}
			}
			return sample{noise(20 * ms), false}
		}, 20 * ms, 0},
	} {
		var g bimodal
		near := 0
		for i := range 1000 {
			s := c.at(i)
			if is, _ := g.sample(s.rtt, s.overtook); is && i >= 800 {
				near++
			}
		}
		if g.far < c.far || g.far > c.far*11/10 {
			t.Errorf("%s: the far source at %v", c.name, g.far)
		}
		if got := float64(near) / 200; got < c.near-0.01 || got > c.near+0.01 {
			t.Errorf("%s: %.3f near", c.name, got)
		}
	}
}
