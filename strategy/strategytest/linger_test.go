package strategytest_test

import (
	"testing"
	"time"

	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

// hedge is a strategy that asks the other next hop when an answer is late, and
// does not look whether somebody still waits.
type hedge struct{}

func (hedge) Interest(c *strategy.Context, _ *strategy.Interest) {
	c.Send(c.NextHops()[0].Face)
	c.Arm(20*ms, 0)
}

func (hedge) Timer(c *strategy.Context, _ *strategy.Timer) {
	for _, h := range c.NextHops() {
		if c.Out(h.Face) == nil && c.Send(h.Face) == strategy.Sent {
			c.Arm(20*ms, 0)
		}
	}
}

func (hedge) Data(c *strategy.Context, ev *strategy.Data) {
	if c.AwaitsOthers(ev.In) {
		c.Linger(time.Second)
	}
}

// TestNobodyIsAskedForWhatIsSatisfied: an Interest that lingers is not sent
// again, which would keep it for ever.
func TestNobodyIsAskedForWhatIsSatisfied(t *testing.T) {
	r, err := strategytest.New(1, strategy.Factory{
		Name: "hedge", Version: 1, Usage: "hedges",
		New: func(strategy.Values) (strategy.Strategy, error) { return hedge{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.AddHop(strategytest.Hop{Name: "a", Cost: 1, Silent: true})
	b := r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 10 * ms})
	r.AddHop(strategytest.Hop{Name: "c", Cost: 3, RTT: 40 * ms})
	r.AddConsumer(strategytest.Consumer{Segments: 10})
	r.Run(time.Minute)
	if n := r.Count(b, 0, time.Minute); n != 10 || len(r.Sends) > 30 {
		t.Errorf("%d Interests to the next hop that answers, %d in all", n, len(r.Sends))
	}
	if c := r.Shard().Counters(); c.PitEntries > 0 || c.Timers > 0 {
		t.Errorf("%d Interests and %d timers left", c.PitEntries, c.Timers)
	}
}
