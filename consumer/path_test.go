package consumer

import (
	"math"
	"testing"
	"time"

	"ndnpop/consumer/rtt"
	"ndnpop/ndn"
)

func tagged(tag uint64, hops uint8, flags uint8) *ndn.LpFields {
	return &ndn.LpFields{HasPathTag: true, PathTag: ndn.PathTag{Tag: tag, Hops: hops, Flags: flags}}
}

// Another path is followed when it brings twice as much, or when the present
// one has been silent for two timeouts; a store at the first hop only in the
// latter case.
func TestPathsTakeOver(t *testing.T) {
	const size = 1000
	for _, c := range []struct {
		name  string
		other *ndn.LpFields
		every int           // Data of the other path for each of the first
		after time.Duration // silence of the first before them
		want  bool
	}{
		{"less", tagged(2, 3, 0), 1, 0, false},
		{"not twice", tagged(2, 3, 0), 19, 0, false},
		{"twice", tagged(2, 3, 0), 25, 0, true},
		{"short silence", tagged(2, 3, 0), 1, 390 * ms, false},
		{"silence", tagged(2, 3, 0), 1, 410 * ms, true},
		{"near store", tagged(2, 1, ndn.PathFromCache), 200, 0, false},
		{"near store alone", tagged(2, 1, ndn.PathFromCache), 1, 410 * ms, true},
		{"far store", tagged(2, 2, ndn.PathFromCache), 25, 0, true},
	} {
		ps := newPathSet(rtt.Config{})
		now := ndn.Time(time.Second)
		first := ps.of(tagged(1, 3, 0), false)
		ps.all[first].est.Sample(50*ms, 1) // the least timeout, 200 ms
		for range 10 {
			if ps.arrived(now, first, size) {
				t.Fatal("the present path takes over")
			}
		}
		now = now.Add(c.after)
		took := false
		for range c.every {
			took = took || ps.arrived(now, ps.of(c.other, false), size)
		}
		if took != c.want {
			t.Errorf("%s: takes over: %v", c.name, took)
		}
	}
}

// Whatever path an Interest may take, its timeout waits for the slowest that
// was heard of in the last second.
func TestTimeoutOfSeveralPaths(t *testing.T) {
	ps := newPathSet(rtt.Config{})
	now := ndn.Time(time.Second)
	for tag, d := range map[uint64]time.Duration{1: 10 * ms, 2: 800 * ms} {
		i := ps.of(tagged(tag, 3, 0), false)
		ps.all[i].est.Sample(d, 1)
		ps.arrived(now, i, 1000)
		if tag == 1 {
			ps.take(now, i)
		}
	}
	if d := ps.rto(now.Add(900 * ms)); d != 2400*ms {
		t.Errorf("timeout %v, want that of the slow path", d)
	}
	if d := ps.rto(now.Add(1100 * ms)); d != 200*ms {
		t.Errorf("timeout %v of a path that was last heard of long ago", d)
	}
}

// The share of foreign Data is a running mean, and begins anew with the path.
func TestForeignShare(t *testing.T) {
	ps := newPathSet(rtt.Config{})
	now := ndn.Time(time.Second)
	a, b := ps.of(tagged(1, 3, 0), false), int8(0)
	for range 8 * foreignPeriod {
		ps.arrived(now, a, 1000)
		ps.arrived(now, a, 1000)
		b = ps.of(tagged(2, 1, ndn.PathFromCache), false)
		ps.arrived(now, b, 1000)
	}
	if math.Abs(ps.foreign-1./3) > 0.01 {
		t.Errorf("share %v, want a third", ps.foreign)
	}
	if ps.take(now, b); ps.foreign != 0 {
		t.Errorf("share %v on a new path", ps.foreign)
	}
}

// A delivery rate over less than a round trip is none, and one that was sent
// on another path is none of this one.
func TestRateSamples(t *testing.T) {
	for _, c := range []struct {
		name string
		took time.Duration
		path int8
		want float64
	}{
		{"a round trip", 20 * ms, 0, 1000 / 0.020},
		{"less than a round trip", 19 * ms, 0, 0},
		{"another path", 20 * ms, 1, 0},
	} {
		ps := newPathSet(rtt.Config{})
		ps.controlled().est.Sample(20*ms, 1)
		var s slot
		now := ndn.Time(time.Second)
		s.sentAt = now
		ps.onSend(now, &s, 0)
		s.path = c.path
		if r := ps.onData(now.Add(c.took), &s, 1000); math.Abs(r.rate-c.want) > 1e-6 {
			t.Errorf("%s: rate %v, want %v", c.name, r.rate, c.want)
		}
	}
	// With nothing more to ask for, what is in flight tells no rate.
	ps := newPathSet(rtt.Config{})
	p := ps.controlled()
	p.est.Sample(20*ms, 1)
	now := ndn.Time(time.Second)
	p.appLimitedUntil = 1500
	limited := []bool{}
	for range 3 {
		var s slot
		s.sentAt = now
		ps.onSend(now, &s, 0)
		now = now.Add(20 * ms)
		limited = append(limited, ps.onData(now, &s, 1000).appLimited)
	}
	if !limited[0] || !limited[1] || limited[2] {
		t.Errorf("limited by the application: %v", limited)
	}
}

// The number of paths is bounded; the one that was silent longest gives way,
// never the one that is controlled.
func TestPathsAreBounded(t *testing.T) {
	ps := newPathSet(rtt.Config{})
	now := ndn.Time(time.Second)
	ctl := ps.of(tagged(1, 3, 0), false)
	ps.arrived(now, ctl, 1000)
	for tag := range uint64(100) {
		now = now.Add(ms)
		ps.arrived(now, ps.of(tagged(tag+2, 3, 0), false), 1)
	}
	if ps.n != maxPaths || ps.ctl != ctl || ps.controlled().tag != 1 {
		t.Errorf("%d paths, controlled is %d", ps.n, ps.controlled().tag)
	}
	for tag := uint64(101); tag > 101-maxPaths+1; tag-- {
		if i := ps.of(tagged(tag, 3, 0), false); ps.all[i].lastSeen == 0 {
			t.Errorf("path %d was forgotten", tag)
		}
	}
}
