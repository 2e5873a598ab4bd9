package strategytest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Bench measures what one Interest costs in a strategy's handlers: a call for
// the Interest and one for its Data, with three next hops. The shard's own
// work, such as the lookup and the sending, is not in the figures. ns/call is
// the time of one call.
func Bench(b *testing.B, f strategy.Factory, params ...string) {
	d, err := newDirect(f, params...)
	if err != nil {
		b.Fatal(err)
	}
	d.rounds(1000)
	b.ReportAllocs()
	calls := d.calls
	for b.Loop() {
		d.round()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(1, d.calls-calls)), "ns/call")
}

// CheckAllocs fails a test when the handlers for Interests and Data allocate
// once they know the next hops.
func CheckAllocs(t testing.TB, f strategy.Factory, params ...string) {
	t.Helper()
	d, err := newDirect(f, params...)
	if err != nil {
		t.Fatal(err)
	}
	d.rounds(1000)
	if n := testing.AllocsPerRun(1000, d.round); n != 0 {
		t.Errorf("%s allocates %v times per Interest", f.Name, n)
	}
}

// CheckLoop fails a test if a strategy sends more than most Interests per
// segment where the cheapest of two next hops leads back here.
func CheckLoop(t testing.TB, f strategy.Factory, most int) {
	t.Helper()
	r, err := New(1, f)
	if err != nil {
		t.Fatal(err)
	}
	const segments, rtt = 20, 10 * time.Millisecond
	b := r.AddHop(Hop{Name: "b", Cost: 2, RTT: rtt})
	r.AddHop(Hop{Name: "a", Cost: 1, RTT: rtt, Reflect: b})
	r.AddConsumer(Consumer{Segments: segments, Every: rtt})
	r.Run(10 * time.Second)
	if n := len(r.Sends); n < segments || n > most*segments {
		t.Errorf("%s sends %d Interests for %d segments", f.Name, n, segments)
	}
}

// CheckNonces fails a test if a Nonce went upstream twice: where the paths meet
// again, the second Interest would look like a loop.
func CheckNonces(t testing.TB, r *Recorder) {
	t.Helper()
	seen := make(map[uint32]bool)
	for _, s := range r.Sends {
		if seen[s.Nonce] {
			t.Fatalf("the Nonce of an Interest before: %v", s)
		}
		seen[s.Nonce] = true
	}
}

// CheckParams fails a test unless a factory documents its parameters, refuses
// unknown ones, and refuses each of the given bad values.
func CheckParams(t testing.TB, f strategy.Factory, bad map[string][]string) {
	t.Helper()
	set, err := strategy.NewSet(f)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(param, value, mention string) {
		t.Helper()
		_, _, err := set.Resolve(f.FullName().AppendGeneric(param + "~" + value))
		if !errors.Is(err, strategy.ErrParam) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s~%s: error %v", param, value, err)
		}
	}
	known := make(map[string]bool)
	for _, p := range f.Params {
		known[p.Name] = true
		if p.Usage == "" {
			t.Errorf("%s is not documented", p.Name)
		}
		refuse("no-such-parameter", "1", p.Name)
		if bad[p.Name] == nil {
			t.Errorf("no bad value of %s is tested", p.Name)
		}
	}
	for p, values := range bad {
		if !known[p] {
			t.Errorf("%s is no parameter", p)
		}
		for _, v := range values {
			refuse(p, v, p)
		}
	}
	if _, _, err := set.Resolve(f.FullName()); err != nil {
		t.Errorf("without parameters: %v", err)
	}
}

// direct calls the handlers of a strategy without a shard.
type direct struct {
	s      strategy.Strategy
	timer  strategy.TimerHandler
	c      *strategy.Context
	timers table.Timers
	entry  table.PitEntry
	hops   []table.NextHop
	fib    table.FibEntry
	now    ndn.Time
	i      ndn.Interest
	data   ndn.Data
	link   ndn.LpFields
	evI    strategy.Interest
	evD    strategy.Data
	calls  int
}

const consumerFace = 1

