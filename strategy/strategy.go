package strategy

import (
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// Strategy decides where Interests go. These two handlers are required. The
// structs and what they point to are valid during the call only.
type Strategy interface {
	// Interest is called for an Interest that the content store could not
	// answer. It is no loop, violates no scope, was not suppressed, and is
	// already in the PIT entry's in-records. When the handler returns with
	// nothing sent, no Nack and no timer, the Interest stays pending until it
	// expires.
	Interest(c *Context, ev *Interest)
	// Data is called for each entry that a Data satisfies, before its
	// downstreams get it. The Data goes to them whatever the handler does.
	Data(c *Context, ev *Data)
}

// LoopHandler is for strategies that want to see looped Interests. Without
// it, the downstream of a looped Interest gets a Nack Duplicate, unless its
// link is not point-to-point.
type LoopHandler interface {
	// Loop is called with the PIT entry that knows the Nonce, or without an
	// entry when the dead nonce list does. The Interest is in no in-record.
	Loop(c *Context, ev *Loop)
}

// NackHandler is for strategies that react to Nacks. Without it Nacks are
// collected and passed down, as by [Context.PassNacks].
type NackHandler interface {
	// Nack is called for a Nack that answers the latest Interest sent to that
	// upstream. The out-record has Failed and Reason set.
	Nack(c *Context, ev *Nack)
}

// GaveUpHandler is for strategies that react when a link service gave up on
// delivering an Interest. Without it this counts as a Nack Congestion.
type GaveUpHandler interface {
	// GaveUp is called with the out-record's Failed and Reason (Congestion)
	// set. The next hop itself is not down.
	GaveUp(c *Context, ev *GaveUp)
}

// TimerHandler is required of strategies that arm timers.
type TimerHandler interface {
	// Timer is called when a timer is due: with the entry it was armed for,
	// or without an entry for Context.ArmPlain. Timers of an entry are
	// disarmed when it is satisfied and does not linger, or expires.
	Timer(c *Context, ev *Timer)
}

// ExpiryHandler is for strategies that learn from unanswered Interests.
type ExpiryHandler interface {
	// Expiry is called when an entry ends without having been satisfied, or
	// has lingered long enough (ev.Satisfied). It is removed after the call;
	// sending is refused.
	Expiry(c *Context, ev *Expiry)
}

// NextHopHandler is for strategies that react to next hops that go down, come
// up, or are new.
type NextHopHandler interface {
	// NextHop is called once without an entry, for what the strategy keeps
	// about prefixes, and then for each pending entry concerned, in the order
	// the Interests arrived: for HopDown the entries with a pending out-record
	// there (it has Failed set), for HopUp and HopNew the entries below the
	// prefix that have nothing pending there. Calls without an entry are made only for
	// prefixes whose strategy this is.
	NextHop(c *Context, ev *NextHop)
}

// InheritHandler is for strategies that take over what is pending when they
// are chosen.
type InheritHandler interface {
	// Inherit is called for each pending Interest that was another strategy's
	// until now, in the order the Interests arrived. What was sent is in the
	// out-records, with the times; the other strategy's state and timers are
	// gone. If it kept the Interest waiting, nothing is pending.
	Inherit(c *Context)
}

// ReplicaSelector is for strategies that choose among replicas (2LCCM).
type ReplicaSelector interface {
	// SelectReplica is called, before Interest, when the Interest carries a
	// request to choose another replica: also when the content store answers
	// it, in which case there is no entry. Returning true takes the request:
	// it is acknowledged on the Data and not carried upstream.
	SelectReplica(c *Context, ev *Interest) bool
}

// Interest is the event of an Interest to forward.
type Interest struct {
	Interest *ndn.Interest
	In       ndn.FaceID
	// New is set when no answer was pending from any upstream. Otherwise this
	// is a Retransmission by a downstream that already waits, or a further
	// downstream.
	New            bool
	Retransmission bool
}

// Data is the event of a Data.
type Data struct {
	Data *ndn.Data
	In   ndn.FaceID
	// Out is the out-record towards In, nil when the Interest was not sent
	// there.
	Out *table.OutRecord
	// RTT is the time since the latest Interest to In, zero without Out. It
	// is ambiguous unless RTTCertain: with several transmissions the Data may
	// answer an earlier one (Karn).
	RTT        time.Duration
	RTTCertain bool
	// Straggler is set when the entry was satisfied earlier and lingers.
	Straggler bool
}

// Loop is the event of a looped Interest.
type Loop struct {
	Interest *ndn.Interest
	In       ndn.FaceID
}

// Nack is the event of a Nack from an upstream.
type Nack struct {
	In     ndn.FaceID
	Reason ndn.NackReason
	Out    *table.OutRecord
	RTT    time.Duration // since the Interest was sent
}

// GaveUp is the event of an Interest that a link service could not deliver.
type GaveUp struct {
	On  ndn.FaceID
	Out *table.OutRecord
}

// Timer is the event of a timer that is due.
type Timer struct {
	ID  table.TimerID
	At  ndn.Time // when it was due
	Tag uint64   // as given when it was armed
}

// Expiry is the event of an entry's end.
type Expiry struct {
	Satisfied bool
}

// HopChange says what happened to a next hop.
type HopChange uint8

// Changes of next hops.
const (
	// HopDown: the face is down or gone.
	HopDown HopChange = iota + 1
	// HopUp: the face of an existing next hop came up again.
	HopUp
	// HopNew: a route was added.
	HopNew
)

// NextHop is the event of a change of a next hop.
type NextHop struct {
	Face   ndn.FaceID
	Cost   uint64 // for HopNew
	Change HopChange
	// Prefix is the route's for HopNew; nil when all of the face's routes are
	// concerned.
	Prefix ndn.Name
	// Out is the entry's out-record towards Face, nil without.
	Out *table.OutRecord
}
