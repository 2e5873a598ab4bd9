package mgmt

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/face"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// schemes that faces/create accepts. Those without a family and with a host
// name are not canonical; NFD leaves their resolution to its clients, ndnd and
// this forwarder do it.
var schemes = []string{"udp4", "udp6", "udp", "tcp4", "tcp6", "tcp", "unix", "ws", "wss"}

func (s *Server) createFace(r *request) proto.ControlResponse {
	p := &r.params
	scheme, rest, ok := strings.Cut(p.URI, "://")
	if !ok || scheme == "" || rest == "" {
		return failure(r, proto.StatusBadRequest, fmt.Sprintf("%q is not a face URI", p.URI))
	}
	known := false
	for _, k := range schemes {
		known = known || k == scheme
	}
	if !known {
		return failure(r, proto.StatusNotAcceptable, fmt.Sprintf("unsupported protocol %q; there are %s", scheme, strings.Join(schemes, ", ")))
	}
	spec := run.FaceSpec{URI: p.URI, Persistency: face.PersistencyPersistent, Reliable: run.ReliabilityAuto}
	switch v := p.Persistency.GetOr(uint64(face.PersistencyPersistent)); v {
	case uint64(face.PersistencyPersistent), uint64(face.PersistencyPermanent):
		spec.Persistency = face.Persistency(v)
	default:
		return failure(r, proto.StatusNotAcceptable, "a face that is created is persistent or permanent")
	}
	if p.LocalURI != "" {
		return failure(r, proto.StatusNotAcceptable, "the local URI of a face cannot be chosen")
	}
	var reason string
	if spec.MTU, reason = mtuOf(p, !strings.HasPrefix(scheme, "udp")); reason != "" {
		return failure(r, proto.StatusNotAcceptable, reason)
	}
	update, reason := linkUpdate(p)
	if reason != "" {
		return failure(r, proto.StatusBadRequest, reason)
	}

	info, err := s.fwd.Faces.CreateFace(spec)
	switch {
	case errors.Is(err, run.ErrFaceExists):
		body := faceBody(&info)
		return proto.ControlResponse{Code: proto.StatusConflict, Text: "a face to this remote exists already", Body: &body}
	case err != nil:
		return failure(r, faceCode(err), err.Error())
	}
	if update != (run.FaceUpdate{}) {
		id := info.ID
		if info, err = s.fwd.Faces.UpdateFace(id, update); err != nil {
			// What was asked for cannot be had: nor is anything else left. An
			// error means that the face is gone already.
			_ = s.fwd.Faces.DestroyFace(id)
			return failure(r, faceCode(err), err.Error())
		}
	}
	return success(faceBody(&info))
}

// mtuOf is the MTU that a command asks for, 0 if none. Streams carry packets
// whole: what is larger than a smaller MTU could not pass at all.
func mtuOf(p *proto.ControlParameters, stream bool) (mtu int, reason string) {
	v, ok := p.MTU.Get()
	switch {
	case !ok:
	case v == 0:
		return 0, "the mtu must be more than 0"
	case stream && v < ndn.MaxPacketSize:
		return 0, "the mtu of a stream cannot be changed"
	}
	return int(min(v, ndn.MaxPacketSize)), ""
}

// faceCode chooses the code of an error of the face table. What is left when
// the known errors are told apart is the network's.
func faceCode(err error) uint64 {
	switch {
	case errors.Is(err, run.ErrURI):
		return proto.StatusBadRequest
	case errors.Is(err, run.ErrNoFace):
		return proto.StatusNotFound
	case errors.Is(err, run.ErrMulticast), errors.Is(err, run.ErrPersistency), errors.Is(err, run.ErrMTU),
		errors.Is(err, run.ErrReservedFace), errors.Is(err, run.ErrNotLocal):
		return proto.StatusNotAcceptable
	case errors.Is(err, run.ErrTooManyFaces), errors.Is(err, run.ErrClosed):
		return proto.StatusUnavailable
	}
	return proto.StatusTimeout
}

// linkUpdate takes what a command says about the link service.
func linkUpdate(p *proto.ControlParameters) (u run.FaceUpdate, reason string) {
	flag := func(bit uint64) *bool {
		if p.Mask.GetOr(0)&bit == 0 {
			return nil
		}
		on := p.Flags.GetOr(0)&bit != 0
		return &on
	}
	u.LocalFields = flag(proto.FaceLocalFields)
	if on := flag(proto.FaceReliability); on != nil {
		r := run.ReliabilityOff
		if *on {
			r = run.ReliabilityOn
		}
		u.Reliable = &r
	}
	u.CongestionMarking = flag(proto.FaceMarking)
	if v, ok := p.MarkThreshold.Get(); ok {
		if v > 1<<40 {
			return u, "the congestion threshold is out of bounds"
		}
		n := int(v)
		u.CongestionThreshold = &n
	}
	if v, ok := p.MarkInterval.Get(); ok {
		if v > uint64(time.Hour) {
			return u, "the congestion marking interval is out of bounds"
		}
		d := time.Duration(v)
		u.CongestionInterval = &d
	}
	return u, ""
}

