package mgmt

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// Options are what a server needs beside the forwarder. The zero value is
// usable.
type Options struct {
	Policy  *Policy // nil: the policy of the zero Config
	Version string  // of the program, for status/general
	// Wall is the wall clock; nil: time.Now. Signature times, dataset versions
	// and the times of status/general come from it.
	Wall func() time.Time
	// Refused is told of every command that was answered with 403. It may be
	// nil, and called from several goroutines.
	Refused func(Refusal)
	// Disbelieved is told of every prefix announcement that a strategy wanted
	// learnt and that was not. It may be nil, and called from several
	// goroutines.
	Disbelieved func(Disbelief)
	// Random is a source of 64 random bits for the commands that the server
	// sends; nil: the operating system's.
	Random func() uint64
}

// Refusal describes a command that was refused for its signature.
type Refusal struct {
	Face   ndn.FaceID
	Local  bool   // the face's scope
	Name   string // of the Interest, without its parameters digest
	Reason string
}

// Counters count since the server was made.
type Counters struct {
	Commands    uint64 // answered with 200
	Failed      uint64 // answered with another code, except 403
	Refused     uint64 // answered with 403
	Datasets    uint64 // encoded
	Segments    uint64 // of datasets, answered
	Unknown     uint64 // Interests that name nothing there is
	Unsent      uint64 // answers that the forwarder's queue refused
	Learnt      uint64 // prefix announcements that strategies learnt
	Disbelieved uint64 // those that they did not
	Announced   uint64 // routes announced to or withdrawn from the routing daemon
	FaceEvents  uint64
	EventsKept  uint64 // for those who ask later
	EventsLost  uint64 // not published, because too many came at once
	KeysFound   uint64 // keys whose certificates were fetched and led to an anchor
	KeysMissing uint64 // and those whose were not or did not
}

// Server answers management requests of one forwarder.
type Server struct {
	fwd         Forwarder
	policy      atomic.Pointer[Policy]
	version     string
	wall        func() time.Time
	refused     func(Refusal)
	disbelieved func(Disbelief)
	random      func() uint64
	started     time.Time

	setting sync.Mutex // of the policy

	queue eventQueue // events of the forwarder, from whoever caused them

	// mu guards what Handle and Run share. It is not held while a forwarder's
	// table is read or changed.
	mu       sync.Mutex
	replays  *replays
	datasets datasetStore
	events   eventStream
	traces   traces
	adverts  *readvertiser

	keys [askers]*chains // have locks of their own

	// generation grows with every change that a dataset may show.
	generation atomic.Uint64
	creating   chan struct{} // one token for each face that is being created
	pending    sync.WaitGroup

	count struct {
		commands, failed, refused, datasets, segments, unknown, unsent, learnt, disbelieved atomic.Uint64
	}
}

// maxCreating bounds the face creations that wait for their peers.
const maxCreating = 32

// ErrIncomplete is returned for a Forwarder with a nil field.
var ErrIncomplete = errors.New("management: the forwarder is incomplete")

// New returns a server for fwd. Its user passes the forwarder's events to
// Observe, what arrives at the internal face to Handle, then runs Run, and
// routes the prefixes that Prefixes lists to the internal face. Attach does all
// of this.
func New(fwd Forwarder, o Options) (*Server, error) {
	if fwd.Faces == nil || fwd.RIB == nil || fwd.FIB == nil || fwd.Strategies == nil ||
		fwd.ContentStore == nil || fwd.Internal == nil || fwd.Status == nil {
		return nil, ErrIncomplete
	}
	s := &Server{
		fwd: fwd, version: o.Version, wall: o.Wall,
		refused: o.Refused, disbelieved: o.Disbelieved, random: o.Random,
		creating: make(chan struct{}, maxCreating),
	}
	s.queue.init()
	if o.Policy == nil {
		o.Policy, _ = LoadPolicy(Config{}, nil)
	}
	s.policy.Store(o.Policy)
	if s.wall == nil {
		s.wall = time.Now
	}
	if s.refused == nil {
		s.refused = func(Refusal) {}
	}
	if s.disbelieved == nil {
		s.disbelieved = func(Disbelief) {}
	}
	if s.random == nil {
		s.random = systemRandom
	}
	s.started = s.wall()
	s.replays = newReplays(s.started)
	s.traces.tracer.own, s.traces.tracer.wake = proto.Localhost(), s.queue.wakeUp
	s.events.keep = keepEvents
	s.events.prefix = proto.Localhost().AppendGeneric("faces").AppendGeneric("events")
	s.events.next = uint64(max(s.started.UnixMilli(), 0))
	s.adverts = newReadvertiser(s.wall, s.random)
	for k, rules := range keyRules {
		s.keys[k] = newChains(rules,
			func(interest []byte, via ndn.FaceID) {
				s.send(interest, &ndn.LpFields{NextHopFace: via, HasNextHopFace: via != 0})
			},
			func() uint32 { return uint32(s.random()) },
			func(certificate ndn.Name) { s.fwd.ContentStore.EraseCS(certificate, 1) },
			s.pending.Go,
		)
	}
	return s, nil
}

