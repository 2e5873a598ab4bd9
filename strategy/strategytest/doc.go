// Package strategytest tests strategies without a socket or a clock.
//
// A [Recorder] is a real forwarding shard in virtual time. Its upstreams are
// scripted: a [Hop] answers after a delay, loses, Nacks, falls silent, dies or
// marks, as its fields say at that moment. Its downstreams are scripted as
// well: a [Consumer] keeps a window of Interests pending or sends at a pace.
// Afterwards the recorder tells which next hop every Interest took, in which
// event, and the reason that the strategy gave. The same seed gives the same
// run.
//
// A [Topology] is a whole network in virtual time (package sim): several
// forwarders with the strategy, real consumers and producers, links with rates,
// delays, losses and failures.
//
// [Bench] measures a strategy's handlers alone, and [CheckAllocs] fails when they
// allocate.
package strategytest
