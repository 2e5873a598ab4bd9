package line

import (
	"math"
	"testing"
	"time"

	"ndnpop/ndn"
)

// TestCoDelKeepsTheDelayShort overloads a link by a twentieth with a source that
// does not react: drop-tail lets every packet wait for the whole queue, CoDel
// drops ever faster until the delay is near the target.
func TestCoDelKeepsTheDelayShort(t *testing.T) {
	late := func(p Params) (mean float64, drops int64) {
		l, pool := newLine(t, p)
		const gap = ndn.Time(950_000) // of packets that take 1 ms
		sum, n := 0.0, 0
		for i := range 40_000 {
			at := ms + ndn.Time(i)*gap
			for _, a := range runUntil(l, at) {
				if a.id > 30_000 {
					sum += float64(a.at - ms - ndn.Time(a.id)*gap)
					n++
				}
			}
			l.Push(at, numbered(pool, i, 1000))
		}
		c := l.Counters()
		if c.InPackets != c.OutPackets+c.QueueDrops+c.CoDelDrops+c.WaitingPackets+c.InFlightPackets {
			t.Errorf("not conserved: %+v", c)
		}
		return sum / float64(n) / 1e6, c.CoDelDrops
	}
	tail, none := late(Params{Rate: 8e6, Queue: 100_000})
	short, drops := late(Params{Rate: 8e6, Queue: 100_000, CoDel: CoDel{On: true}})
	if tail < 95 || none != 0 {
		t.Errorf("drop-tail: %.1f ms, %d drops by CoDel", tail, none)
	}
	if short > 25 || drops == 0 {
		t.Errorf("CoDel: %.1f ms with %d drops", short, drops)
	}
}

func TestCoDelLeavesShortQueuesAlone(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 8e6, CoDel: CoDel{On: true}})
	for burst := range 100 { // each is gone within the interval
		at := ms + ndn.Time(burst)*100*ms
		runUntil(l, at)
		for i := range 50 {
			l.Push(at, numbered(pool, i, 1000))
		}
	}
	if c := l.Counters(); c.CoDelDrops != 0 {
		t.Errorf("%+v", c)
	}
}

// TestHalfDuplexTakesTurns: both directions full share the rate evenly and
// use all of it; alone, one has it all.
func TestHalfDuplexTakesTurns(t *testing.T) {
	pool := new(Pool)
	var l [2]*Line
	for i := range l {
		l[i], _ = New(Params{Rate: 8e6, Delay: time.Millisecond, Queue: 1 << 20}, pool, 1, uint64(i))
	}
	Share(l[0], l[1])
	var got [2][]arrival
	run := func(until ndn.Time) {
		for {
			x := 0
			if l[1].Deadline() < l[0].Deadline() {
				x = 1
			}
			d := l[x].Deadline()
			if d > until {
				return
			}
			for b, ok := l[x].Deliver(d); ok; b, ok = l[x].Deliver(d) {
				got[x] = append(got[x], arrival{number(b), d})
			}
		}
	}
	for i := range 100 {
		l[0].Push(ms, numbered(pool, i, 1000))
		l[1].Push(ms, numbered(pool, i, 1000))
	}
	run(ms + 101*ms)
	if n, m := len(got[0]), len(got[1]); n != 50 || m != 50 {
		t.Errorf("%d and %d packets in the time of 100", n, m)
	}
	for i := range 50 {
		if want := ms + ndn.Time(2*i+2)*ms; got[0][i].at != want || got[1][i].at != want+ms {
			t.Fatalf("packets %d at %v and %v", i, got[0][i].at, got[1][i].at)
		}
	}
	l[1].SetState(ms+101*ms, BlackHole) // the other goes on at the whole rate
	run(ndn.Never - 1)
	if len(got[0]) != 100 || len(got[1]) > 51 || got[0][99].at > ms+153*ms {
		t.Errorf("%d and %d packets, the last at %v", len(got[0]), len(got[1]), got[0][99].at)
	}
	if l[0].waiting.n != 0 || pool.out != 0 && l[1].lent == nil && l[0].lent == nil {
		t.Errorf("%d packets held", pool.out)
	}
}

func TestNoiseIsExponentialWithACutOff(t *testing.T) {
	const mean = 100 * time.Microsecond
	l, pool := newLine(t, Params{Delay: 10 * time.Millisecond, Noise: mean})
	var sum, most float64
	const n = 20_000
	for i := range n {
		at := ms + ndn.Time(i)*100*ms
		l.Push(at, numbered(pool, i, 100))
		d := float64(runUntil(l, ndn.Never-1)[0].at - at - 10*ms)
		sum, most = sum+d, max(most, d)
	}
	if m := sum / n; math.Abs(m-float64(mean)) > 0.03*float64(mean) || most > 10*float64(mean) {
		t.Errorf("mean %.0f ns, largest %.0f ns", m, most)
	}
}

func TestQueueOfPackets(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 8e6, QueuePackets: 3})
	for i := range 5 {
		l.Push(ms, numbered(pool, i, 10))
	}
	if c := l.Counters(); c.QueueDrops != 2 || l.Backlog(ms) != 30 {
		t.Errorf("%+v, backlog %d", c, l.Backlog(ms))
	}
}

func TestDropsAreTold(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 8e6, Queue: 2500})
	told := map[Drop]int{}
	l.OnDrop = func(_ ndn.Time, why Drop, _ []byte, size int) { told[why] += size }
	for i := range 4 {
		l.Push(ms, numbered(pool, i, 1000))
	}
	l.SetState(2*ms+ms/2, Down) // one arrived, one is being sent
	l.Push(3*ms, numbered(pool, 4, 500))
	if told[DropQueue] != 2000 || told[DropCut] != 2500 {
		t.Errorf("%v", told)
	}
}
