package line

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ndnpop/ndn"

	"pgregory.net/rapid"
)

const ms = ndn.Time(time.Millisecond)

func newLine(t testing.TB, p Params) (*Line, *Pool) {
	t.Helper()
	pool := new(Pool)
	l, err := New(p, pool, 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l, pool
}

// numbered is a plain packet of size bytes that carries its number.
func numbered(pool *Pool, id, size int) *Packet {
	b := make([]byte, size)
	binary.BigEndian.PutUint32(b[4:], uint32(id))
	return pool.Packet(b, false)
}

func number(b []byte) int { return int(binary.BigEndian.Uint32(b[4:])) }

type arrival struct {
	id int
	at ndn.Time
}

// runUntil plays the driver, delivering everything at its deadline.
func runUntil(l *Line, until ndn.Time) (got []arrival) {
	for d := l.Deadline(); d <= until && d != ndn.Never; d = l.Deadline() {
		for b, ok := l.Deliver(d); ok; b, ok = l.Deliver(d) {
			got = append(got, arrival{number(b), d})
		}
	}
	return got
}

func wantArrivals(t *testing.T, got []arrival, want ...arrival) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("arrivals %v, want %v", got, want)
	}
}

func TestRateAndDelay(t *testing.T) {
	// 1000 bytes at 8 Mbit/s take 1 ms.
	l, pool := newLine(t, Params{Delay: 10 * time.Millisecond, Rate: 8e6})
	for i := range 3 {
		l.Push(ms, numbered(pool, i, 1000))
	}
	wantArrivals(t, runUntil(l, 100*ms), arrival{0, 12 * ms}, arrival{1, 13 * ms}, arrival{2, 14 * ms})
	l.Push(200*ms, numbered(pool, 3, 500)) // idle in between earns no credit
	wantArrivals(t, runUntil(l, ndn.Never-1), arrival{3, 210*ms + ms/2})
}

func TestBacklogIsRetimed(t *testing.T) {
	l, pool := newLine(t, Params{Delay: 10 * time.Millisecond, Rate: 8e6})
	for i := range 3 {
		l.Push(ms, numbered(pool, i, 1000))
	}
	// Half of packet 0 is out; ten times slower from here, and a longer way.
	if err := l.SetParams(ms+ms/2, Params{Delay: 20 * time.Millisecond, Rate: 8e5}); err != nil {
		t.Fatal(err)
	}
	wantArrivals(t, runUntil(l, 36*ms), arrival{0, 26*ms + ms/2})
	// Packet 1 was due out at 16.5 ms, packet 2 at 26.5 ms; at 36 ms nothing waits.
	wantArrivals(t, runUntil(l, 100*ms), arrival{1, 36*ms + ms/2}, arrival{2, 46*ms + ms/2})

	l.Push(200*ms, numbered(pool, 4, 1000))
	l.Push(200*ms, numbered(pool, 5, 1000))
	if err := l.SetParams(201*ms, Params{}); err != nil { // no rate: the backlog leaves at once
		t.Fatal(err)
	}
	wantArrivals(t, runUntil(l, 300*ms), arrival{4, 201 * ms}, arrival{5, 201 * ms})
}

func TestShorterDelayKeepsOrderUnlessAsked(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		l, pool := newLine(t, Params{Delay: 100 * time.Millisecond, Reorder: reorder})
		l.Push(ms, numbered(pool, 0, 100))
		if err := l.SetParams(2*ms, Params{Delay: 10 * time.Millisecond, Reorder: reorder}); err != nil {
			t.Fatal(err)
		}
		l.Push(2*ms, numbered(pool, 1, 100))
		got := runUntil(l, 200*ms)
		if reorder {
			wantArrivals(t, got, arrival{1, 12 * ms}, arrival{0, 101 * ms})
		} else {
			wantArrivals(t, got, arrival{0, 101 * ms}, arrival{1, 101 * ms})
		}
	}
}

