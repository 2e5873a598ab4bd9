package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

// replicated is a receiver behind a router, and replicas behind that.
type replicated struct {
	t        *testing.T
	net      *sim.Network
	receiver *sim.Node
	router   *sim.Node
	at       []*sim.Node
	links    []*sim.Link
	got      uint64 // bytes in their order
	fetch    *sim.Fetch
}

// newReplicated builds it: nst chooses among all replicas, any other strategy
// knows the first one alone. Hints lead to the replicas from the second one on.
func newReplicated(t *testing.T, seed uint64, strategy string, size int64, links ...sim.Params) *replicated {
	return newReplicatedWith(t, sim.Config{Seed: seed}, strategy, size, links...)
}

func newReplicatedWith(t *testing.T, cfg sim.Config, strategy string, size int64, links ...sim.Params) *replicated {
	t.Helper()
	cfg.Strategies, cfg.Routing = strategies.Builtin(), sim.RouteNone
	r := &replicated{t: t, net: sim.New(cfg)}
	r.receiver = r.net.AddNode("receiver", sim.NodeConfig{})
	r.router = r.net.AddNode("router", sim.NodeConfig{Strategy: strategy})
	near := r.net.Connect(r.receiver, r.router, sim.LinkConfig{Params: sim.Params{Delay: ms}})
	r.receiver.SetRoute("/content", near, 1)
	chosen := strings.Contains(strategy, "nst")
	for i, p := range links {
		hint := fmt.Sprint("/r", i)
		x := r.net.AddNode(fmt.Sprint("replica", i), sim.NodeConfig{Forwarder: fw.Config{ProducerRegions: []ndn.Name{ndn.MustName(hint)}}})
		l := r.net.Connect(r.router, x, sim.LinkConfig{Params: p})
		if size > 0 {
			r.net.AddProducer(x, sim.ProducerConfig{Prefix: "/content", Size: size})
		}
		if i == 0 || chosen {
			r.router.SetRoute("/content", l, uint64(i+1))
		}
		r.router.SetRoute(hint, l, 1)
		r.receiver.SetRoute(hint, near, 1)
		r.at, r.links = append(r.at, x), append(r.links, l)
	}
	return r
}

// start fetches, with hints for all replicas but the first if hints is set.
func (r *replicated) start(controller string, hints bool, set func(*consumer.Config)) {
	r.fetch = r.net.AddFetch(r.receiver, sim.FetchConfig{
		Name: "/content/object", Controller: controller,
		Consumer: func(c *consumer.Config) {
			if hints {
				for i := range r.at[1:] {
					c.Replicas = append(c.Replicas, consumer.Replica{Hint: []ndn.Name{ndn.MustName(fmt.Sprint("/r", i+1))}})
				}
			}
			set(c)
		},
		OnPiece: func(p *consumer.Piece) {
			want := make([]byte, len(p.Content))
			sim.Content(want, r.got)
			if !bytes.Equal(want, p.Content) {
				r.t.Errorf("segment %d has the wrong bytes", p.Segment)
			}
			r.got += uint64(len(p.Content))
		},
	})
}

func (r *replicated) run(size uint64, limit time.Duration) consumer.Stats {
	r.t.Helper()
	if err := r.net.RunUntil(limit, r.fetch.Done); err != nil {
		r.t.Fatal(err)
	}
	st := r.fetch.Stats()
	if !r.fetch.Done() || r.fetch.Err() != nil || r.got != size {
		r.t.Fatalf("done %v, %v, %d bytes of %d: %+v", r.fetch.Done(), r.fetch.Err(), r.got, size, st)
	}
	return st
}

// slowNst is an nst that notices no silence.
const slowNst = "/localhost/nfd/strategy/nst/v=1/floor~60000"

func twoLevel(c *consumer.Config)    { c.TwoLevel = &replica.Config{} }
func multiSource(c *consumer.Config) { c.MultiSource = true }

// scale divides rates, sizes and queues: everything takes the time that it would
// take without, and fewer packets.
const scale = 3

func pipe(mbit int64, rtt time.Duration) sim.Params {
	rate := mbit * 1e6 / scale
	return sim.Params{Rate: rate, Delay: rtt / 2, Queue: max(64<<10/scale, sim.BDP(rate, rtt))}
}

