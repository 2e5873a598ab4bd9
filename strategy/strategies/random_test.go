package strategies

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/sim"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/strategytest"
)

// calm is when the last thing happens in a random run.
const calm = 4 * time.Second

// objects is the prefix of what is fetched.
const objects = strategytest.Prefix + "/small"

// upsets are what happens to a path. Random loss comes last: among Data that
// keep coming it is the consumer's to repair.
var upsets = []string{
	"down", "up", "hole", "half hole", "kill", "crash", "restart", "cost", "route gone", "slower", "last down", "last up", "loss",
}

// scenario is a router with three ways to a producer, two of which fail in any
// way at any time, and consumers of finite objects.
type scenario struct {
	top   *strategytest.Topology
	fan   *strategytest.Fan
	watch *strategytest.Watch
	flows []*strategytest.Flow
	// silent are the paths that swallow Interests without a word. In strict
	// runs they stay so until calm: what is lost on a path that works again
	// before anybody has noticed is the consumer's to repair.
	silent [2]bool
	strict bool
	params [3]sim.Params
}

func newScenario(t *rapid.T, first string) *scenario {
	s := &scenario{top: strategytest.NewTopology(strategytest.Setup{
		Seed: rapid.Uint64().Draw(t, "seed"), Strategy: failover.Factory(), Others: others(),
	})}
	var paths []strategytest.Path
	for i := range 3 {
		p := strategytest.RTT(float64(rapid.IntRange(2, 60).Draw(t, fmt.Sprint("rtt", i))))
		p.Rate, p.Cost = 20e6, uint64(rapid.IntRange(1, 3).Draw(t, fmt.Sprint("cost", i)))
		paths, s.params[i] = append(paths, p), p.Params
	}
	s.fan = s.top.Fan(2, paths...)
	s.fan.Router.SetStrategy(strategytest.Prefix, first)
	s.watch = s.top.Watch(s.fan.Router)
	s.top.AddProducer(s.fan.Producer, sim.ProducerConfig{Prefix: objects, Size: 200_000, Segment: 1000})
	for i := range rapid.IntRange(1, 4).Draw(t, "flows") {
		c := sim.FetchConfig{
			Name:  fmt.Sprint(objects+"/", rapid.IntRange(0, 2).Draw(t, "object")),
			Start: time.Duration(rapid.IntRange(0, 3000).Draw(t, "start")) * ms, Controller: "fixed",
			Params: cc.Params{Window: float64(rapid.IntRange(1, 40).Draw(t, "window"))},
			// What takes longer than this has been lost, whatever overtook it.
			Consumer: func(c *consumer.Config) {
				c.RTT.Min, c.RTT.Initial, c.NoEarlyLoss = 3*time.Second, 3*time.Second, true
			},
		}
		s.flows = append(s.flows, s.top.Consume(s.fan.Consumers[i%2], c))
	}
	return s
}

// upset lets something happen to one of the first two paths.
func (s *scenario) upset(t *rapid.T, of []string) {
	at := time.Duration(rapid.IntRange(1, int(calm/ms)).Draw(t, "at")) * ms
	p := rapid.IntRange(0, 1).Draw(t, "path")
	first, last, node := s.fan.First[p], s.fan.Last[p], s.fan.Paths[p]
	what := rapid.SampledFrom(of).Draw(t, "what")
	n := rapid.IntRange(1, 4).Draw(t, "n")
	s.top.At(at, func() {
		switch {
		case s.strict && s.silent[p] && (what == "up" || what == "last up" || what == "restart"):
			return
		case what == "hole", what == "half hole", what == "crash", what == "last down":
			s.silent[p] = true
		}
		switch what {
		case "down":
			first.Down()
		case "up":
			first.Up()
		case "hole":
			first.BlackHole()
		case "half hole":
			first.AB.BlackHole(true)
		case "kill":
			node.Kill()
		case "crash":
			node.Crash()
		case "restart":
			node.Restart()
		case "cost":
			s.fan.Router.SetRoute(objects, first, uint64(n))
		case "route gone":
			s.fan.Router.RemoveRoute(objects, first)
		case "slower":
			q := s.params[p]
			q.Delay *= time.Duration(n)
			_ = first.Set(q)
		case "last down":
			last.Down()
		case "last up":
			last.Up()
		case "loss":
			q := first.AB.Params()
			q.Loss = float64(n-1) * .1
			_ = first.Set(q)
		}
	})
}