func (s *Server) updateFace(r *request) proto.ControlResponse {
	p := &r.params
	id := r.faceID()
	info, ok := s.fwd.Faces.Face(id)
	if !ok {
		return proto.ControlResponse{Code: proto.StatusNotFound, Text: fmt.Sprintf("face %d does not exist", id),
			Body: &proto.ControlParameters{FaceID: optional.Some(uint64(id))}}
	}
	u, reason := linkUpdate(p)
	if reason != "" {
		return failure(r, proto.StatusBadRequest, reason)
	}
	// The body of a refusal holds the fields that were wrong (NFD wiki, "Face
	// Management", "Update a face").
	var wrong proto.ControlParameters
	text := "the face cannot have these properties"
	if v, ok := p.Persistency.Get(); ok {
		if v > uint64(face.PersistencyPermanent) {
			wrong.Persistency = p.Persistency
		} else {
			f := face.Persistency(v)
			u.Persistency = &f
		}
	}
	switch n, reason := mtuOf(p, info.Stream); {
	case reason != "":
		wrong.MTU, text = p.MTU, text+": "+reason
	case n != 0:
		u.MTU = &n
	}
	if u.LocalFields != nil && *u.LocalFields && info.Scope != face.ScopeLocal {
		wrong.Flags, wrong.Mask = p.Flags, p.Mask
	}
	if fieldsOf(&wrong) != 0 {
		return proto.ControlResponse{Code: proto.StatusConflict, Text: text, Body: &wrong}
	}
	info, err := s.fwd.Faces.UpdateFace(id, u)
	switch {
	case errors.Is(err, run.ErrPersistency):
		return proto.ControlResponse{Code: proto.StatusConflict, Text: err.Error(),
			Body: &proto.ControlParameters{Persistency: p.Persistency}}
	case errors.Is(err, run.ErrMTU):
		return proto.ControlResponse{Code: proto.StatusConflict, Text: err.Error(),
			Body: &proto.ControlParameters{MTU: p.MTU}}
	case err != nil:
		return failure(r, faceCode(err), err.Error())
	}
	// ndn-cxx takes an answer with URIs for an invalid one.
	body := faceBody(&info)
	body.URI, body.LocalURI = "", ""
	return success(body)
}

// destroyFace answers 200 also if there is no such face, as NFD does.
func (s *Server) destroyFace(r *request) proto.ControlResponse {
	id := ndn.FaceID(r.params.FaceID.GetOr(0))
	if id == 0 {
		return failure(r, proto.StatusBadRequest, "there is no face 0, and the one of the command is not destroyed by it")
	}
	if err := s.fwd.Faces.DestroyFace(id); err != nil && !errors.Is(err, run.ErrNoFace) {
		return failure(r, faceCode(err), err.Error())
	}
	return success(proto.ControlParameters{FaceID: optional.Some(uint64(id))})
}

// faceID is the face that a command names: the one it came from when it names
// none or 0.
func (r *request) faceID() ndn.FaceID {
	if id := r.params.FaceID.GetOr(0); id != 0 {
		return ndn.FaceID(id)
	}
	return r.in
}

func faceFlags(f *run.FaceInfo) uint64 {
	var flags uint64
	if f.LocalFields {
		flags |= proto.FaceLocalFields
	}
	if f.Reliable {
		flags |= proto.FaceReliability
	}
	if f.CongestionMarking {
		flags |= proto.FaceMarking
	}
	return flags
}

// faceBody is the body of answers about a face.
func faceBody(f *run.FaceInfo) proto.ControlParameters {
	b := proto.ControlParameters{
		FaceID:      optional.Some(uint64(f.ID)),
		URI:         f.RemoteURI,
		LocalURI:    f.LocalURI,
		Flags:       optional.Some(faceFlags(f)),
		Persistency: optional.Some(uint64(f.Persistency)),
	}
	b.MarkInterval, b.MarkThreshold, b.MTU = faceLink(f)
	return b
}

// faceLink are the fields that a face has if its link service knows them.
func faceLink(f *run.FaceInfo) (interval, threshold, mtu optional.Optional[uint64]) {
	if f.CongestionInterval > 0 {
		interval.Set(uint64(f.CongestionInterval))
	}
	if f.CongestionThreshold > 0 {
		threshold.Set(uint64(f.CongestionThreshold))
	}
	if f.MTU > 0 {
		mtu.Set(uint64(f.MTU))
	}
	return
}

// maxDownWhy bounds the reason in bytes: it may quote what a peer said.
const maxDownWhy = 200

func faceStatus(f *run.FaceInfo) proto.FaceStatus {
	c := &f.Counters
	st := proto.FaceStatus{
		FaceID: uint64(f.ID), URI: f.RemoteURI, LocalURI: f.LocalURI,
		Scope: uint64(f.Scope), Persistency: uint64(f.Persistency), LinkType: uint64(f.Link),
		InInterests: c.InInterests, InData: c.InData, InNacks: c.InNacks,
		OutInterests: c.OutInterests, OutData: c.OutData, OutNacks: c.OutNacks,
		InBytes: c.InBytes, OutBytes: c.OutBytes, Flags: faceFlags(f),
	}
	if f.ExpiresIn > 0 {
		st.Expiration.Set(uint64(f.ExpiresIn / time.Millisecond))
	}
	if !f.Up {
		st.DownFor.Set(uint64(f.DownFor / time.Millisecond))
		st.DownWhy = f.DownWhy[:min(len(f.DownWhy), maxDownWhy)]
	}
	st.MarkInterval, st.MarkThreshold, st.MTU = faceLink(f)
	return st
}

func matches(q *proto.FaceQueryFilter, st *proto.FaceStatus) bool {
	same := func(want optional.Optional[uint64], have uint64) bool {
		v, ok := want.Get()
		return !ok || v == have
	}
	scheme := func(uri string) bool { return strings.HasPrefix(uri, q.URIScheme+"://") }
	return same(q.FaceID, st.FaceID) && same(q.Scope, st.Scope) &&
		same(q.Persistency, st.Persistency) && same(q.LinkType, st.LinkType) &&
		(q.URI == "" || q.URI == st.URI) && (q.LocalURI == "" || q.LocalURI == st.LocalURI) &&
		(q.URIScheme == "" || scheme(st.URI) || scheme(st.LocalURI))
}