const replicaSize = 30_000_000 / scale

// Every controller leaves a replica that degrades, once, by request to the
// network or by hint, and every byte is there; also where the queue is so long
// that the controller's own share of it looks like heavy congestion.
func TestReplicaDegrades(t *testing.T) {
	const size = replicaSize * 3 / 4
	for i, strategy := range []string{"nst", "best-route", "nst", "best-route"} {
		for _, controller := range []string{"reno", "cubic", "vegas", "bbr", "bbr-gc", "bbq", "bbr-acw", "mpc"} {
			t.Run(fmt.Sprint(i, strategy, controller), func(t *testing.T) {
				before, after := pipe(100, 20*ms), pipe(10, 80*ms)
				if i > 1 {
					before.Queue, after.Queue = 600_000/scale, 600_000/scale
				}
				r := newReplicated(t, 1, strategy, size, before, pipe(80, 25*ms))
				r.start(controller, strategy != "nst", twoLevel)
				r.net.At(time.Second, func() {
					if err := r.links[0].Set(after); err != nil {
						t.Error(err)
					}
				})
				st := r.run(size, time.Minute)
				sw := r.fetch.Switches()
				if len(sw) != 1 || st.ReplicaSwitches != 1 || sw[0].Network != (strategy == "nst") {
					t.Fatalf("%+v", sw)
				}
				// With the long queue a round trip takes more than half a second.
				latest, longest := 3*time.Second, 5*time.Second
				if i > 1 {
					latest, longest = 4500*ms, 7*time.Second
				}
				if at := sw[0].At.Sub(sim.Epoch); at < time.Second || at > latest {
					t.Errorf("switches at %v", at)
				}
				// The rest alone takes 8 s on the degraded path.
				if d := r.fetch.Elapsed(); d > longest {
					t.Errorf("takes %v", d)
				}
			})
		}
	}
}

// Nothing degrades: nobody switches, whatever the controller does to the queue.
func TestReplicaStays(t *testing.T) {
	const size = replicaSize * 2 / 3
	for _, controller := range []string{"aimd", "reno", "cubic", "vegas", "bbr", "bbr-gc", "bbq", "bbr-acw", "mpc"} {
		for _, queue := range []int64{32 << 10, 200 << 10, 2 << 20} {
			p := pipe(80, 20*ms)
			p.Queue = queue / scale
			r := newReplicated(t, 3, "nst", size, p, p)
			r.start(controller, false, twoLevel)
			if st := r.run(size, time.Minute); st.ReplicaSwitches != 0 {
				t.Errorf("%s, queue %d: %+v", controller, queue, r.fetch.Switches())
			}
		}
	}
}

// The bound of the round-trip time, from both sides. A path whose rate halves, with
// a queue as long as itself, is kept; one that is two and a half times as far, with
// hardly a queue, is left.
func TestReplicaBound(t *testing.T) {
	const size = replicaSize * 2 / 3
	halved, farther := pipe(40, 20*ms), pipe(10, 50*ms)
	halved.Queue, farther.Queue = sim.BDP(halved.Rate, 20*ms), 12<<10
	for _, controller := range []string{"reno", "cubic", "vegas", "bbr", "bbr-gc"} {
		for left, after := range []sim.Params{halved, farther} {
			r := newReplicated(t, 3, "nst", size, pipe(80, 20*ms), pipe(80, 25*ms))
			r.start(controller, false, twoLevel)
			r.net.At(time.Second, func() {
				if err := r.links[0].Set(after); err != nil {
					t.Error(err)
				}
			})
			if st := r.run(size, time.Minute); st.ReplicaSwitches != uint64(left) {
				t.Errorf("%s, a round trip of %v: %+v", controller, 2*after.Delay, r.fetch.Switches())
			}
		}
	}
}