// end runs until everything is over and checks what holds for all strategies.
func (s *scenario) end(t *rapid.T, most int) {
	s.top.At(calm+ms, func() {
		for p := range 2 {
			s.fan.Paths[p].Restart()
			_ = s.fan.First[p].Set(s.params[p])
			s.fan.First[p].AB.BlackHole(false)
			s.fan.First[p].Up()
			s.fan.Last[p].Up()
			s.fan.Router.SetRoute(objects, s.fan.First[p], 1)
		}
	})
	if err := s.top.Run(90 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, f := range s.flows {
		if !f.Done() || f.Err() != nil {
			t.Errorf("%s: %v, %+v", f.Node().Name(), f.Err(), f.Stats())
		}
	}
	for _, x := range s.top.Nodes() {
		if c := x.Counters(); c.PitEntries > 0 || c.Timers > 0 {
			t.Errorf("%s: %d pending Interests and %d timers are left", x.Name(), c.PitEntries, c.Timers)
		}
	}
	sent := map[string]int{}
	for _, h := range s.watch.Hops {
		if sent[h.Name]++; sent[h.Name] == most+1 {
			t.Errorf("more than %d Interests for %s", most, h.Name)
		}
	}
}

// TestRandomFailures: whatever happens to two of three paths, failover hides
// from the consumers.
func TestRandomFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario(t, "failover")
		s.strict = true
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			s.upset(t, upsets[:len(upsets)-1])
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := time.Duration(rapid.IntRange(1, int(calm/ms)).Draw(t, "change at")) * ms
			evidence := rapid.IntRange(1, 6).Draw(t, "evidence")
			s.top.At(at, func() {
				s.fan.Router.SetStrategy(strategytest.Prefix, fmt.Sprintf("/localhost/nfd/strategy/failover/v=1/evidence~%d", evidence))
			})
		}
		s.end(t, 12)
		for _, f := range s.flows {
			if st := f.Stats(); st.Retransmissions > 0 || st.Nacks > 0 {
				t.Errorf("%d repeated, %d Nacks", st.Retransmissions, st.Nacks)
			}
		}
		if n := s.fan.Router.Counters(); n.Looped > 0 {
			t.Errorf("%d loops", n.Looped)
		}
	})
}

// TestRandomDeaths: what dies and says so is no loss with any strategy, as long
// as another path lives.
func TestRandomDeaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario(t, rapid.SampledFrom(names()).Draw(t, "strategy"))
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			s.upset(t, []string{"down", "up", "restart", "cost", "slower"})
		}
		s.end(t, 40)
		for _, f := range s.flows {
			if st := f.Stats(); st.Retransmissions > 0 || st.Nacks > 0 {
				t.Errorf("%d repeated, %d Nacks", st.Retransmissions, st.Nacks)
			}
		}
	})
}

// TestRandomChanges: failures of all kinds while one strategy follows the other.
func TestRandomChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario(t, rapid.SampledFrom(names()).Draw(t, "first"))
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			s.upset(t, slices.DeleteFunc(slices.Clone(upsets), func(u string) bool { return u == "last down" }))
		}
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			at := time.Duration(rapid.IntRange(1, int(calm/ms)).Draw(t, "change at")) * ms
			name := rapid.SampledFrom(names()).Draw(t, "to")
			s.top.At(at, func() { s.fan.Router.SetStrategy(strategytest.Prefix, name) })
		}
		s.end(t, 40)
	})
}

func names() (list []string) {
	for _, f := range Builtin() {
		list = append(list, f.Name)
	}
	return list
}
