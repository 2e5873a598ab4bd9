package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// Lifetimes of the Interests that wait for something to happen. Face events
// are asked for as by ndn-cxx; a trace ends in the forwarder soon after its
// follower does.
const (
	eventLifetime = 60 * time.Second
	traceLifetime = 4 * time.Second
)

// Events calls fn for every face event from now on, until ctx ends, fn fails or
// the connection ends, and returns why. missed, if not nil, is told how many
// events were lost before the next one, because more came than the forwarder
// keeps.
func (c *Client) Events(ctx context.Context, fn func(mgmt.FaceEvent) error, missed func(n uint64)) error {
	prefix := c.prefix.Clone().AppendGeneric("faces").AppendGeneric("events")
	return c.follow(ctx, prefix, eventLifetime, func(content []byte) error {
		e, err := mgmt.ParseFaceEvent(content)
		if err != nil {
			return err
		}
		return fn(e)
	}, missed)
}

// Trace calls fn for what strategies decide about the Interests below prefix
// from now on, until ctx ends, fn fails or the connection ends, and returns
// why.
func (c *Client) Trace(ctx context.Context, prefix ndn.Name, fn func(mgmt.Trace) error) error {
	name := c.prefix.Clone().AppendGeneric("strategy-choice").AppendGeneric("trace")
	name = ndn.AppendTLV(name, ndn.TypeGeneric, prefix.AppendTLVTo(nil))
	return c.follow(ctx, name, traceLifetime, func(content []byte) error {
		t, err := mgmt.ParseTrace(content)
		if err != nil {
			return err
		}
		return fn(t)
	}, nil)
}

// follow calls fn with the content of each Data of a notification stream: the
// next one that there is, and then one sequence number after the other.
func (c *Client) follow(ctx context.Context, prefix ndn.Name, lifetime time.Duration, fn func(content []byte) error, missed func(n uint64)) error {
	var (
		begun     bool   // next is known
		following bool   // and asked for
		next      uint64 // sequence number to ask for
		asked     ndn.Name
		until     ndn.Time
		failed    error
	)
	return c.exchange(ctx, func(now ndn.Time) (ndn.Time, bool, error) {
		if failed != nil {
			return 0, true, failed
		}
		if asked != nil && now < until {
			return until, false, nil
		}
		if asked != nil {
			// Nothing happened, or the forwarder began anew: whatever is next.
			following = false
		}
		i := ndn.InterestFields{Name: prefix, CanBePrefix: true, MustBeFresh: true, Nonce: rand.Uint32(), Lifetime: lifetime}
		if following {
			i.Name = append(ndn.Name(nil), prefix...).AppendNumber(ndn.TypeSequenceNum, next)
			i.CanBePrefix, i.MustBeFresh = false, false
		}
		asked, until = i.Name, now.Add(lifetime)
		return until, false, c.send(ndn.AppendInterest(nil, &i))
	}, func(p *packet) {
		switch p.kind {
		case ndn.KindData:
			var d ndn.Data
			if d.Parse(p.wire) != nil || asked == nil || !d.Name.HasPrefix(asked) {
				return
			}
			last, _ := d.Name.At(-1)
			seq, ok := last.NumberAs(ndn.TypeSequenceNum)
			if !ok || d.ContentType == ndn.ContentNack {
				failed = mgmt.Refusal(&d)
				return
			}
			if begun && seq > next && missed != nil {
				missed(seq - next)
			}
			begun, following, next, asked = true, true, seq+1, nil
			failed = fn(d.Content)
		case ndn.KindNack:
			var i ndn.Interest
			switch {
			case i.Parse(p.wire) != nil || !i.Name.Equal(asked):
			case following:
				// It is not kept any more: whatever is next.
				following, asked = false, nil
			default:
				failed = fmt.Errorf("%w (nack %s)", mgmt.ErrNack, p.reason)
			}
		}
	})
}