// A replica that falls silent is left within a second, or two timeouts; where
// nst chooses, before the fetch notices.
func TestReplicaFallsSilent(t *testing.T) {
	for _, strategy := range []string{"nst", slowNst, "best-route"} {
		r := newReplicated(t, 5, strategy, replicaSize, pipe(100, 20*ms), pipe(80, 25*ms))
		r.start("cubic", strategy == "best-route", twoLevel)
		r.net.At(time.Second, func() { r.at[0].Crash() })
		st := r.run(replicaSize, time.Minute)
		if strategy == "nst" {
			if st.ReplicaSwitches > 0 || st.MaxGap > 250*ms {
				t.Errorf("nothing came for %v, switches %+v", st.MaxGap, r.fetch.Switches())
			}
			continue
		}
		if sw := r.fetch.Switches(); len(sw) != 1 || sw[0].Silent < 900*ms || sw[0].Silent > time.Second {
			t.Errorf("%s: %+v", strategy, sw)
		}
		if st.MaxGap > 1300*ms {
			t.Errorf("%s: nothing came for %v", strategy, st.MaxGap)
		}
	}
}

// All replicas fall silent for a while: the fetch looks around, calmly, and
// goes on.
func TestAllReplicasFallSilent(t *testing.T) {
	r := newReplicated(t, 5, "best-route", replicaSize, pipe(100, 20*ms), pipe(80, 25*ms), pipe(80, 25*ms))
	r.start("cubic", true, twoLevel)
	for i, l := range r.links {
		r.net.At(time.Second, func() { l.BlackHole() })
		r.net.At(time.Duration(20+i)*time.Second, func() { l.Up() })
	}
	st := r.run(replicaSize, 2*time.Minute)
	if st.ReplicaSwitches > 8 {
		t.Errorf("%d switches: %+v", st.ReplicaSwitches, r.fetch.Switches())
	}
	if st.MaxGap > 35*time.Second {
		t.Errorf("back after %v", st.MaxGap)
	}
}

// The name alone leads nowhere: the hints do, from the metadata on.
func TestOnlyHintsLead(t *testing.T) {
	for name, set := range map[string]func(*consumer.Config){"two-level": twoLevel, "multi-source": multiSource} {
		t.Run(name, func(t *testing.T) {
			r := newReplicated(t, 7, "best-route", replicaSize, pipe(100, 20*ms), pipe(80, 25*ms), pipe(50, 25*ms))
			r.router.RemoveRoute("/content", r.links[0])
			r.start("cubic", true, set)
			r.run(replicaSize, time.Minute)
			if of := r.fetch.Replicas(); of[0].Segments != 0 || of[1].Segments == 0 {
				t.Errorf("%+v", of)
			}
		})
	}
}

// The network's answer may be all there is: no path tags, no hints.
func TestReplicaWithoutTags(t *testing.T) {
	for name, size := range map[string]int64{"interrupted": 0, "degraded": 10} {
		r := newReplicated(t, 8, slowNst, replicaSize, pipe(100, 20*ms), pipe(80, 25*ms))
		r.start("bbr", false, func(c *consumer.Config) {
			twoLevel(c)
			c.PathTags = false
		})
		r.net.At(time.Second, func() {
			if size == 0 {
				// Here the network waits to be asked.
				r.router.SetStrategy("/content", "/localhost/nfd/strategy/nst/v=1/evidence~1000")
				r.at[0].Crash()
			} else if err := r.links[0].Set(pipe(size, 80*ms)); err != nil {
				t.Error(err)
			}
		})
		if st := r.run(replicaSize, time.Minute); st.ReplicaSwitches != 1 {
			t.Errorf("%s: %+v", name, r.fetch.Switches())
		}
	}
}

// Nobody listens and there are no hints: the fetch stays, and asks rarely.
func TestNobodyListens(t *testing.T) {
	r := newReplicated(t, 8, "best-route", replicaSize, pipe(100, 20*ms), pipe(80, 25*ms))
	r.start("bbr", false, twoLevel)
	r.net.At(time.Second, func() {
		if err := r.links[0].Set(pipe(10, 80*ms)); err != nil {
			t.Error(err)
		}
	})
	if st := r.run(replicaSize, time.Minute); st.ReplicaSwitches != 0 {
		t.Errorf("%+v", r.fetch.Switches())
	}
}

