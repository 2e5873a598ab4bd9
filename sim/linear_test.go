package sim

import (
	"fmt"
	"testing"
	"time"

	"ndnpop/strategy/strategies"
)

// TestWorkIsLinear in the events: how often the event queue is used for each is
// the same however long a run is and however much traffic there is, and so is
// the size of the queue.
func TestWorkIsLinear(t *testing.T) {
	const ms = time.Millisecond
	measure := func(nodes, fetches int, rate int64, until time.Duration) (calls float64, queue int) {
		n := New(Config{Seed: 1, Strategies: strategies.Builtin()})
		c := n.Chain("n", nodes, NodeConfig{CS: 1 << 20}, LinkConfig{Params: Params{Rate: rate, Delay: 4 * ms, Queue: 100_000}})
		n.AddProducer(c[nodes-1], ProducerConfig{Prefix: "/s", Size: 1 << 40, Segment: 1000})
		for i := range fetches {
			n.AddFetch(c[0], FetchConfig{Name: fmt.Sprint("/s/", i)})
		}
		if err := n.Run(until); err != nil {
			t.Fatal(err)
		}
		z := n.zones.one
		return float64(z.seq) / float64(n.events), len(z.heap)
	}
	one, size := measure(4, 1, 10e6, time.Second)
	for _, c := range []struct {
		what    string
		fetches int
		rate    int64
		until   time.Duration
	}{
		{"eight times as long", 1, 10e6, 8 * time.Second},
		{"at four times the rate", 1, 40e6, time.Second},
		{"eight fetches", 8, 10e6, time.Second},
	} {
		many, queue := measure(4, c.fetches, c.rate, c.until)
		t.Logf("%s: %.2f calls per event, queue of %d; once: %.2f, %d", c.what, many, queue, one, size)
		if many > 1.1*one || queue > size+4*c.fetches {
			t.Errorf("%s: %.2f calls per event, queue of %d; once: %.2f, %d", c.what, many, queue, one, size)
		}
	}
}
