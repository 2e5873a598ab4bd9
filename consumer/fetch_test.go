package consumer

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/ndn"
)

func TestWholeObject(t *testing.T) {
	for _, pipe := range []string{"fixed", "aimd", "reno", "cubic"} {
		for _, size := range []int{0, 1, 999, 1000, 1001, 123456} {
			o := newOrigin(size, 1000)
			n := newNet(t, 0, 0)
			fl := n.add(o, 5*ms, cfgFor(o), controller(t, pipe, cc.Params{}), nil)
			n.run(time.Minute)
			fl.ok()
			if s := fl.f.Stats(); s.Retransmissions != 0 {
				t.Errorf("%s, %d bytes: %d retransmissions", pipe, size, s.Retransmissions)
			}
		}
	}
}

func TestUnequalSegments(t *testing.T) {
	o := newOrigin(5000, 0)
	o.fields = false
	o.sizes = []int{10, 2000, 0, 1, 2489, 500}
	for _, late := range []bool{false, true} {
		o.lateFBI = late
		n := newNet(t, 0, 0)
		fl := n.add(o, 5*ms, cfgFor(o), controller(t, "fixed", cc.Params{}), nil)
		n.run(time.Minute)
		fl.ok()
	}
}

func TestFinalBlockOnlyOnLastSegment(t *testing.T) {
	for _, loseEnd := range []bool{false, true} {
		o := newOrigin(300_500, 1000)
		o.fields, o.lateFBI = false, true
		n := newNet(t, 0, 0)
		fl := n.add(o, 5*ms, cfgFor(o), controller(t, "fixed", cc.Params{}), nil)
		if loseEnd { // beyond the end there are Nacks, and the end comes late
			fl.loseData = func(seg uint64, nth int) bool { return seg == 300 && nth < 3 }
		}
		n.run(time.Minute)
		fl.ok()
	}
}

func TestSilenceBeyondTheEnd(t *testing.T) {
	o := newOrigin(50_500, 1000)
	o.fields, o.lateFBI = false, true
	n := newNet(t, 0, 0)
	fl := n.add(o, 5*ms, cfgFor(o), controller(t, "fixed", cc.Params{}), nil)
	fl.loseData = func(seg uint64, _ int) bool { return seg != 1<<40 && seg > 50 }
	n.run(time.Minute)
	fl.ok()
	if fl.elapsed() > time.Second {
		t.Errorf("waited %v for segments beyond the end", fl.elapsed())
	}
}

func TestNoDiscovery(t *testing.T) {
	for _, versioned := range []bool{false, true} {
		o := newOrigin(12_345, 1000)
		cfg := DefaultConfig(o.name)
		if !versioned {
			o.name = o.prefix
			cfg = DefaultConfig(o.prefix)
			cfg.NoDiscovery = true
		}
		n := newNet(t, 0, 0)
		fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
		n.run(time.Minute)
		fl.ok()
		if fl.f.obj.HasVersion != versioned {
			t.Errorf("version known: %v", fl.f.obj.HasVersion)
		}
	}
}

