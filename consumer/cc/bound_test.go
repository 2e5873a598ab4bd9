package cc

import (
	"testing"

	"ndnpop/ndn"
)

// TestBound: every algorithm keeps to the bound, and what stands behind it
// does not grow while the bound is what stops the Interests.
func TestBound(t *testing.T) {
	r := registry(t)
	for _, name := range r.Names() {
		c, err := r.New(name, Params{MaxCwnd: 4, InitCwnd: 2})
		if err != nil {
			t.Fatal(err)
		}
		now := ms
		for i := range 2000 {
			c.OnSend(&Send{Tx: uint64(i + 1)})
			now += ms
			c.OnData(&Sample{
				Now: ndn.Time(now), Tx: uint64(i + 1), HighTx: uint64(i + 4), RTT: 4 * ms, SRTT: 4 * ms,
				Size: 1000, MeanSize: 1000, Rate: 1e6, RoundStart: i%4 == 0, Round: uint64(i / 4),
				Delivered: uint64(i+1) * 1000, PriorInflight: 4, Inflight: 3, CwndLimited: true,
			})
			if w := c.Cwnd(); w < 1 || w > 4 {
				t.Fatalf("%s: window %v", name, w)
			}
		}
	}
	c, _ := r.New("reno", Params{MaxCwnd: 4})
	feed(c, 1, 100, ms)
	if w := c.(*bound).Controller.Cwnd(); w > defaultInitCwnd {
		t.Errorf("a window that is not used grows to %v", w)
	}
	c.OnLoss(&Loss{NewEvent: true, Kind: LossTimeout})
	c.OnLoss(&Loss{NewEvent: true, Kind: LossTimeout})
	if c.Cwnd() >= 4 {
		t.Errorf("window %v after two losses", c.Cwnd())
	}
}

// TestBoundPassesPathChanges to those who want them, and to nobody else.
func TestBoundPassesPathChanges(t *testing.T) {
	h := &pathCounter{}
	newBound(h, 4).OnPathChange(&PathChange{})
	newBound(&Fixed{}, 4).OnPathChange(&PathChange{})
	if h.n != 1 {
		t.Errorf("%d path changes", h.n)
	}
}

type pathCounter struct {
	Fixed
	n int
}

func (p *pathCounter) OnPathChange(*PathChange) { p.n++ }

func TestBoundDoesNotAllocate(t *testing.T) {
	c, _ := registry(t).New("reno", Params{MaxCwnd: 4})
	s := &Sample{CwndLimited: true, RTT: ms, SRTT: ms}
	if n := testing.AllocsPerRun(1000, func() { c.OnData(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
