package consumer

import (
	"testing"

	"ndnpop/ndn"
)

// What was taken for lost and comes all the same was late. When all of an event
// was, the controller takes its answer back; a loss among it, or a Data that may
// well be the answer to the repetition, stand against that.
func TestLateIsNotLost(t *testing.T) {
	path := ndn.LpFields{HasPathTag: true, PathTag: ndn.PathTag{Tag: 7, Hops: 3}}
	near := ndn.LpFields{HasPathTag: true, PathTag: ndn.PathTag{Tag: 8, Hops: 1, Flags: ndn.PathFromCache}}
	for _, c := range []struct {
		name       string
		late       func(h *hand, first []ndn.Interest) // 0 and 1 are taken for lost, 2 to 5 have come
		want, came int
	}{
		{"before its repetition", func(h *hand, first []ndn.Interest) {
			h.data(first[0], path)
			h.data(first[1], path)
		}, 1, 2},
		{"just after its repetition", func(h *hand, first []ndn.Interest) {
			h.sent()
			h.data(first[0], path)
			h.now -= ndn.Time(9 * ms)
			h.data(first[1], path)
		}, 1, 2},
		{"one of them only", func(h *hand, first []ndn.Interest) {
			h.data(first[0], path)
			h.sent()
			h.now = h.now.Add(200 * ms)
			h.data(first[1], path)
		}, 0, 1},
		{"from a cache nearby", func(h *hand, first []ndn.Interest) {
			h.sent()
			h.data(first[0], near)
			h.now -= ndn.Time(9 * ms)
			h.data(first[1], near)
		}, 0, 0},
		{"without a tag", func(h *hand, first []ndn.Interest) {
			h.sent()
			h.data(first[0], ndn.LpFields{})
			h.now -= ndn.Time(9 * ms)
			h.data(first[1], ndn.LpFields{})
		}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := byHand(t, 100, func(*Config) {})
			h.ctrl.window = 10
			first := h.sent()
			h.now = h.now.Add(40 * ms) // the path's round trip, about
			for _, in := range first[2:6] {
				h.data(in, path)
				h.now -= ndn.Time(9 * ms)
			}
			for h.f.Stats().EarlyLosses == 0 {
				h.now = h.f.Deadline()
				h.f.Tick(h.now)
			}
			if n := h.f.Stats().EarlyLosses; n != 2 {
				t.Fatalf("%d taken for lost", n)
			}
			before := h.f.cur.patience(h.f.cfg.Rho)
			c.late(h, first)
			if s := h.f.Stats(); h.ctrl.undone != c.want || s.Late != uint64(c.came) {
				t.Errorf("%d taken back, %d late; want %d and %d", h.ctrl.undone, s.Late, c.want, c.came)
			}
			if after := h.f.cur.patience(h.f.cfg.Rho); (after > before) != (c.came > 0) {
				t.Errorf("patience of %v after %v", after, before)
			}
		})
	}
}