// Delays are even over Delay ± Jitter; the mean is Delay.
func TestJitterIsEvenAroundTheDelay(t *testing.T) {
	l, pool := newLine(t, Params{Delay: 100 * time.Millisecond, Jitter: 40 * time.Millisecond, Reorder: true, Queue: 1 << 20})
	const n = 4000
	for i := range n {
		l.Push(ms, numbered(pool, i, 100))
	}
	got := runUntil(l, 1000*ms)
	sum, parts := 0.0, [4]int{}
	for _, a := range got {
		d := float64(a.at-ms) / float64(ms)
		if sum += d; d < 60 || d > 140 {
			t.Fatalf("a delay of %v ms", d)
		}
		parts[min(3, int((d-60)/20))]++
	}
	if mean := sum / n; len(got) != n || mean < 98 || mean > 102 {
		t.Errorf("%d arrivals, mean delay %v ms", len(got), mean)
	}
	for _, k := range parts {
		if k < n/4-200 || k > n/4+200 {
			t.Errorf("quarters of the range: %v", parts)
		}
	}
}

func TestQueueIsDropTailInBytes(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 8e6, Queue: 2500})
	for i := range 4 {
		l.Push(ms, numbered(pool, i, 1000)) // 2 fit
	}
	l.Push(ms, numbered(pool, 4, 500))      // and this one
	l.Push(ms+ms/2, numbered(pool, 5, 501)) // half of packet 0 is out: 500 bytes are free
	l.Push(ms+ms/2, numbered(pool, 6, 500))
	var ids []int
	for _, a := range runUntil(l, 100*ms) {
		ids = append(ids, a.id)
	}
	if fmt.Sprint(ids) != "[0 1 4 6]" || l.Counters().QueueDrops != 3 {
		t.Errorf("delivered %v, counters %+v", ids, l.Counters())
	}
	// A packet larger than the queue passes an idle link.
	if err := l.SetParams(200*ms, Params{Rate: 8e6, Queue: 100}); err != nil {
		t.Fatal(err)
	}
	l.Push(200*ms, numbered(pool, 7, 1000))
	wantArrivals(t, runUntil(l, 300*ms), arrival{7, 201 * ms})
}

func TestLossIsASeededFunctionOfTheIndex(t *testing.T) {
	const n = 60_000
	lost := func(seed uint64, p Params, space ndn.Time) (ids map[int]bool, drops int64) {
		pool := new(Pool)
		l, err := New(p, pool, seed, 3)
		if err != nil {
			t.Fatal(err)
		}
		ids = map[int]bool{}
		for i := range n {
			ids[i] = true
			l.Push(ms+ndn.Time(i)*space, numbered(pool, i, 100))
			for _, a := range runUntil(l, ms+ndn.Time(i)*space) {
				delete(ids, a.id)
			}
		}
		for _, a := range runUntil(l, ndn.Never-1) {
			delete(ids, a.id)
		}
		return ids, l.Counters().LossDrops
	}
	for _, p := range []float64{0.001, 0.01, 0.05} {
		a, drops := lost(1, Params{Loss: p}, 1)
		if sigma := math.Sqrt(n * p * (1 - p)); math.Abs(float64(drops)-n*p) > 4*sigma {
			t.Errorf("loss %v: %d of %d", p, drops, n)
		}
		b, _ := lost(1, Params{Loss: p, Rate: 1e9, Delay: time.Millisecond, Queue: maxHeld}, 500)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("loss %v: the same seed lost other packets at another rate and spacing", p)
		}
		if c, _ := lost(2, Params{Loss: p}, 1); fmt.Sprint(a) == fmt.Sprint(c) {
			t.Errorf("loss %v: another seed lost the same packets", p)
		}
	}
	g := GilbertElliott{ToBad: 0.001, ToGood: 0.1, LossGood: 0, LossBad: 0.5}
	ids, drops := lost(1, Params{Burst: g}, 1)
	if want := n * g.Mean(); math.Abs(float64(drops)-want) > want/4 {
		t.Errorf("bursts: %d lost, want about %.0f", drops, want)
	}
	pairs := 0
	for id := range ids {
		if ids[id+1] {
			pairs++
		}
	}
	// In the bad state the next packet is lost with 0.45; independent loss
	// would give one pair in 200.
	if r := float64(pairs) / float64(len(ids)); r < 0.35 || r > 0.55 {
		t.Errorf("bursts: a loss follows a loss in %.2f of cases, want 0.45", r)
	}
}

