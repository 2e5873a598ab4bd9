package lp

import (
	"testing"

	"ndnpop/face"
	"ndnpop/ndn"
)

// paths are the ways of a packet through two links.
var paths = []struct {
	name string
	cfg  Config
	size int
}{
	{"whole", Config{Fragment: true}, 8000},
	{"fragments", Config{Fragment: true, MTU: 1400}, 8000},
	{"hop by hop", Config{Fragment: true, MTU: 1400, Reliability: Reliability{On: true, MaxRetx: 5, Window: 4, AckDelay: -1}}, 8000},
	{"stop and wait", Config{Fragment: true, Reliability: Reliability{On: true, StopAndWait: true, AckDelay: -1}}, 8000},
	{"reliable", Config{Fragment: true, MTU: 1400, Reliability: Reliability{On: true}}, 8000},
}

// exchange returns a function that sends a Data with fields one way, and the
// acknowledgements back.
func exchange(tb testing.TB, cfg Config, size int, spoil bool) func() {
	a, b := New(cfg), New(cfg)
	wire := data(tb, 1, size)
	f := &ndn.LpFields{PitToken: []byte{1, 2, 3, 4}, CongestionMark: 1, HasPathTag: true}
	var there, back face.Frames
	var p ndn.Packet
	now := ndn.Time(1)
	return func() {
		now += ms
		there.Reset()
		if err := a.Send(now, wire, f, &there); err != nil {
			tb.Fatal(err)
		}
		got := false
		for there.Len() > 0 && !got { // a window may need several rounds
			for i := range there.Len() {
				if spoil && i == 1 {
					continue
				}
				ok, err := b.Receive(now, there.Frame(i), &p)
				if err != nil {
					tb.Fatal(err)
				}
				got = got || ok
			}
			back.Reset()
			b.Tick(now, &back)
			for i := range back.Len() {
				if _, err := a.Receive(now, back.Frame(i), &p); err != nil {
					tb.Fatal(err)
				}
			}
			there.Reset()
			a.Tick(now, &there)
			if spoil {
				break // what is lost is not sent again within a round
			}
		}
		if !got && !spoil {
			tb.Fatal("nothing came out")
		}
		for {
			if _, ok := a.GaveUp(); !ok {
				break
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, c := range paths {
		for _, spoil := range []bool{false, true} {
			if r := c.cfg.Reliability; spoil && (c.cfg.MTU == 0 || r.Window > 0 || r.StopAndWait) {
				continue // nothing is lost, or the queue fills
			}
			run := exchange(t, c.cfg, c.size, spoil)
			for range 10000 {
				run()
			}
			if n := testing.AllocsPerRun(2000, run); n != 0 {
				t.Errorf("%s, with loss %v: %v allocations", c.name, spoil, n)
			}
		}
	}
}

func BenchmarkLink(b *testing.B) {
	for _, c := range paths {
		b.Run(c.name, func(b *testing.B) {
			run := exchange(b, c.cfg, c.size, false)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
