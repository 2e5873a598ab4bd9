// Package strategy is the contract between the forwarding shard and the
// strategies that choose next hops: the events a strategy sees, the Context
// through which it acts, typed state per pending Interest and per prefix,
// suppression of retransmissions, and the registry that resolves a strategy's
// name and parameters.
//
// A strategy is a value with the two required handlers of [Strategy] and any
// of the optional ones ([LoopHandler], [NackHandler], [GaveUpHandler],
// [TimerHandler], [ExpiryHandler], [NextHopHandler], [ReplicaSelector],
// [Suppressor]); which it has is found out once, when it is bound to a prefix.
// The shard calls it synchronously and one event at a time; a strategy has no
// goroutine, lock or clock, and is deterministic: randomness comes from
// [Context.Rand].
//
//	func (s *nearest) Interest(c *strategy.Context, ev *strategy.Interest) {
//		for _, hop := range c.NextHops() {
//			if c.Send(hop.Face) == strategy.Sent {
//				return
//			}
//		}
//		c.Nack(ev.In, ndn.NackNoRoute)
//	}
package strategy
