package mgmt

import (
	"errors"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/fw"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// The protocol measures the content store in packets, this forwarder in
// bytes: a capacity of n packets is room for n of the largest ones.
const packetBytes = ndn.MaxPacketSize

func csFlags(c *run.CSInfo) uint64 {
	var f uint64
	if c.Admit {
		f |= proto.CsAdmit
	}
	if c.Serve {
		f |= proto.CsServe
	}
	return f
}

func (s *Server) configureCS(r *request) proto.ControlResponse {
	p := &r.params
	var c run.CSConfig
	if n, ok := p.Capacity.Get(); ok {
		if n > (1<<62)/packetBytes {
			return failure(r, proto.StatusBadRequest, "the capacity is out of bounds")
		}
		n *= packetBytes
		c.CapacityBytes = &n
	}
	flags, mask := p.Flags.GetOr(0), p.Mask.GetOr(0)
	if mask&proto.CsAdmit != 0 {
		on := flags&proto.CsAdmit != 0
		c.Admit = &on
	}
	if mask&proto.CsServe != 0 {
		on := flags&proto.CsServe != 0
		c.Serve = &on
	}
	if err := s.fwd.ContentStore.ConfigureCS(c); err != nil {
		return failure(r, proto.StatusNotAcceptable, err.Error())
	}
	info := s.fwd.ContentStore.CS()
	return success(proto.ControlParameters{
		Capacity: optional.Some(info.CapacityBytes / packetBytes),
		Flags:    optional.Some(csFlags(&info)),
	})
}

// eraseLimit is how many Data one command erases (NFD: CsManager).
const eraseLimit = 256

// eraseCS erases some Data. An answer with a Capacity says that there may be
// more to erase than one command may.
func (s *Server) eraseCS(r *request) proto.ControlResponse {
	p := &r.params
	want := p.Count.GetOr(1 << 62)
	if want == 0 {
		return failure(r, proto.StatusBadRequest, "the count of what to erase must be more than 0")
	}
	n := s.fwd.ContentStore.EraseCS(p.Name.GetOr(nil), int(min(want, eraseLimit)))
	body := proto.ControlParameters{Name: p.Name, Count: optional.Some(uint64(n))}
	if n == eraseLimit && want > eraseLimit {
		body.Capacity = optional.Some(uint64(eraseLimit))
	}
	return success(body)
}

func (s *Server) csInfo() proto.CsInfo {
	c := s.fwd.ContentStore.CS()
	return proto.CsInfo{
		Capacity: c.CapacityBytes / packetBytes, Flags: csFlags(&c),
		Entries: c.Entries, Hits: c.Hits, Misses: c.Misses,
		CapacityBytes: optional.Some(c.CapacityBytes), UsedBytes: optional.Some(c.UsedBytes), DataBytes: optional.Some(c.DataBytes),
	}
}

func (s *Server) setStrategy(r *request) proto.ControlResponse {
	p := &r.params
	full, err := s.fwd.Strategies.SetStrategy(p.Name.GetOr(nil), p.Strategy)
	if err != nil {
		return failure(r, strategyCode(err), err.Error())
	}
	return success(proto.ControlParameters{Name: p.Name, Strategy: full})
}

func strategyCode(err error) uint64 {
	switch {
	case errors.Is(err, strategy.ErrUnknown), errors.Is(err, strategy.ErrVersion):
		return proto.StatusNotFound
	case errors.Is(err, run.ErrNameTooLong):
		return proto.StatusNameTooLong
	case errors.Is(err, strategy.ErrParam):
		return proto.StatusConflict // NFD
	}
	return proto.StatusUnavailable
}

// unsetStrategy answers 200 also if the prefix has no strategy of its own, as
// NFD does.
func (s *Server) unsetStrategy(r *request) proto.ControlResponse {
	p := &r.params
	if len(p.Name.GetOr(nil)) == 0 {
		return failure(r, proto.StatusBadRequest, "the strategy of / can be set but not unset")
	}
	if err := s.fwd.Strategies.UnsetStrategy(p.Name.GetOr(nil)); err != nil && !errors.Is(err, fw.ErrNoChoice) {
		return failure(r, proto.StatusUnavailable, err.Error())
	}
	return success(proto.ControlParameters{Name: p.Name})
}

func (s *Server) status() proto.ForwarderStatus {
	t := s.fwd.Status.Totals()
	var shards []proto.ShardStatus
	for _, l := range t.Shards {
		shards = append(shards, proto.ShardStatus{
			Busy: uint64(l.Busy.Microseconds()), Load: uint64(l.Recent*1e4 + 0.5), Pit: uint64(l.PitEntries),
			CsHits: l.CSHits, CsMisses: l.CSMisses, Packets: l.Packets, Batches: l.Batches,
		})
	}
	return proto.ForwarderStatus{
		Version:  s.version,
		Started:  uint64(max(s.started.UnixMilli(), 0)),
		Now:      uint64(max(s.wall().UnixMilli(), 0)),
		NameTree: t.NameTree, Fib: t.Fib, Pit: t.Pit, Measurements: t.Measurements, Cs: t.Cs,
		InInterests: t.InInterests, InData: t.InData, InNacks: t.InNacks,
		OutInterests: t.OutInterests, OutData: t.OutData, OutNacks: t.OutNacks,
		SatisfiedInterests: t.Satisfied, UnsatisfiedInterests: t.Unsatisfied,
		Shards: shards,
	}
}