func TestStates(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 8e6, Delay: time.Millisecond})
	for i := range 3 {
		l.Push(ms, numbered(pool, i, 1000))
	}
	l.SetState(2*ms+ms/2, BlackHole) // 0 travels, 1 is being sent, 2 waits
	l.Push(3*ms, numbered(pool, 3, 1000))
	wantArrivals(t, runUntil(l, 100*ms))
	if c := l.Counters(); c.CutDrops != 4 || c.WaitingPackets != 0 || c.InFlightPackets != 0 || pool.out != 0 {
		t.Errorf("%+v, %d packets held", c, pool.out)
	}
	l.SetState(100*ms, Up)
	l.Push(100*ms, numbered(pool, 4, 1000))
	wantArrivals(t, runUntil(l, 200*ms), arrival{4, 102 * ms})
}

func TestOverloadIsBounded(t *testing.T) {
	l, pool := newLine(t, Params{Delay: time.Second})
	l.most = 1 << 20
	for i := int64(0); l.Counters().OverloadDrops == 0; i++ {
		if i > 2*l.most/9000 {
			t.Fatal("nothing refused")
		}
		l.Push(ms, numbered(pool, int(i), 9000))
	}
	if l.held > l.most {
		t.Errorf("%d bytes held", l.held)
	}
	l.Reset(1, 1)
	if pool.out != 0 || pool.pooled > maxPooled {
		t.Errorf("after reset %d packets held, %d bytes pooled", pool.out, pool.pooled)
	}
}