// Two consumers of one object complain of the same path, and both move with
// it, once.
func TestTwoConsumersMoveOnce(t *testing.T) {
	r := newReplicated(t, 8, "nst", replicaSize, pipe(100, 20*ms), pipe(80, 25*ms), pipe(60, 30*ms))
	r.start("vegas", false, twoLevel) // which share a path without filling its queue
	other := r.net.AddFetch(r.net.Node("receiver"), sim.FetchConfig{
		Name: "/content/object", Start: 20 * ms, Controller: "vegas", Consumer: twoLevel,
	})
	r.net.At(1500*ms, func() {
		if err := r.links[0].Set(pipe(5, 80*ms)); err != nil {
			t.Error(err)
		}
	})
	st := r.run(replicaSize, time.Minute)
	if err := r.net.RunUntil(time.Minute, other.Done); err != nil || other.Err() != nil {
		t.Fatal(err, other.Err())
	}
	if n := st.ReplicaSwitches + other.Stats().ReplicaSwitches; n < 1 || n > 2 {
		t.Errorf("%+v, %+v", r.fetch.Switches(), other.Switches())
	}
	if c := r.links[2].BA.Counters(); c.OutPackets > 0 {
		t.Errorf("%d packets from the third replica: %+v %+v", c.OutPackets, r.fetch.Switches(), other.Switches())
	}
}

// --max-rate bounds all sources together.
func TestMultiSourceMaxRate(t *testing.T) {
	r := newReplicated(t, 8, "best-route", replicaSize/3, pipe(100, 20*ms), pipe(80, 25*ms))
	r.start("cubic", true, func(c *consumer.Config) {
		multiSource(c)
		c.MaxRate = 40e6 / 8 / scale
	})
	st := r.run(replicaSize/3, time.Minute)
	if d := r.fetch.Elapsed().Seconds(); d < 2 || d > 2.3 {
		t.Errorf("10 MB at 40 Mbit/s take %.2f s, %+v", d, st)
	}
}

// A fetch may begin with any of its replicas.
func TestFirstReplica(t *testing.T) {
	for name, set := range map[string]func(*consumer.Config){"stay": func(*consumer.Config) {}, "two-level": twoLevel, "multi-source": multiSource} {
		r := newReplicated(t, 8, "best-route", replicaSize/3, pipe(100, 20*ms), pipe(80, 25*ms), pipe(80, 25*ms))
		r.start("cubic", true, func(c *consumer.Config) {
			set(c)
			c.First = 2
		})
		r.run(replicaSize/3, time.Minute)
		of := r.fetch.Replicas()
		if name == "multi-source" && min(of[0].Segments, of[1].Segments, of[2].Segments) == 0 ||
			name != "multi-source" && of[0].Segments+of[1].Segments != 0 {
			t.Errorf("%s: %+v", name, of)
		}
	}
}

// starts is a controller that notes what it is told at a change of the path.
type starts struct {
	cc.Controller
	seen *[]cc.PathChange
}

func (s starts) OnPathChange(c *cc.PathChange) {
	*s.seen = append(*s.seen, *c)
	s.Controller.(cc.PathChanger).OnPathChange(c)
}

// Back on a replica that was used before, the controller starts from what it
// gave then.
func TestReturnStartsFromHistory(t *testing.T) {
	for _, strategy := range []string{"nst", "best-route"} {
		var seen []cc.PathChange
		noting := cc.Factory{Name: "noting", New: func(p cc.Params) (cc.Controller, error) {
			c, err := cc.NewBbr(p)
			return starts{c, &seen}, err
		}}
		r := newReplicatedWith(t, sim.Config{Seed: 8, Controllers: []cc.Factory{noting}}, strategy, replicaSize, pipe(100, 20*ms), pipe(80, 25*ms))
		r.start("noting", strategy != "nst", twoLevel)
		set := func(at time.Duration, l int, p sim.Params) {
			r.net.At(at, func() {
				if err := r.links[l].Set(p); err != nil {
					t.Error(err)
				}
			})
		}
		set(time.Second, 0, pipe(20, 80*ms))
		set(2500*ms, 1, pipe(3, 100*ms))
		r.run(replicaSize, time.Minute)
		var rates []float64
		for _, c := range seen {
			if c.Replica {
				rates = append(rates, c.Rate*8/1e6*scale)
			}
		}
		if len(rates) != 2 || rates[0] != 0 || rates[1] < 15 || rates[1] > 25 {
			t.Errorf("%s: starts at %.1f Mbit/s, %+v", strategy, rates, r.fetch.Switches())
		}
	}
}

