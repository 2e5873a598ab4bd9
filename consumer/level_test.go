package consumer

import (
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/ndn"
)

// counting is a controller with a fixed window that counts what it is told.
type counting struct {
	window float64
	marks  int
	data   int
	undone int
}

func (*counting) OnSend(*cc.Send)     {}
func (c *counting) OnUndo(ndn.Time)   { c.undone++ }
func (c *counting) OnData(*cc.Sample) { c.data++ }
func (*counting) OnLoss(*cc.Loss)     {}
func (c *counting) OnMark(*cc.Sample) { c.marks++ }
func (c *counting) Cwnd() float64     { return c.window }
func (*counting) PacingRate() float64 { return 0 }

// hand is a fetch that is driven step by step.
type hand struct {
	t    *testing.T
	f    *Fetch
	o    *origin
	ctrl *counting
	now  ndn.Time
	p    ndn.Packet
}

func byHand(t *testing.T, segments int, set func(*Config)) *hand {
	t.Helper()
	h := &hand{t: t, o: newOrigin(1000*segments, 1000), ctrl: &counting{window: 8}, now: ndn.Time(time.Second)}
	cfg := DefaultConfig(h.o.prefix)
	set(&cfg)
	f, err := New(cfg, h.ctrl, &testSink{}, nil, h.now)
	if err != nil {
		t.Fatal(err)
	}
	h.f = f
	for _, in := range h.sent() { // the metadata
		h.data(in, ndn.LpFields{})
	}
	return h
}

// sent are the Interests that may leave now.
func (h *hand) sent() (out []ndn.Interest) {
	for {
		w, ok := h.f.Next(h.now, nil)
		if !ok {
			return out
		}
		var in ndn.Interest
		if err := in.Parse(w); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, in)
	}
}

// data answers an Interest 10 ms later.
func (h *hand) data(in ndn.Interest, lp ndn.LpFields) {
	h.now = h.now.Add(10 * ms)
	if err := h.p.Parse(h.o.answer(&in), &lp); err != nil {
		h.t.Fatal(err)
	}
	h.f.Data(h.now, &h.p)
}

// A request to the network for another replica is followed by what
// acknowledges its number and comes by a path that was not known, and not by a
// store that stands before all replicas. What was asked for since belongs to the
// new one.
func TestRequestIsAcknowledged(t *testing.T) {
	old, other := ndn.PathTag{Tag: 7, Hops: 3}, ndn.PathTag{Tag: 9, Hops: 3}
	for _, c := range []struct {
		name string
		tag  ndn.PathTag
		off  uint64 // of the number acknowledged
		ack  bool
		want int
	}{
		{"another replica", other, 0, true, 1},
		{"another number", other, 1, true, 0},
		{"nobody listens", other, 0, false, 0},
		{"the same replica", old, 0, true, 0},
		{"a store at hand", ndn.PathTag{Tag: 9, Hops: 1, Flags: ndn.PathFromCache}, 0, true, 0},
	} {
		h := byHand(t, 100, func(cfg *Config) { cfg.TwoLevel = &replica.Config{} })
		first := h.sent()
		if len(first) != 8 {
			t.Fatalf("%d Interests", len(first))
		}
		for _, in := range first[:4] {
			h.data(in, ndn.LpFields{HasPathTag: true, PathTag: old})
		}
		h.sent()
		h.f.level.sw.Failed()
		h.f.judge(h.now)
		asked := h.sent()
		number := h.f.Fields().ReplicaSelect
		if !h.f.Fields().HasReplicaSelect || len(asked) != 8 {
			t.Fatalf("%s: %d Interests, %+v", c.name, len(asked), h.f.Fields())
		}
		h.data(asked[7], ndn.LpFields{HasPathTag: true, PathTag: c.tag, HasReplicaSelect: c.ack, ReplicaSelect: number + c.off})
		if n := len(h.f.Switches()); n != c.want {
			t.Errorf("%s: %d switches", c.name, n)
		} else if n > 0 && (h.f.cur.inflight != 7 || h.f.inflight() != 7 || !h.f.Switches()[0].Network) {
			t.Errorf("%s: %d of %d in flight to the new one", c.name, h.f.cur.inflight, h.f.inflight())
		}
	}
}

// Marks of one window of data are one sign of congestion.
func TestMarksOfOneWindow(t *testing.T) {
	h := byHand(t, 100, func(*Config) {})
	first := h.sent()
	for _, in := range first {
		h.data(in, ndn.LpFields{CongestionMark: 1})
	}
	if h.ctrl.marks != 1 || h.f.Stats().Marks != 8 {
		t.Errorf("%d reactions to %d marks", h.ctrl.marks, h.f.Stats().Marks)
	}
	for _, in := range h.sent() {
		h.data(in, ndn.LpFields{CongestionMark: 1})
	}
	if h.ctrl.marks != 2 {
		t.Errorf("%d reactions in two windows", h.ctrl.marks)
	}
}

// With nothing more to ask for, rates are limited by the application.
func TestEndIsApplicationLimited(t *testing.T) {
	for segments, want := range map[int]bool{8: false, 7: true} {
		h := byHand(t, segments, func(*Config) {})
		h.sent()
		if limited := h.f.cur.paths.controlled().appLimitedUntil > 0; limited != want {
			t.Errorf("%d segments and a window of 8: %v", segments, limited)
		}
	}
}