func TestParamsAreChecked(t *testing.T) {
	for _, p := range []Params{
		{Delay: -1}, {Delay: time.Hour}, {Jitter: time.Millisecond}, {Rate: 10}, {Rate: -1}, {Queue: -1}, {Queue: maxHeld + 1}, {Overhead: -1},
		{Loss: 1.1}, {Loss: math.NaN()}, {Burst: GilbertElliott{ToBad: -1}}, {Loss: .1, Burst: GilbertElliott{LossGood: .1}},
	} {
		if _, err := New(p, new(Pool), 1, 1); !errors.Is(err, ErrParams) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestQueueingDelay: packets that come at random wait as long as in M/D/1, which is
// rho/(2(1-rho)) of the time that one takes.
func TestQueueingDelay(t *testing.T) {
	for _, rho := range []float64{.3, .7} {
		l, pool := newLine(t, Params{Rate: 8e6, Delay: 10 * time.Millisecond, Queue: 64 << 20})
		rng := rand.New(rand.NewPCG(1, 1))
		var sent []ndn.Time
		sum, at := 0.0, float64(ms)
		take := func(until ndn.Time) {
			for _, a := range runUntil(l, until) {
				sum += float64(a.at - sent[a.id] - 11*ms)
			}
		}
		for i := range 100_000 {
			at += rng.ExpFloat64() * float64(ms) / rho
			sent = append(sent, ndn.Time(at))
			take(ndn.Time(at))
			l.Push(ndn.Time(at), numbered(pool, i, 1000))
		}
		take(ndn.Never - 1)
		wait, want := sum/float64(len(sent)), rho/(2*(1-rho))*float64(ms)
		if math.Abs(wait-want) > .04*want {
			t.Errorf("load %v: a wait of %.0f ns, want %.0f", rho, wait, want)
		}
	}
}

// sent is a packet in the naive model.
type sent struct {
	id   int
	left float64 // bits
}

// model is the link as one would first write it: it moves bits, in floating
// point, and knows nothing of pieces.
type model struct {
	p     Params
	now   ndn.Time
	queue []sent
	last  float64
	left  map[int]float64 // when a packet had been sent
	due   map[int]float64
}

func (m *model) advance(to ndn.Time) {
	at := float64(m.now)
	for len(m.queue) > 0 {
		h := &m.queue[0]
		took := 0.0
		if m.p.Rate > 0 {
			took = h.left * 1e9 / float64(m.p.Rate)
		}
		if at+took > float64(to) {
			h.left -= (float64(to) - at) * float64(m.p.Rate) / 1e9
			break
		}
		at += took
		m.last = max(m.last, at+float64(m.p.Delay))
		m.left[h.id], m.due[h.id] = at, m.last
		m.queue = m.queue[1:]
	}
	m.now = to
}

func (m *model) backlog() (bits float64) {
	for _, s := range m.queue {
		bits += s.left
	}
	return bits
}

func genParams(t *rapid.T) Params {
	return Params{
		Delay: rapid.SampledFrom([]time.Duration{0, time.Millisecond, 7 * time.Millisecond}).Draw(t, "delay"),
		Rate:  rapid.SampledFrom([]int64{0, 56_000, 1_000_003, 100e6}).Draw(t, "rate"),
		Queue: rapid.Int64Range(1, 20_000).Draw(t, "queue"),
	}
}

// TestAgainstModel checks, under random traffic and changes of the parameters,
// that each packet arrives when the naive model says, in order, that the queue
// drops when it is full and never otherwise, and that none is lost or made.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := new(Pool)
		p := genParams(t)
		l, err := New(p, pool, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{p: p, now: 1, left: map[int]float64{}, due: map[int]float64{}}
		now, id, next := ndn.Time(1), 0, 0
		var changes []ndn.Time
		var accepted []int
		arrived := map[int]ndn.Time{}
		check := func(got []arrival) {
			for _, a := range got {
				if next == len(accepted) || accepted[next] != a.id {
					t.Fatalf("packet %d out of order, want index %d of %v", a.id, next, accepted)
				}
				next++
				arrived[a.id] = a.at
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += ndn.Time(rapid.Int64Range(0, 5e6).Draw(t, "gap"))
			check(runUntil(l, now))
			m.advance(now)
			if rapid.IntRange(0, 4).Draw(t, "op") == 0 {
				m.p = genParams(t)
				if err := l.SetParams(now, m.p); err != nil {
					t.Fatal(err)
				}
				m.advance(now)
				changes = append(changes, now)
				continue
			}
			size := rapid.IntRange(20, 9000).Draw(t, "size")
			before := l.Counters()
			l.Push(now, numbered(pool, id, size))
			over := m.backlog() + float64(8*size) - float64(8*m.p.Queue)
			if dropped := l.Counters().QueueDrops > before.QueueDrops; dropped && (over < -9 || m.p.Rate == 0) {
				t.Fatalf("dropped with room for %.0f bits", -over)
			} else if !dropped {
				if over > 9 && m.backlog() > 9 && m.p.Rate > 0 {
					t.Fatalf("accepted %.0f bits too many", over)
				}
				accepted = append(accepted, id)
				m.queue = append(m.queue, sent{id, float64(8 * size)})
				m.advance(now)
			}
			id++
			c := l.Counters()
			if c.InPackets != c.OutPackets+c.QueueDrops+c.WaitingPackets+c.InFlightPackets {
				t.Fatalf("not conserved: %+v", c)
			}
		}
		check(runUntil(l, ndn.Never-1))
		m.advance(now + ndn.Time(time.Hour))
		off := 100 + float64(len(changes))*1e9/56_000 // a Line counts whole bits
		for _, id := range accepted {
			if slices.ContainsFunc(changes, func(at ndn.Time) bool { return math.Abs(m.left[id]-float64(at)) <= off }) {
				break // by a rounding, it and those behind have the delay before the change or after
			}
			if due := m.due[id]; math.Abs(due-float64(arrived[id])) > off {
				t.Fatalf("packet %d arrived at %d, model %.0f", id, arrived[id], due)
			}
		}
		if c := l.Counters(); next != len(accepted) || c.InPackets != c.OutPackets+c.QueueDrops || l.held != 0 || l.waitingBits != 0 {
			t.Fatalf("%d of %d arrived, %+v, held %d, waiting %d", next, len(accepted), c, l.held, l.waitingBits)
		}
		l.Deliver(ndn.Never - 1)
		if pool.out != 0 {
			t.Fatalf("%d packets leaked", pool.out)
		}
	})
}

func TestPassingAPacketDoesNotAllocate(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 1e9, Delay: time.Millisecond, Loss: 0.01})
	b := make([]byte, 1400)
	now := ms
	if n := testing.AllocsPerRun(1000, func() {
		l.Push(now, pool.Packet(b, true))
		now += ms
		for _, ok := l.Deliver(now); ok; _, ok = l.Deliver(now) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHistogramQuantiles(t *testing.T) {
	var h histogram
	if h.quantile(.5) != 0 {
		t.Error("empty")
	}
	for i := range 1000 {
		h.add(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]float64{.5: 500e3, .99: 990e3, 1: 999e3} {
		if got := float64(h.quantile(q)); got < want || got > want*1.13 {
			t.Errorf("quantile %v: %v, want %v to 12 %% more", q, got, want)
		}
	}
	h.add(math.MaxInt64)
	h.add(-1)
}