// Nobody has a route: the fetch gives up as it does without replicas.
func TestNoReplicaLeads(t *testing.T) {
	for name, set := range map[string]func(*consumer.Config){"two-level": twoLevel, "multi-source": multiSource} {
		for _, discover := range []string{"/content/object", "/content/object/v=1"} {
			r := newReplicated(t, 7, "best-route", replicaSize, pipe(100, 20*ms), pipe(80, 25*ms))
			r.start("cubic", true, set)
			r.net.At(0, func() {
				r.router.RemoveRoute("/content", r.links[0])
				r.router.RemoveRoute("/r1", r.links[1])
			})
			f := r.net.AddFetch(r.receiver, sim.FetchConfig{Name: discover, Start: ms, Consumer: func(c *consumer.Config) {
				c.Replicas = []consumer.Replica{{Hint: []ndn.Name{ndn.MustName("/r1")}}}
				set(c)
			}})
			if err := r.net.RunUntil(5*time.Minute, f.Done); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(f.Err(), consumer.ErrNoRoute) || f.Elapsed() > 30*time.Second {
				t.Errorf("%s, %s: %v after %v", name, discover, f.Err(), f.Elapsed())
			}
		}
	}
}

// Several sources add up, and no segment comes twice but those raced at the
// end.
func TestMultiSourceAddsUp(t *testing.T) {
	for _, controller := range []string{"reno", "cubic", "vegas", "bbr", "bbr-gc", "bbq", "bbr-acw", "mpc"} {
		t.Run(controller, func(t *testing.T) {
			r := newReplicated(t, 9, "best-route", replicaSize, pipe(60, 20*ms), pipe(30, 60*ms), pipe(10, 10*ms))
			r.start(controller, true, multiSource)
			st := r.run(replicaSize, time.Minute)
			if err := r.net.Run(r.net.Now() + time.Second); err != nil {
				t.Fatal(err)
			}
			carried := int64(0)
			for _, l := range r.links {
				carried += l.BA.Counters().OutPackets
			}
			// Data of a segment that was taken for lost may be carried twice,
			// and the metadata is one.
			most := int64(st.Segments+st.Races) + 1 + int64(st.Duplicates)
			if carried > most {
				t.Errorf("%d Data carried for %d segments, %d raced, %d duplicates", carried, st.Segments, st.Races, st.Duplicates)
			}
			if st.Races > 300/scale {
				t.Errorf("%d races", st.Races)
			}
			ideal := float64(replicaSize) * 8 / (100e6 / scale)
			if got := r.fetch.Elapsed().Seconds(); got > 1.35*ideal {
				t.Errorf("takes %.2f s, ideal are %.2f", got, ideal)
			}
		})
	}
}

// Interests by hint do not move the object that an nst has given a replica.
func TestHintsDoNotMoveObjects(t *testing.T) {
	r := newReplicated(t, 9, "nst", replicaSize, pipe(60, 20*ms), pipe(30, 60*ms), pipe(10, 10*ms))
	r.start("cubic", true, multiSource)
	st := r.run(replicaSize, time.Minute)
	if of := r.fetch.Replicas(); of[0].Segments < st.Segments/2 || of[1].Segments < st.Segments/5 {
		t.Errorf("%+v", of)
	}
}

// Two lanes that lead to the same replica by the same path become one.
func TestSamePathIsUsedOnce(t *testing.T) {
	r := newReplicated(t, 9, "best-route", replicaSize, pipe(60, 20*ms), pipe(30, 60*ms))
	r.start("cubic", false, func(c *consumer.Config) {
		// The hint leads where the name leads.
		c.Replicas = []consumer.Replica{{Hint: []ndn.Name{ndn.MustName("/r0")}}}
		c.MultiSource = true
	})
	st := r.run(replicaSize, time.Minute)
	if of := r.fetch.Replicas(); of[0].Segments+of[1].Segments != st.Segments || min(of[0].Segments, of[1].Segments) > st.Segments/20 {
		t.Errorf("%+v", of)
	}
}