// Prefixes lists the prefixes that must be routed to the internal face.
func (s *Server) Prefixes() []ndn.Name {
	if s.policy.Load().localhop {
		return []ndn.Name{proto.Localhost(), proto.Localhop()}
	}
	return []ndn.Name{proto.Localhost()}
}

// SetPolicy changes who may command, from the next command on. The prefix of
// remote commands is routed to the internal face, or is not any more.
func (s *Server) SetPolicy(p *Policy) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	old := s.policy.Swap(p)
	for _, k := range s.keys {
		k.forget()
	}
	var err error
	switch {
	case p.localhop && !old.localhop:
		err = s.fwd.FIB.SetNextHop(proto.Localhop(), run.InternalFace, 0)
	case !p.localhop && old.localhop:
		err = s.fwd.FIB.RemoveNextHop(proto.Localhop(), run.InternalFace)
	}
	if err != nil {
		return fmt.Errorf("management: route %s: %w", proto.Localhop(), err)
	}
	return nil
}

// Counters returns the counters.
func (s *Server) Counters() Counters {
	var found, missing uint64
	for _, k := range s.keys {
		ok, bad := k.counts()
		found, missing = found+ok, missing+bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counters{
		KeysFound: found, KeysMissing: missing,
		Commands: s.count.commands.Load(), Failed: s.count.failed.Load(),
		Refused: s.count.refused.Load(), Datasets: s.count.datasets.Load(),
		Segments: s.count.segments.Load(), Unknown: s.count.unknown.Load(),
		Learnt: s.count.learnt.Load(), Disbelieved: s.count.disbelieved.Load(),
		Unsent: s.count.unsent.Load(), Announced: s.adverts.confirmed,
		FaceEvents: s.events.published, EventsKept: uint64(len(s.events.kept)),
		EventsLost: s.queue.lostEvents(),
	}
}

// Handle works off one packet that the forwarder sent to the internal face:
// a request, the routing daemon's answer to a command of ours, or a certificate
// that we asked for. p is a view
// valid during the call, p.IncomingFace the face that the packet came from.
// Calls must not overlap.
func (s *Server) Handle(now ndn.Time, p *ndn.Packet) {
	switch p.Kind {
	case ndn.KindInterest:
		s.interest(now, p)
	case ndn.KindData:
		for _, k := range s.keys {
			k.data(&p.Data)
		}
		s.mu.Lock()
		s.adverts.answer(now, &p.Data)
		s.sendAdverts(now)
		s.mu.Unlock()
		s.queue.wakeUp()
	case ndn.KindNack:
		for _, k := range s.keys {
			k.nack(p.Interest.Name, p.NackReason)
		}
		s.mu.Lock()
		s.adverts.nack(now, p.Interest.Name)
		s.mu.Unlock()
		s.queue.wakeUp()
	}
}

// request is one command, with everything that outlives the packet copied.
type request struct {
	now      ndn.Time
	in       ndn.FaceID
	local    bool // the face's scope
	localhop bool // the prefix
	module   string
	verb     string
	name     ndn.Name // of the Interest
	token    []byte
	params   proto.ControlParameters // names and all are copies
	announce []byte                  // the Data of rib/announce
}

func (s *Server) interest(now ndn.Time, p *ndn.Packet) {
	i := &p.Interest
	localhop := false
	policy := s.policy.Load()
	switch {
	case i.Name.HasPrefix(proto.Localhost()):
	case policy.localhop && i.Name.HasPrefix(proto.Localhop()):
		localhop = true
	default:
		s.count.unknown.Add(1)
		return
	}
	module, ok1 := i.Name.At(2)
	verb, ok2 := i.Name.At(3)
	if !ok1 || !ok2 || module.Type != ndn.TypeGeneric || verb.Type != ndn.TypeGeneric {
		s.unknown(p)
		return
	}
	r := request{now: now, in: p.IncomingFace, localhop: localhop, module: string(module.Value), verb: string(verb.Value)}
	if f, ok := s.fwd.Faces.Face(p.IncomingFace); ok {
		r.local = f.Scope == localScope
	} else if p.IncomingFace == run.InternalFace {
		r.local = true
	}
	if !localhop {
		if !r.local {
			s.count.unknown.Add(1)
			return
		}
		if d := datasetOf(r.module, r.verb); d != nil {
			s.dataset(now, p, d)
			return
		}
		if r.module == "faces" && r.verb == "events" {
			s.mu.Lock()
			kept := s.events.ask(now, i, s.reply(p.PitToken))
			s.mu.Unlock()
			if !kept {
				s.nack(p)
			}
			return
		}
	}
	if !localhop && r.module == "strategy-choice" && r.verb == "trace" {
		s.trace(now, p)
		return
	}
	if c := commandOf(r.module, r.verb); c != nil && (!localhop || c.localhop) {
		s.command(p, r, c, policy)
		return
	}
	s.unknown(p)
}

// command authorises, decodes and executes one command.
func (s *Server) command(p *ndn.Packet, r request, c *command, policy *Policy) {
	i := &p.Interest
	r.name = i.Name.Clone()
	r.token = append([]byte(nil), p.PitToken...)

	v := policy.check(r.module, r.local, i, s.wall())
	if len(v.wanted) > 0 {
		s.fetchKey(i, r, c, policy, v)
		return
	}
	s.authorised(i, r, c, v)
}

// fetchKey puts a command off until the certificates of its key are there.
func (s *Server) fetchKey(i *ndn.Interest, r request, c *command, policy *Policy, v verdict) {
	wire := bytes.Clone(i.Wire)
	then := func(failed error) {
		var i ndn.Interest
		if err := i.Parse(wire); err != nil {
			s.refuse(&r, err.Error()) // it was parsed before
			return
		}
		r.now = s.fwd.Internal.Now()
		v := policy.check(r.module, r.local, &i, s.wall())
		switch {
		case s.policy.Load() != policy:
			v = verdict{reason: "the policy has changed meanwhile"}
		case v.reason != "" && failed != nil:
			v.reason = failed.Error()
		}
		s.authorised(&i, r, c, v)
	}
	err := s.await(r.in, r.local, v.sig.key, v.wanted, waitingFor{string(r.name), then})
	if err != nil {
		s.refuse(&r, err.Error())
	}
}

// await has the certificates of a key fetched (chains.await). Those who are on
// this host, who are known to be where they say and who are not do not keep one
// another waiting.
func (s *Server) await(in ndn.FaceID, local bool, locator ndn.Name, trust []*verify.Verifier, w waitingFor) error {
	keys, by := s.keys[here], asker{in, fmt.Sprint(in)}
	if !local {
		keys = s.keys[anywhere]
		if f, ok := s.fwd.Faces.Face(in); ok {
			by.peer = run.HostOf(f.RemoteURI)
			if f.Proven {
				keys = s.keys[there]
			}
		}
	}
	return keys.await(by, locator, trust, w)
}

// refuse answers a command that is not allowed.
func (s *Server) refuse(r *request, reason string) {
	if len(reason) > maxText {
		reason = reason[:maxText]
	}
	s.count.refused.Add(1)
	s.refused(Refusal{r.in, r.local, printable(r.name), reason})
	s.respond(r, &proto.ControlResponse{Code: proto.StatusForbidden, Text: reason})
}

// authorised executes a command if it is allowed and no replay.
func (s *Server) authorised(i *ndn.Interest, r request, c *command, v verdict) {
	reason := v.reason
	if reason == "" {
		s.mu.Lock()
		reason = s.replays.admit(v.id, v.sig, s.wall())
		s.mu.Unlock()
	}
	if reason != "" {
		s.refuse(&r, reason)
		return
	}
	if resp := r.decode(i, c); resp != nil {
		s.finish(&r, *resp)
		return
	}
	if c.announce {
		s.announce(&r)
		return
	}
	if !c.slow {
		s.finish(&r, c.run(s, &r))
		return
	}
	select {
	case s.creating <- struct{}{}:
	default:
		s.finish(&r, failure(&r, proto.StatusUnavailable, "too many commands of this kind wait already"))
		return
	}
	s.pending.Go(func() {
		defer func() { <-s.creating }()
		s.finish(&r, c.run(s, &r))
	})
}

// decode fills in the parameters; it returns an answer if they are wrong.
func (r *request) decode(i *ndn.Interest, c *command) *proto.ControlResponse {
	if c.announce {
		r.announce = append([]byte(nil), i.AppParameters...)
		return nil
	}
	arg, ok := i.Name.At(4)
	if !ok || arg.Type != ndn.TypeGeneric {
		return &proto.ControlResponse{Code: proto.StatusBadRequest, Text: "the name has no ControlParameters"}
	}
	params, err := proto.ParseControlParameters(append([]byte(nil), arg.Value...))
	if err != nil {
		return &proto.ControlResponse{Code: proto.StatusBadRequest, Text: err.Error()}
	}
	r.params = params
	if wrong := c.wrong(&r.params); wrong != "" {
		resp := failure(r, proto.StatusBadRequest, r.module+"/"+r.verb+" "+wrong)
		return &resp
	}
	if n, ok := params.Name.Get(); ok && n.Len() > ndn.MaxComponents {
		resp := failure(r, proto.StatusNameTooLong, "the name has more than 32 components")
		return &resp
	}
	return nil
}

// failure is the answer to a command that failed. It carries the command's
// parameters back, since ndnd's tools demand a body.
func failure(r *request, code uint64, text string) proto.ControlResponse {
	return proto.ControlResponse{Code: code, Text: text, Body: &r.params}
}

// success is an answer of 200 with a body.
func success(body proto.ControlParameters) proto.ControlResponse {
	return proto.ControlResponse{Code: proto.StatusOK, Text: "OK", Body: &body}
}

func (s *Server) finish(r *request, resp proto.ControlResponse) {
	if resp.OK() {
		s.generation.Add(1)
		s.count.commands.Add(1)
	} else {
		s.count.failed.Add(1)
	}
	s.respond(r, &resp)
}

// commandFreshness is that of answers and notifications (NFD: 1 s).
const commandFreshness = time.Second

// maxText bounds a status text, which may quote what the peer sent.
const maxText = 1024

// respond answers a command. An answer that does not fit into a packet with
// its body is sent without.
func (s *Server) respond(r *request, resp *proto.ControlResponse) {
	if len(resp.Text) > maxText {
		resp.Text = resp.Text[:maxText]
	}
	d := ndn.DataFields{Name: r.name, Freshness: commandFreshness, Content: resp.AppendTo(nil)}
	wire, err := ndn.AppendData(nil, &d, ndn.DigestSigner{})
	if err == nil && len(wire) > maxReply && resp.Body != nil {
		resp.Body = nil
		d.Content = resp.AppendTo(nil)
		wire, err = ndn.AppendData(nil, &d, ndn.DigestSigner{})
	}
	if err != nil || len(wire) > maxReply {
		s.count.unsent.Add(1)
		return
	}
	s.reply(r.token)(wire)
}

// maxReply leaves room for the link header of a packet with a PIT token.
const maxReply = ndn.MaxPacketSize - 64

// reply returns a function that sends one Data downstream.
func (s *Server) reply(token []byte) func(wire []byte) {
	token = append([]byte(nil), token...)
	return func(wire []byte) { s.send(wire, &ndn.LpFields{PitToken: token, NoCache: true}) }
}

// send hands a packet to the forwarder. Management stays out of the content
// store: it would push out content, and answers change.
func (s *Server) send(wire []byte, f *ndn.LpFields) {
	if !s.fwd.Internal.SendInternal(wire, f) {
		s.count.unsent.Add(1)
	}
}

// nack returns an Interest for a notification that is not kept any more. Followers
// that take a Nack for a sign to begin again (ndn-cxx, NotificationSubscriber)
// would else wait for their Interest's lifetime.
func (s *Server) nack(p *ndn.Packet) {
	s.send(p.Interest.Wire, &ndn.LpFields{
		PitToken: append([]byte(nil), p.PitToken...), IsNack: true, NackReason: ndn.NackNoRoute,
	})
}

// unknown answers an Interest for something that does not exist: a command
// with a response, anything else with an application Nack that carries one.
func (s *Server) unknown(p *ndn.Packet) {
	s.count.unknown.Add(1)
	i := &p.Interest
	resp := proto.ControlResponse{Code: proto.StatusNotImplemented, Text: "unknown module or verb; modules are faces, fib, rib, cs, strategy-choice, status"}
	d := ndn.DataFields{Name: i.Name, Freshness: commandFreshness, Content: resp.AppendTo(nil)}
	if i.SigInfo == nil {
		d.ContentType = ndn.ContentNack
	}
	if wire, err := ndn.AppendData(nil, &d, ndn.DigestSigner{}); err == nil && len(wire) <= maxReply {
		s.reply(p.PitToken)(wire)
	}
}

// printable is a command's name for a log: without digest, and not longer
// than a line.
func printable(n ndn.Name) string {
	if c, ok := n.At(-1); ok && c.Type == ndn.TypeParamsDigest {
		n = n.Prefix(-1)
	}
	s := n.String()
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}