func newDirect(f strategy.Factory, params ...string) (*direct, error) {
	set, err := strategy.NewSet(f)
	if err != nil {
		return nil, err
	}
	name := f.FullName()
	for _, p := range params {
		name = name.AppendGeneric(p)
	}
	d := &direct{now: begin}
	if d.s, _, err = set.Resolve(name); err != nil {
		return nil, err
	}
	d.timer, _ = d.s.(strategy.TimerHandler)
	h := ndn.NewHasher(1)
	d.c = strategy.NewContext(d, h, table.NewMeasurements(1024), 1)
	d.hops = []table.NextHop{{Face: 257, Cost: 1}, {Face: 258, Cost: 2}, {Face: 259, Cost: 3}}
	prefix := ndn.MustName(Prefix)
	d.fib = table.FibEntry{Prefix: prefix, Hops: d.hops, Hash: h.Name(prefix)}
	d.link.HasPathTag, d.link.PathTag = true, ndn.PathTag{Tag: 7, Hops: 3}
	wire := ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: prefix.AppendGeneric("object").AppendNumber(ndn.TypeVersion, 1).AppendNumber(ndn.TypeSegment, 7),
	})
	if err := d.i.Parse(wire); err != nil {
		return nil, err
	}
	if err := d.data.Parse(data(d.i.Name, 10)); err != nil {
		return nil, err
	}
	d.entry.Name = d.i.Name
	return d, nil
}

func (d *direct) rounds(n int) {
	for range n {
		d.round()
	}
}

// round is one Interest and, 5 ms later, its Data from each next hop that got
// it.
func (d *direct) round() {
	e := &d.entry
	e.In = append(e.In[:0], table.InRecord{Face: consumerFace, Expiry: d.now.Add(time.Second)})
	e.Out = e.Out[:0]
	u := d.begin(e, "Interest")
	u.Interest, u.In = &d.i, consumerFace
	d.evI = strategy.Interest{Interest: &d.i, In: consumerFace, New: true}
	d.s.Interest(d.c, &d.evI)
	d.c.End()

	d.now = d.now.Add(5 * time.Millisecond)
	for k := 0; k < len(e.Out); k++ {
		o := &e.Out[k]
		d.begin(e, "Data").In = o.Face
		d.evD = strategy.Data{Data: &d.data, In: o.Face, Out: o, RTT: d.now.Sub(o.SentAt), RTTCertain: true, Straggler: k > 0}
		d.s.Data(d.c, &d.evD)
		d.c.End()
		e.In = e.In[:0]
	}
	for i := range e.Timers {
		if e.Timers[i].IsSet() {
			d.timers.Disarm(e.Timers[i])
			e.Timers[i] = table.TimerID{}
		}
	}
	e.State.Clear()
	for {
		f, ok := d.timers.Next(d.now)
		if !ok {
			return
		}
		d.begin(nil, "Timer")
		d.timer.Timer(d.c, &strategy.Timer{ID: f.ID, At: f.At, Tag: f.Tag})
		d.c.End()
	}
}

func (d *direct) begin(e *table.PitEntry, event string) *strategy.Setup {
	d.calls++
	u := d.c.Begin()
	*u = strategy.Setup{Now: d.now, Entry: e, Name: d.i.Name, Link: &d.link, Strategy: 1, Event: event}
	return u
}

// Send implements strategy.Core.
func (d *direct) Send(_ *strategy.Context, o strategy.Output) strategy.Refusal {
	r := d.entry.FindOut(o.To)
	if r == nil {
		d.entry.Out = append(d.entry.Out, table.OutRecord{Face: o.To})
		r = &d.entry.Out[len(d.entry.Out)-1]
	}
	r.SentAt, r.Expiry = d.now, d.now.Add(time.Second)
	r.Sends++
	return strategy.Sent
}

// Nack implements strategy.Core.
func (d *direct) Nack(*strategy.Context, ndn.FaceID, ndn.NackReason) bool { return false }

// Arm implements strategy.Core.
func (d *direct) Arm(_ *strategy.Context, at ndn.Time, tag uint64, plain bool) table.TimerID {
	id := d.timers.Arm(at, 0, 0, tag)
	if plain {
		return id
	}
	for i := range d.entry.Timers {
		if !d.entry.Timers[i].IsSet() {
			d.entry.Timers[i] = id
			return id
		}
	}
	d.timers.Disarm(id)
	return table.TimerID{}
}

// Disarm implements strategy.Core.
func (d *direct) Disarm(_ *strategy.Context, id table.TimerID) bool {
	for i := range d.entry.Timers {
		if d.entry.Timers[i] == id {
			d.entry.Timers[i] = table.TimerID{}
		}
	}
	return d.timers.Disarm(id)
}

// Lookup implements strategy.Core.
func (d *direct) Lookup(*strategy.Context) ([]table.NextHop, *table.FibEntry) { return d.hops, &d.fib }

// Check implements strategy.Core.
func (d *direct) Check(*strategy.Context, ndn.FaceID) strategy.Refusal { return strategy.Sent }