// A replica that has not got the content is not used, and nothing fails.
func TestReplicaWithoutContent(t *testing.T) {
	for name, set := range map[string]func(*consumer.Config){"two-level": twoLevel, "multi-source": multiSource} {
		t.Run(name, func(t *testing.T) {
			r := newReplicated(t, 11, "best-route", 0, pipe(100, 20*ms), pipe(80, 25*ms))
			r.net.AddProducer(r.at[0], sim.ProducerConfig{Prefix: "/content", Size: replicaSize})
			r.net.AddProducer(r.at[1], sim.ProducerConfig{Prefix: "/content", Sizes: func(ndn.Name) int64 { return -1 }})
			r.start("cubic", true, set)
			if name == "two-level" {
				// It degrades, the other one has nothing, and the fetch comes back.
				r.net.At(time.Second, func() {
					if err := r.links[0].Set(pipe(10, 80*ms)); err != nil {
						t.Error(err)
					}
				})
			}
			r.run(replicaSize, 2*time.Minute)
		})
	}
}

// Whatever fails and comes back, in whatever order, what arrives is the
// object, and the same seed gives the same run.
func TestReplicasUnderFire(t *testing.T) {
	seeds := uint64(16)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		run := func() (consumer.Stats, string) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var ps []sim.Params
			for range 2 + rng.IntN(3) {
				p := pipe(int64(5+rng.IntN(60)), time.Duration(2+rng.IntN(60))*ms)
				p.Loss = 0.01 * rng.Float64()
				ps = append(ps, p)
			}
			strategy := []string{"nst", "best-route"}[rng.IntN(2)]
			set := []func(*consumer.Config){twoLevel, multiSource}[rng.IntN(2)]
			controllers := []string{"reno", "cubic", "bbr", "mpc", "vegas"}
			r := newReplicated(t, seed, strategy, 8_000_000/scale, ps...)
			r.start(controllers[rng.IntN(len(controllers))], rng.IntN(4) > 0, set)
			for range 12 {
				l := r.links[rng.IntN(len(r.links))]
				at := time.Duration(rng.IntN(6000)) * ms
				if rng.IntN(2) == 0 {
					r.net.At(at, l.BlackHole)
				} else {
					p := pipe(int64(1+rng.IntN(40)), time.Duration(2+rng.IntN(200))*ms)
					r.net.At(at, func() {
						if err := l.Set(p); err != nil {
							t.Error(err)
						}
					})
				}
				r.net.At(at+time.Duration(rng.IntN(9000))*ms, l.Up)
			}
			st := r.run(8_000_000/scale, 5*time.Minute)
			return st, fmt.Sprint(r.fetch.Elapsed(), r.fetch.Switches(), r.fetch.Replicas())
		}
		a, why := run()
		if b, again := run(); a != b || why != again {
			t.Errorf("seed %d: two runs differ:\n%s\n%s", seed, why, again)
		}
	}
}

// On paths that change at random: several sources are never slower than one, and
// switching, which is a bet, never much.
func TestReplicasHelp(t *testing.T) {
	const size = 12_000_000 / scale
	fetch := func(seed uint64, set func(*consumer.Config)) float64 {
		rng := rand.New(rand.NewPCG(seed, 2))
		random := func(most, rtt int) sim.Params {
			p := pipe(int64(5+rng.IntN(most)), time.Duration(5+rng.IntN(rtt))*ms)
			p.Queue = int64(float64(p.Queue) * (0.5 + 3*rng.Float64()))
			return p
		}
		links := []sim.Params{random(60, 60), random(60, 60), random(60, 60)}[:2+rng.IntN(2)]
		r := newReplicated(t, seed, []string{"nst", "best-route"}[seed%2], size, links...)
		r.start("cubic", true, set)
		for range rng.IntN(4) {
			l, p := r.links[rng.IntN(len(links))], random(60, 150)
			r.net.At(time.Duration(rng.IntN(4000))*ms, func() {
				if err := l.Set(p); err != nil {
					t.Error(err)
				}
			})
		}
		r.run(size, 10*time.Minute)
		return r.fetch.Elapsed().Seconds()
	}
	for seed := range uint64(10) {
		one := fetch(seed, func(*consumer.Config) {})
		if all := fetch(seed, multiSource); all > 1.02*one {
			t.Errorf("seed %d: %.2f s from one replica, %.2f s from all", seed, one, all)
		}
		if two := fetch(seed, twoLevel); two > 1.4*one {
			t.Errorf("seed %d: %.2f s from one replica, %.2f s with switching", seed, one, two)
		}
	}
}
