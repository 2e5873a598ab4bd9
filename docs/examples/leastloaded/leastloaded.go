// Package leastloaded sends Interests to where the fewest are unanswered.
package leastloaded

import (
	"ndnpop/ndn"
	"ndnpop/strategy"
)

func Factory() strategy.Factory {
	return strategy.Factory{
		Name: "least-loaded", Version: 1, Usage: "the next hop with the fewest unanswered Interests",
		Params: []strategy.Param{{Name: "slack", Usage: "unanswered Interests more that a cheaper next hop may have (0)"}},
		New: func(v strategy.Values) (strategy.Strategy, error) {
			slack, err := v.UintIn("slack", 0, 0, 1000)
			return &leastLoaded{slack: int(slack)}, err
		},
	}
}

type leastLoaded struct {
	slack int
	loads strategy.PrefixState[strategy.Hops[*int]] // by prefix and next hop
	sent  strategy.EntryState[sent]                 // by pending Interest
}

type sent struct{ load *int } // an Interest, until its PIT entry ends in any way

func (s *sent) Release() {
	if s.load != nil {
		*s.load, s.load = *s.load-1, nil
	}
}

func (l *leastLoaded) Interest(c *strategy.Context, ev *strategy.Interest) {
	if !ev.New && !ev.Retransmission {
		return // a further consumer waits for the same Data
	}
	to, least, all := ndn.FaceID(0), (*int)(nil), []strategy.Candidate(nil)
	for _, h := range c.NextHops() { // by cost
		load := l.loads.Get(c).Of(h.Face)
		if *load == nil {
			*load = new(int)
		}
		if least == nil || **load+l.slack < *least {
			to, least = h.Face, *load
		}
		if c.Traced() {
			all = append(all, strategy.Candidate{Face: h.Face, Cost: h.Cost, Weight: float64(**load), Note: "unanswered"})
		}
	}
	c.Explain(to, "fewest unanswered", all)
	if c.Send(to) == strategy.Sent {
		s := l.sent.Get(c)
		s.Release()
		s.load, *least = least, *least+1
	} else if ev.New {
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

func (l *leastLoaded) Data(*strategy.Context, *strategy.Data) {} // the entry ends
