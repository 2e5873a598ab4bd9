package strategies

import (
	"testing"
	"time"

	"ndnpop/strategy"
	"ndnpop/strategy/strategytest"
)

// TestBuiltin wants every strategy to be complete and to fetch over one next
// hop and, with one of two dead, to fetch at least with the help of the
// consumer.
func TestBuiltin(t *testing.T) {
	if _, err := strategy.NewSet(Builtin()...); err != nil {
		t.Fatal(err)
	}
	for _, f := range Builtin() {
		t.Run(f.Name, func(t *testing.T) {
			if f.Usage == "" || f.Version == 0 {
				t.Error("no usage or version")
			}
			r, err := strategytest.New(1, f)
			if err != nil {
				t.Fatal(err)
			}
			a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 10 * time.Millisecond})
			r.AddHop(strategytest.Hop{Name: "b", Cost: 2, RTT: 20 * time.Millisecond, Loss: .05})
			con := r.AddConsumer(strategytest.Consumer{Segments: 2000, Window: 10, Resend: 300 * time.Millisecond})
			r.At(time.Second, a.Down)
			r.Run(time.Minute)
			if len(con.Arrivals) != 2000 || con.Lost+len(con.Nacks) > 0 {
				t.Errorf("%d of 2000, %d lost, Nacks %v", len(con.Arrivals), con.Lost, con.Nacks)
			}
			if n := r.Shard().Counters(); n.PitEntries > 0 {
				t.Errorf("%d pending Interests left", n.PitEntries)
			}
		})
	}
}
