// Package sim is a network in virtual time. It runs the forwarding shards,
// link services, strategies, producers and fetchers that ship (fw, face/lp,
// strategy, producer, consumer) over links with a rate, a propagation delay,
// jitter, losses, queues and failures, thousands of nodes in one process.
//
//	n := sim.New(sim.Config{Seed: 1, Strategies: strategies.Builtin()})
//	client, edge, origin := n.AddNode("client", sim.NodeConfig{}), …
//	n.Connect(client, edge, sim.LinkConfig{Params: sim.Params{Rate: 100e6, Delay: 5 * time.Millisecond}})
//	n.AddProducer(origin, sim.ProducerConfig{Prefix: "/video", Size: 100 << 20})
//	f := n.AddFetch(client, sim.FetchConfig{Name: "/video/clip", Controller: "cubic"})
//	err := n.Run(time.Minute)
//
// Topologies are built like this, by generators (Chain, Dumbbell, Tree, CDN),
// or read from TOML (Load). Routes are computed from the links' costs, or learnt
// from the announcements of producers (self-learning). Links change, fail and
// come back, and nodes die, at the times that At is given. Probes record rate, RTT, window and queue over time; Config.Trace gets every
// event as a line of JSON.
//
// # Time and chance
//
// Time is in integer nanoseconds. There is one event queue, ordered by time
// and, among events at the same time, by when they were scheduled. Every
// purpose has a generator of random numbers of its own (the losses and the
// jitter of each direction of each link, the Nonces and hashes of each node,
// each fetch, each workload), seeded from Config.Seed: the same seed gives a
// byte-identical trace, and a change to one part of a scenario does not
// re-roll the dice of the others. A Network is for one goroutine; RunSeeds
// runs several networks on all cores.
//
// # What the model leaves out
//
// Forwarders and applications take no time: only links do. A packet that finds
// a link's queue full is lost without its sender being told, as in a network
// and unlike in a local socket. Applications reach their forwarder over a face
// without limits. Data is signed with the null signature unless a producer has
// a signer, because a signature costs more than the rest of its way.
package sim
