package mgmt

import (
	"errors"
	"fmt"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// routeCode chooses the code of an error of the RIB or FIB.
func routeCode(err error) uint64 {
	switch {
	case errors.Is(err, run.ErrNoFace):
		return proto.StatusGone
	case errors.Is(err, run.ErrNameTooLong):
		return proto.StatusNameTooLong
	case errors.Is(err, run.ErrReservedFace), errors.Is(err, run.ErrReservedPrefix):
		return proto.StatusNotAcceptable
	}
	return proto.StatusUnavailable
}

func noFace(r *request, id ndn.FaceID) proto.ControlResponse {
	return failure(r, proto.StatusGone, fmt.Sprintf("face %d does not exist", id))
}

// addNextHop sets a next hop beside the RIB.
func (s *Server) addNextHop(r *request) proto.ControlResponse {
	p := &r.params
	name, id, cost := p.Name.GetOr(nil), r.faceID(), p.Cost.GetOr(0)
	if err := s.fwd.FIB.SetNextHop(name, id, cost); err != nil {
		return routeFailure(r, id, err)
	}
	return success(proto.ControlParameters{
		Name: p.Name, FaceID: optional.Some(uint64(id)), Cost: optional.Some(cost),
	})
}

func routeFailure(r *request, id ndn.FaceID, err error) proto.ControlResponse {
	if errors.Is(err, run.ErrNoFace) {
		return noFace(r, id)
	}
	return failure(r, routeCode(err), err.Error())
}

// removeNextHop answers 200 also if there is no such next hop, as NFD does.
func (s *Server) removeNextHop(r *request) proto.ControlResponse {
	p := &r.params
	id := r.faceID()
	if id == run.InternalFace {
		return failure(r, proto.StatusNotAcceptable, "this would cut off management itself")
	}
	if err := s.fwd.FIB.RemoveNextHop(p.Name.GetOr(nil), id); err != nil && !errors.Is(err, run.ErrNoFace) {
		return routeFailure(r, id, err)
	}
	return success(proto.ControlParameters{Name: p.Name, FaceID: optional.Some(uint64(id))})
}

// register adds a route. At /localhop only towards the face it came from.
func (s *Server) register(r *request) proto.ControlResponse {
	p := &r.params
	id := r.faceID()
	if r.localhop && id != r.in {
		return failure(r, proto.StatusForbidden, "a remote host may register its own face only")
	}
	if r.localhop && ownPrefix(p.Name.GetOr(nil)) {
		return failure(r, proto.StatusForbidden, notForOthers)
	}
	flags := p.Flags.GetOr(proto.RouteChildInherit)
	route := run.Route{
		Prefix: p.Name.GetOr(nil), Face: id,
		Origin: p.Origin.GetOr(proto.OriginApp), Cost: p.Cost.GetOr(0),
		ChildInherit: flags&proto.RouteChildInherit != 0,
		Capture:      flags&proto.RouteCapture != 0,
	}
	// nfd-autoreg asks for the longest time there is, which means for ever (NFD:
	// RibManager).
	if ms, ok := p.Expiration.Get(); ok && millis(ms) < ndn.MaxLifetime {
		route.Expires = r.now.Add(millis(ms))
	}
	if err := s.fwd.RIB.AddRoute(route); err != nil {
		return routeFailure(r, id, err)
	}
	return success(routeBody(&route, flags, p.Expiration))
}

// ownPrefix reports whether a prefix is for this host alone: names of its scope,
// and of the commands to it. No packet goes from here to a remote face by a
// route there, but the route would hide shorter ones, so that others could not
// register any more.
func ownPrefix(prefix ndn.Name) bool {
	return prefix.HasPrefix(localhost) || prefix.HasPrefix(proto.Localhop())
}

var localhost = proto.Localhost().Prefix(1)

const notForOthers = "a remote host has no routes for prefixes of this one"

func routeBody(route *run.Route, flags uint64, expires optional.Optional[uint64]) proto.ControlParameters {
	return proto.ControlParameters{
		Name:   optional.Some(route.Prefix),
		FaceID: optional.Some(uint64(route.Face)),
		Origin: optional.Some(route.Origin),
		Cost:   optional.Some(route.Cost),
		Flags:  optional.Some(flags), Expiration: expires,
	}
}

// millis converts a number from the wire, at most to ndn.MaxLifetime.
func millis(ms uint64) time.Duration {
	return time.Duration(min(ms, uint64(ndn.MaxLifetime/time.Millisecond))) * time.Millisecond
}

// unregister answers 200 also if there is no such route, as NFD does.
func (s *Server) unregister(r *request) proto.ControlResponse {
	p := &r.params
	id, origin := r.faceID(), p.Origin.GetOr(proto.OriginApp)
	if r.localhop && id != r.in {
		return failure(r, proto.StatusForbidden, "a remote host may unregister its own face only")
	}
	s.fwd.RIB.RemoveRoute(p.Name.GetOr(nil), id, origin)
	return success(proto.ControlParameters{
		Name: p.Name, FaceID: optional.Some(uint64(id)), Origin: optional.Some(origin),
	})
}

// announcementCost is the cost of routes of prefix announcements (NFD,
// PA_ROUTE_COST).
const announcementCost = 2048

// announce adds a route for a prefix announcement (NFD wiki, "Prefix
// Announcement"), which travels in the application parameters, when it is
// believed.
func (s *Server) announce(r *request) {
	a, err := parseAnnouncement(r.announce)
	if err != nil {
		s.finish(r, proto.ControlResponse{Code: proto.StatusBadRequest, Text: err.Error()})
		return
	}
	if a.prefix.Len() > ndn.MaxComponents {
		s.finish(r, proto.ControlResponse{Code: proto.StatusNameTooLong, Text: "the prefix has more than 32 components"})
		return
	}
	if r.localhop && ownPrefix(a.prefix) {
		s.finish(r, proto.ControlResponse{Code: proto.StatusForbidden, Text: notForOthers})
		return
	}
	if a.left(s.wall()) <= 0 {
		s.finish(r, outOfDate)
		return
	}
	s.believe(r.in, r.local, &a, func(why error) {
		if why != nil {
			s.refuse(r, why.Error())
			return
		}
		s.finish(r, s.addAnnounced(r, &a))
	})
}

func (s *Server) addAnnounced(r *request, a *announcement) proto.ControlResponse {
	left := a.left(s.wall())
	if left <= 0 {
		return outOfDate
	}
	route := run.Route{
		Prefix: a.prefix, Face: r.in, Origin: proto.OriginPrefixAnn, Cost: announcementCost,
		ChildInherit: true, Expires: s.fwd.Internal.Now().Add(left),
	}
	if err := s.fwd.RIB.AddRoute(route); err != nil {
		return routeFailure(r, r.in, err)
	}
	return success(routeBody(&route, proto.RouteChildInherit, optional.Some(uint64(left/time.Millisecond))))
}

// statusExpired is what NFD answers to an announcement that is out of date.
const statusExpired uint64 = 416

var outOfDate = proto.ControlResponse{Code: statusExpired, Text: "the announcement is not valid now"}

type announcement struct {
	data                ndn.Data
	prefix              ndn.Name
	expiration          time.Duration
	notBefore, notAfter time.Time // zero when absent
}

var errAnnouncement = errors.New("the application parameters hold no valid prefix announcement")

// parseAnnouncement decodes a prefix announcement: Data named
// <prefix>/32=PA/<version>/<segment 0> whose content has an ExpirationPeriod
// and maybe a ValidityPeriod. The result refers to wire.
func parseAnnouncement(wire []byte) (announcement, error) {
	var a announcement
	d := &a.data
	if err := d.Parse(wire); err != nil {
		return a, fmt.Errorf("%w: %w", errAnnouncement, err)
	}
	mark, _ := d.Name.At(-3)
	seg, _ := d.Name.At(-1)
	if d.ContentType != ndn.ContentPrefixAnnouncement || mark.Type != ndn.TypeKeyword || string(mark.Value) != "PA" {
		return a, errAnnouncement
	}
	if n, ok := seg.NumberAs(ndn.TypeSegment); !ok || n != 0 {
		return a, errAnnouncement
	}
	// What is signed with a digest must at least be whole.
	if d.SigType == ndn.SigDigestSha256 && !d.VerifyDigest() {
		return a, fmt.Errorf("%w: its digest is wrong", errAnnouncement)
	}
	a.prefix = d.Name.Prefix(-3)
	has := false
	for v := d.Content; len(v) > 0; {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			return a, fmt.Errorf("%w: %w", errAnnouncement, err)
		}
		v = rest
		switch e.Type {
		case 0x6d: // ExpirationPeriod
			ms, err := ndn.ParseNat(e.Value)
			if err != nil {
				return a, fmt.Errorf("%w: %w", errAnnouncement, err)
			}
			a.expiration, has = millis(ms), true
		case 0xfd: // ValidityPeriod
			if a.notBefore, a.notAfter, err = parseValidity(e.Value); err != nil {
				return a, err
			}
		default:
			if ndn.Critical(e.Type) {
				return a, errAnnouncement
			}
		}
	}
	if !has {
		return a, fmt.Errorf("%w: it has no expiration period", errAnnouncement)
	}
	return a, nil
}

// parseValidity decodes the value of a ValidityPeriod (certificate format v2).
func parseValidity(v []byte) (from, to time.Time, err error) {
	for len(v) > 0 {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			return from, to, fmt.Errorf("%w: %w", errAnnouncement, err)
		}
		v = rest
		if e.Type != 0xfe && e.Type != 0xff {
			continue
		}
		t, err := time.Parse("20060102T150405", string(e.Value))
		if err != nil {
			return from, to, fmt.Errorf("%w: bad time %q", errAnnouncement, e.Value)
		}
		if e.Type == 0xfe {
			from = t
		} else {
			to = t
		}
	}
	return from, to, nil
}
