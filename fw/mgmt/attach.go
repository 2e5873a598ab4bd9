package mgmt

import (
	"context"
	"fmt"
	"sync"

	"ndnpop/fw/run"
)

// Attach makes a server for f and sets it to work: it observes f, answers at
// its internal face, and has its prefixes routed there. stop ends all of this
// and returns when nothing of it runs any more.
func Attach(f *run.Forwarder, o Options) (s *Server, stop func(), err error) {
	s, err = New(Forwarder{
		Faces: f, RIB: f, FIB: f, Strategies: f, ContentStore: f, Internal: f, Status: totals{f},
	}, o)
	if err != nil {
		return nil, nil, err
	}
	unobserve := f.Observe(s.Observe)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	f.HandleInternal(s.Handle)
	stop = sync.OnceFunc(func() {
		f.HandleInternal(nil)
		unobserve()
		cancel()
		running.Wait()
	})
	for _, p := range s.Prefixes() {
		if err := f.SetNextHop(p, run.InternalFace, 0); err != nil {
			stop()
			return nil, nil, fmt.Errorf("management: route %s: %w", p, err)
		}
	}
	return s, stop, nil
}

// totals adds up what status/general tells.
type totals struct{ f *run.Forwarder }

// Totals implements Status.
func (t totals) Totals() Totals {
	c := t.f.Counters()
	return Totals{
		// There is no one tree of names: each table has its own.
		NameTree: uint64(c.FibEntries + c.PitEntries + c.Measurements),
		Fib:      uint64(c.FibEntries), Pit: uint64(c.PitEntries),
		Measurements: uint64(c.Measurements), Cs: t.f.CS().Entries,
		InInterests: c.InInterests, InData: c.InData, InNacks: c.InNacks,
		OutInterests: c.OutInterests, OutData: c.OutData, OutNacks: c.OutNacks,
		Satisfied: c.Satisfied, Unsatisfied: c.Expired,
		Shards: t.f.Loads(),
	}
}
