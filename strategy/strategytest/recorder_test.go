package strategytest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/bestroute"
	"ndnpop/strategy/multicast"
)

const ms = time.Millisecond

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	run := func(seed uint64) string {
		r, err := New(seed, multicast.Factory())
		if err != nil {
			t.Fatal(err)
		}
		r.AddHop(Hop{Name: "a", RTT: 10 * ms, Jitter: 3 * ms, Loss: .1})
		r.AddHop(Hop{Name: "b", RTT: 12 * ms, Rate: 500})
		c := r.AddConsumer(Consumer{Object: "o", Window: 10, Resend: 100 * ms})
		r.Run(time.Second)
		return fmt.Sprint(r.Sends, c.Arrivals)
	}
	if first, second := run(1), run(1); first != second {
		t.Error("two runs differ")
	}
	if run(1) == run(2) {
		t.Error("the seed has no effect")
	}
}

func TestHopScripts(t *testing.T) {
	const all = 1000
	for _, c := range []struct {
		name               string
		hop                Hop
		least, most, marks int
		nacks              int
	}{
		{name: "plain", hop: Hop{}, least: all, most: all},
		{name: "lossy", hop: Hop{Loss: .2}, least: 750, most: 850},
		{name: "silent", hop: Hop{Silent: true}},
		{name: "nacks", hop: Hop{Nacks: ndn.NackCongestion}, nacks: all},
		{name: "gives up", hop: Hop{Silent: true, GiveUp: ms}, nacks: all},
		{name: "refuses", hop: Hop{Refuse: true}, nacks: all},
		{name: "fast enough", hop: Hop{Rate: 1010}, least: all, most: all},
		{name: "too slow", hop: Hop{Rate: 500}, least: 540, most: 560, marks: 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := New(1, bestroute.Factory())
			if err != nil {
				t.Fatal(err)
			}
			c.hop.RTT = 10 * ms
			h := r.AddHop(c.hop)
			con := r.AddConsumer(Consumer{Segments: all, Every: ms})
			r.Run(10 * time.Second)
			marks := 0
			for _, a := range con.Arrivals {
				if a.Marked {
					marks++
				}
			}
			if n := len(con.Arrivals); n < c.least || n > c.most || n != h.Served() || marks < c.marks {
				t.Errorf("%d arrivals, %d served, %d marks", n, h.Served(), marks)
			}
			if len(con.Nacks) != c.nacks || con.Lost != all-c.nacks-len(con.Arrivals) {
				t.Errorf("%d Nacks, %d lost", len(con.Nacks), con.Lost)
			}
		})
	}
}

func TestQueueKeepsOrder(t *testing.T) {
	var q queue
	var got []int
	for i := range 1000 {
		q.push(ndn.Time(i*7919%10+1), func() { got = append(got, i*7919%10*1000+i) })
	}
	for q.next() != ndn.Never {
		q.pop()()
	}
	if len(got) != 1000 || !slices.IsSorted(got) {
		t.Error("not in order")
	}
}

func TestMeasures(t *testing.T) {
	a, b := &Hop{}, &Hop{}
	r := &Recorder{Sends: []Send{{At: 1, Hop: a}, {At: 2, Hop: b}, {At: 3, Hop: a, Again: true}, {At: 4, Hop: b}, {At: 5, Hop: a}}}
	if r.Share(a, 1, 6) != .5 || r.Count(nil, 1, 5) != 4 || r.Count(a, 0, 9) != 3 || r.Switches(0, 9) != 2 || r.Share(a, 9, 10) != 0 {
		t.Error(r.Share(a, 1, 6), r.Count(nil, 1, 5), r.Count(a, 0, 9), r.Switches(0, 9))
	}
	c := &Consumer{Arrivals: []Arrival{{At: 10}, {At: 15}, {At: 30}}}
	if c.Gap(10, 30) != 15 || c.Gap(5, 20) != 5 || c.Gap(40, 50) != 10 {
		t.Error(c.Gap(10, 30), c.Gap(5, 20), c.Gap(40, 50))
	}
}

func BenchmarkRecorder(b *testing.B) {
	for b.Loop() {
		r, err := New(1, bestroute.Factory())
		if err != nil {
			b.Fatal(err)
		}
		r.AddHop(Hop{RTT: 10 * ms})
		r.AddConsumer(Consumer{Window: 10})
		r.Run(time.Second)
	}
}