func TestInlineContentNeedsNoFurtherRoundTrip(t *testing.T) {
	o := newOrigin(3000, 1000)
	o.inline = 3000
	n := newNet(t, 0, 0)
	fl := n.add(o, 25*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
	n.run(time.Minute)
	fl.ok()
	if s := fl.f.Stats(); fl.elapsed() != 50*ms || s.Interests != 1 || s.Segments != 0 || s.Inlined != 3 {
		t.Errorf("took %v and %d Interests; %d and %d segments", fl.elapsed(), s.Interests, s.Segments, s.Inlined)
	}
	for _, fields := range []bool{true, false} {
		for _, inline := range []int{1, 999, 1000, 2500} {
			o := newOrigin(30_000, 1000)
			o.inline, o.fields = inline, fields
			n := newNet(t, 0, 0)
			fl := n.add(o, 25*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
			n.run(time.Minute)
			fl.ok()
			if d := fl.f.stats.FirstByte.Sub(1); d != 50*ms {
				t.Errorf("first byte after %v", d)
			}
			if s := fl.f.Stats(); s.Segments+s.Inlined != 30 {
				t.Errorf("%d bytes with the metadata: %d segments of 30 came, %d need not", inline, s.Segments, s.Inlined)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	all := func(k RangeKind, from, to uint64) Range { return Range{k, from, to} }
	open := uint64(math.MaxUint64)
	for _, fields := range []bool{true, false} {
		for _, inline := range []int{0, 1500} {
			for _, c := range []struct {
				r        Range
				from, to int
				segments uint64
			}{
				{all(RangeBytes, 0, 0), 0, 1, 1},
				{all(RangeBytes, 999, 1000), 999, 1001, 2},
				{all(RangeBytes, 5000, 5999), 5000, 6000, 1},
				{all(RangeBytes, 5001, 7003), 5001, 7004, 3},
				{all(RangeBytes, 9400, open), 9400, 10500, 2},
				{all(RangeBytes, 10499, 99999), 10499, 10500, 1},
				{all(RangeBytes, 100, open), 100, 10500, 11},
				{all(RangeSuffix, 1, open), 10499, 10500, 1},
				{all(RangeSuffix, 501, open), 9999, 10500, 2},
				{all(RangeSuffix, 99999, open), 0, 10500, 11},
				{all(RangeSegments, 2, 3), 2000, 4000, 2},
				{all(RangeSegments, 9, open), 9000, 10500, 2},
			} {
				o := newOrigin(10_500, 1000)
				o.fields, o.inline = fields, inline
				cfg := cfgFor(o)
				cfg.Range = c.r
				n := newNet(t, 0, 0)
				fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
				n.run(time.Minute)
				if fl.f.Err() != nil || !bytes.Equal(fl.sink.out.Bytes(), o.content[c.from:c.to]) {
					t.Errorf("fields %v, %v: %d bytes, error %v", fields, c.r, fl.sink.out.Len(), fl.f.Err())
				}
				if got := fl.f.Stats().Segments; got > c.segments {
					t.Errorf("fields %v, %v: fetched %d segments, needs %d", fields, c.r, got, c.segments)
				}
			}
		}
		for _, r := range []Range{
			all(RangeBytes, 10500, open), all(RangeBytes, 20000, 20001), all(RangeSegments, 11, 12),
		} {
			o := newOrigin(10_500, 1000)
			o.fields = fields
			cfg := cfgFor(o)
			cfg.Range = r
			n := newNet(t, 0, 0)
			fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
			n.run(2 * time.Minute)
			if err := fl.f.Err(); !errors.Is(err, ErrRange) && !errors.Is(err, ErrNoContent) {
				t.Errorf("fields %v, %v: error %v", fields, r, err)
			}
		}
	}
}

func TestResume(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := newOrigin(rapid.IntRange(1, 20_000).Draw(rt, "size"), 1000)
		o.fields = rapid.Bool().Draw(rt, "fields")
		o.inline = rapid.IntRange(0, 2500).Draw(rt, "inline")
		cfg := cfgFor(o)
		from := rapid.IntRange(0, len(o.content)-1).Draw(rt, "from")
		if rapid.Bool().Draw(rt, "range") {
			cfg.Range = Range{RangeBytes, uint64(from), math.MaxUint64}
		} else {
			from = 0
		}
		stop := rapid.IntRange(1, 20).Draw(rt, "pieces")
		n := newNet(t, 0, 0)
		fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
		got := []byte{}
		pos := Resume{}
		cut := &cutSink{testSink: fl.sink, after: stop, f: fl.f}
		fl.f.sink = cut
		n.run(time.Minute)
		got = append(got, fl.sink.out.Bytes()...)
		pos = fl.sink.last
		if cut.after > 0 { // it was shorter than that
			if !bytes.Equal(got, o.content[from:]) {
				rt.Fatal("wrong content without an interruption")
			}
			return
		}
		n = newNet(t, 0, 0)
		fl = n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
		fl.sink.resume = pos
		n.run(time.Minute)
		got = append(got, fl.sink.out.Bytes()...)
		if fl.f.Err() != nil || !bytes.Equal(got, o.content[from:]) {
			rt.Fatalf("resumed at %+v: %d of %d bytes, error %v", pos, len(got), len(o.content)-from, fl.f.Err())
		}
	})
}

// cutSink interrupts the fetch after some pieces.
type cutSink struct {
	*testSink
	after int
	f     *Fetch
}

func (s *cutSink) Ready() bool { return s.after > 0 }
func (s *cutSink) Deliver(p *Piece) {
	s.testSink.Deliver(p)
	if s.after--; s.after == 0 {
		s.f.Fail(0, errors.New("interrupted"))
	}
}

func TestResumeRefused(t *testing.T) {
	o := newOrigin(5000, 1000)
	n := newNet(t, 0, 0)
	fl := n.add(o, 5*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
	fl.sink.objErr = errors.New("another version")
	n.run(time.Minute)
	if fl.f.Err() != fl.sink.objErr || fl.f.Stats().Interests != 1 {
		t.Errorf("error %v", fl.f.Err())
	}
}

// A black hole: the Interests leave at RTO, 2 RTO, 4 RTO, and so on up to the
// lifetime, with one decrease of the window each.
func TestBlackHole(t *testing.T) {
	o := newOrigin(100_000, 1000)
	n := newNet(t, 0, 0)
	var tr traceLog
	fl := n.add(o, 5*ms, cfgFor(o), controller(t, "reno", cc.Params{InitCwnd: 64}), &tr)
	fl.loseInterest = func(seg uint64, nth int) bool { return seg < 1<<40 }
	n.run(5 * time.Minute)
	if !errors.Is(fl.f.Err(), ErrUnreachable) {
		t.Fatalf("error %v at %v: %+v", fl.f.Err(), n.now, fl.f.Stats())
	}
	var at []ndn.Time
	for _, s := range fl.sent {
		if s.seg < 1<<40 && (len(at) == 0 || s.at.Sub(at[len(at)-1]) > 50*ms) {
			at = append(at, s.at)
		}
	}
	want := 200 * ms // minimum RTO: the path has 10 ms
	for k := 1; k < len(at); k++ {
		if got := at[k].Sub(at[k-1]); got < want || got > want+10*ms {
			t.Errorf("transmission %d after %v, want %v", k+1, got, want)
		}
		want = min(2*want, ndn.DefaultLifetime)
	}
	if len(at) < 16 || n.now.Sub(at[0]) < 60*time.Second || n.now.Sub(at[0]) > 66*time.Second {
		t.Errorf("gave up after %d transmissions and %v", len(at), n.now.Sub(at[0]))
	}
	if w := tr.of(TraceWindow); len(w) != 5 { // 64 to 2
		t.Errorf("%d decreases, want 5:\n%v", len(w), w)
	}
	if n := fl.f.inflight(); n > 2 {
		t.Errorf("%d in flight", n)
	}
}

func TestOutageIsSurvived(t *testing.T) {
	for _, pipe := range []string{"fixed", "reno", "cubic"} {
		o := newOrigin(2_000_000, 1000)
		n := newNet(t, 1e6, 50_000)
		fl := n.add(o, 5*ms, cfgFor(o), controller(t, pipe, cc.Params{Window: 32}), nil)
		down := func(uint64, int) bool { return n.now > ndn.Time(time.Second) && n.now < ndn.Time(31*time.Second) }
		fl.loseInterest, fl.loseData = down, down
		n.run(3 * time.Minute)
		fl.ok()
		if fl.elapsed() > 31*time.Second+4*time.Second+5*time.Second {
			t.Errorf("%s: took %v over an outage of 30 s", pipe, fl.elapsed())
		}
		if g := fl.f.Stats().MaxGap; g < 29*time.Second || g > 36*time.Second {
			t.Errorf("%s: longest gap %v", pipe, g)
		}
	}
}

func TestNeverGivesUp(t *testing.T) {
	o := newOrigin(100_000, 1000)
	cfg := cfgFor(o)
	cfg.Retries = -1
	n := newNet(t, 0, 0)
	fl := n.add(o, 5*ms, cfg, controller(t, "cubic", cc.Params{}), nil)
	fl.loseInterest = func(uint64, int) bool { return n.now < ndn.Time(10*time.Minute) }
	n.run(11 * time.Minute)
	fl.ok()
}

func TestJitterAloneRetransmitsNothing(t *testing.T) {
	for seed := range uint64(5) {
		o := newOrigin(5_000_000, 1000)
		n := newNet(t, 5e6, 1e6)
		fl := n.add(o, 12500*time.Microsecond, cfgFor(o), controller(t, "fixed", cc.Params{Window: 200}), nil)
		r := rand.New(rand.NewPCG(seed, 1))
		fl.jitter = func() time.Duration {
			return min(2500*time.Microsecond, time.Duration(r.ExpFloat64()*float64(250*time.Microsecond)))
		}
		n.run(time.Minute)
		fl.ok()
		if s := fl.f.Stats(); s.Retransmissions != 0 {
			t.Errorf("seed %d: %d retransmissions", seed, s.Retransmissions)
		}
	}
}

// A path that reorders by more than ρ is learnt.
func TestReorderingIsLearnt(t *testing.T) {
	o := newOrigin(20_000_000, 1000)
	n := newNet(t, 5e6, 1e6)
	fl := n.add(o, 25*ms, cfgFor(o), controller(t, "fixed", cc.Params{Window: 250}), nil)
	k := 0
	fl.jitter = func() time.Duration {
		if k++; k%4 == 0 {
			return 35 * ms
		}
		return 0
	}
	n.run(time.Minute)
	fl.ok()
	if s := fl.f.Stats(); s.Retransmissions > 1000 {
		t.Errorf("%d needless retransmissions of 20000", s.Retransmissions)
	}
}

func TestEarlyLossDetection(t *testing.T) {
	o := newOrigin(1_000_000, 1000)
	n := newNet(t, 1e6, 1e6)
	fl := n.add(o, 25*ms, cfgFor(o), controller(t, "fixed", cc.Params{Window: 60}), nil)
	fl.loseData = func(seg uint64, nth int) bool { return seg%100 == 50 && nth == 1 }
	n.run(time.Minute)
	fl.ok()
	s := fl.f.Stats()
	if s.EarlyLosses != 10 || s.Timeouts != 0 || s.Retransmissions != 10 {
		t.Errorf("early losses %d, timeouts %d, retransmissions %d", s.EarlyLosses, s.Timeouts, s.Retransmissions)
	}
}

// The answer to a transmission that was declared lost arrives late: nothing
// moves but the segment.
func TestLateData(t *testing.T) {
	o := newOrigin(600_000, 1000)
	n := newNet(t, 0, 0)
	fl := n.add(o, 5*ms, cfgFor(o), controller(t, "fixed", cc.Params{Window: 20}), nil)
	slow := true
	fl.jitter = func() time.Duration {
		if slow && fl.f.stats.Segments > 50 {
			slow = false
			return 120 * ms
		}
		return 0
	}
	n.run(time.Minute)
	fl.ok()
	if s := fl.f.Stats(); s.Duplicates != 1 || s.Inflight != 0 || s.Segments != 600 {
		t.Errorf("duplicates %d, in flight %d, segments %d", s.Duplicates, s.Inflight, s.Segments)
	}
}

func TestNacks(t *testing.T) {
	t.Run("congestion", func(t *testing.T) {
		o := newOrigin(200_000, 1000)
		n := newNet(t, 0, 0)
		var tr traceLog
		fl := n.add(o, ms, cfgFor(o), controller(t, "reno", cc.Params{}), &tr)
		fl.nack = func(_ ndn.Time, in *ndn.Interest) (ndn.NackReason, bool) {
			c, _ := in.Name.At(-1)
			s, _ := c.NumberAs(ndn.TypeSegment)
			return ndn.NackCongestion, s == 100 && fl.nth[s] == 1
		}
		n.run(time.Minute)
		fl.ok()
		if s := fl.f.Stats(); s.Nacks != 1 || s.WindowDecreases != 1 || s.Retransmissions != 1 {
			t.Errorf("%+v", s)
		}
		var at []ndn.Time
		for _, s := range fl.sent {
			if s.seg == 100 {
				at = append(at, s.at)
			}
		}
		if d := at[1].Sub(at[0]); d < 10*ms {
			t.Errorf("repeated after %v: the forwarder would swallow it", d)
		}
	})
	t.Run("duplicate", func(t *testing.T) {
		o := newOrigin(20_000, 1000)
		n := newNet(t, 0, 0)
		fl := n.add(o, ms, cfgFor(o), controller(t, "reno", cc.Params{}), nil)
		fl.nack = func(_ ndn.Time, in *ndn.Interest) (ndn.NackReason, bool) {
			c, _ := in.Name.At(-1)
			s, _ := c.NumberAs(ndn.TypeSegment)
			return ndn.NackDuplicate, s == 10 && fl.nth[s] == 1
		}
		n.run(time.Minute)
		fl.ok()
		if s := fl.f.Stats(); s.Timeouts+s.EarlyLosses != 1 || s.Nacks != 1 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("no route", func(t *testing.T) {
		o := newOrigin(20_000, 1000)
		n := newNet(t, 0, 0)
		fl := n.add(o, ms, cfgFor(o), controller(t, "reno", cc.Params{}), nil)
		fl.nack = func(ndn.Time, *ndn.Interest) (ndn.NackReason, bool) { return ndn.NackNoRoute, true }
		n.run(time.Minute)
		if !errors.Is(fl.f.Err(), ErrNoRoute) || !strings.Contains(fl.f.Err().Error(), "/test/object") {
			t.Errorf("error %v", fl.f.Err())
		}
		if d := n.now.Sub(1); d < time.Second || d > 3*time.Second {
			t.Errorf("gave up after %v", d)
		}
	})
	t.Run("route comes back", func(t *testing.T) {
		o := newOrigin(500_000, 1000)
		n := newNet(t, 1e6, 1e6)
		fl := n.add(o, ms, cfgFor(o), controller(t, "fixed", cc.Params{Window: 16}), nil)
		fl.nack = func(now ndn.Time, _ *ndn.Interest) (ndn.NackReason, bool) {
			return ndn.NackNoRoute, now > ndn.Time(100*ms) && now < ndn.Time(20*time.Second)
		}
		n.run(time.Minute)
		fl.ok()
		if s := fl.f.Stats(); s.WindowDecreases != 0 || s.Interests > 600 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("no content", func(t *testing.T) {
		o := newOrigin(20_000, 1000)
		cfg := DefaultConfig(ndn.MustName("/other/v=3"))
		n := newNet(t, 0, 0)
		fl := n.add(o, ms, cfg, controller(t, "reno", cc.Params{}), nil)
		n.run(time.Minute)
		if !errors.Is(fl.f.Err(), ErrNoContent) {
			t.Errorf("error %v", fl.f.Err())
		}
	})
}

func TestChangedObject(t *testing.T) {
	for name, spoil := range map[string]func(*origin){
		"segment size": func(o *origin) { o.segSize = 900 },
		"shorter":      func(o *origin) { o.content = o.content[:15_000] },
		"longer":       func(o *origin) { o.content = append(o.content, make([]byte, 5000)...) },
	} {
		o := newOrigin(20_000, 1000)
		n := newNet(t, 0, 0)
		fl := n.add(o, ms, cfgFor(o), controller(t, "fixed", cc.Params{Window: 2}), nil)
		fl.bytesAt = func(ndn.Time, int) {
			if fl.f.stats.Segments == 5 {
				spoil(o)
			}
		}
		n.run(time.Minute)
		if err := fl.f.Err(); !errors.Is(err, ErrChanged) && !errors.Is(err, ErrNoContent) {
			t.Errorf("%s: error %v", name, err)
		} else if name == "shorter" && !strings.Contains(err.Error(), "changed") {
			t.Errorf("%s: nobody learns from %v why", name, err)
		}
		if got := fl.sink.out.Bytes(); !bytes.HasPrefix(newOrigin(20_000, 1000).content, got) {
			t.Errorf("%s: wrong bytes were delivered", name)
		}
	}
}

// Whatever is lost, delayed or refused, the bytes come out right and the
// memory stays bounded.
func TestRandomNetworks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 60_000).Draw(rt, "size")
		o := newOrigin(size, rapid.SampledFrom([]int{100, 999, 4000}).Draw(rt, "segment"))
		o.fields = rapid.Bool().Draw(rt, "fields")
		o.lateFBI = rapid.Bool().Draw(rt, "late")
		o.inline = rapid.SampledFrom([]int{0, 0, 1, 1234}).Draw(rt, "inline")
		seed := rapid.Uint64().Draw(rt, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		p := rapid.Float64Range(0, 0.3).Draw(rt, "loss")
		pipe := rapid.SampledFrom([]string{"fixed", "aimd", "reno", "cubic"}).Draw(rt, "pipeline")
		cfg := cfgFor(o)
		cfg.ReorderBytes = rapid.SampledFrom([]int{1, 100_000}).Draw(rt, "memory")
		n := newNet(t, rapid.SampledFrom([]float64{0, 1e5, 1e6}).Draw(rt, "rate"), 20_000)
		fl := n.add(o, time.Duration(rapid.IntRange(0, 50).Draw(rt, "delay"))*ms, cfg,
			controller(t, pipe, cc.Params{Window: 40}), nil)
		lose := func(uint64, int) bool { return r.Float64() < p }
		fl.loseInterest, fl.loseData = lose, lose
		j := rapid.Float64Range(0, 100).Draw(rt, "jitter")
		fl.jitter = func() time.Duration { return time.Duration(r.Float64() * j * float64(ms)) }
		busyUntil := ndn.Time(0)
		fl.bytesAt = func(now ndn.Time, _ int) {
			if r.Float64() < 0.02 && !fl.sink.busy {
				fl.sink.busy = true
				busyUntil = now.Add(time.Duration(r.IntN(300)) * ms)
				n.at(busyUntil, func(now ndn.Time) { fl.sink.busy = false; fl.f.Drain(now) })
			}
		}
		n.run(20 * time.Minute)
		if !fl.f.Done() || fl.f.Err() != nil || !bytes.Equal(fl.sink.out.Bytes(), o.content) {
			rt.Fatalf("done %v, error %v, %d of %d bytes, %+v", fl.f.Done(), fl.f.Err(), fl.sink.out.Len(), size, fl.f.Stats())
		}
	})
}

func TestDeterministic(t *testing.T) {
	run := func() string {
		o := newOrigin(500_000, 1000)
		n := newNet(t, 1e6, 30_000)
		var tr traceLog
		fl := n.add(o, 10*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), &tr)
		fl.loseData = func(uint64, int) bool { return n.rng.Float64() < 0.02 }
		n.run(time.Minute)
		fl.ok()
		return tr.String()
	}
	if first, second := run(), run(); first != second {
		t.Fatal("the same seed gave two traces")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	others := []Replica{{Hint: []ndn.Name{ndn.MustName("/a")}}, {Hint: []ndn.Name{ndn.MustName("/b")}}}
	for name, set := range map[string]func(*Config){
		"one replica": func(*Config) {},
		"two-level":   func(c *Config) { c.Replicas, c.TwoLevel = others, &replica.Config{} },
		"multi-source": func(c *Config) {
			c.Replicas, c.MultiSource = others, true
			c.NewController = func() (cc.Controller, error) { return cc.NewCubic(cc.Params{InitCwnd: 64}) }
		},
	} {
		t.Run(name, func(t *testing.T) { steadyState(t, set) })
	}
}

func steadyState(t *testing.T, set func(*Config)) {
	o := newOrigin(1_000_000, 1000)
	sink := &testSink{discard: true}
	cfg := DefaultConfig(o.name)
	set(&cfg)
	f, err := New(cfg, controller(t, "cubic", cc.Params{InitCwnd: 64}), sink, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	now := ndn.Time(1)
	var buf [2048]byte
	var wires [][]byte
	for s := range o.segments() {
		var in ndn.Interest
		in.Name = o.name.Clone().AppendNumber(ndn.TypeSegment, uint64(s))
		wires = append(wires, o.answer(&in))
	}
	var p ndn.Packet
	var fields ndn.LpFields
	at := 0
	step := func() {
		for {
			if _, ok := f.Next(now, buf[:0]); !ok {
				break
			}
		}
		// Pairs arrive in the wrong order.
		for _, k := range [2]int{at + 1, at} {
			now = now.Add(time.Millisecond)
			if err := p.Parse(wires[k], &fields); err != nil {
				t.Fatal(err)
			}
			f.Data(now, &p)
		}
		if d := f.Deadline(); d <= now {
			f.Tick(now)
		}
		at += 2
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations per pair of segments", n)
	}
	if f.Err() != nil || sink.bytes < 400_000 {
		t.Fatalf("error %v, %d bytes", f.Err(), sink.bytes)
	}
}
