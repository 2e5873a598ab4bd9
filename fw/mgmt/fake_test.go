package mgmt

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

// fake is a forwarder of a few maps, in virtual time.
type fake struct {
	mu         sync.Mutex
	now        ndn.Time
	faces      map[ndn.FaceID]*run.FaceInfo
	nextFace   ndn.FaceID
	routes     []run.Route
	fib        []run.FibEntry
	strategies []run.StrategyChoice
	cs         run.CSInfo
	csStored   int // Data that EraseCS finds
	erased     []ndn.Name
	observe    func(run.Event)
	sent       []sentPacket
	full       bool // SendInternal refuses
	tracer     strategy.Tracer
}

type sentPacket struct {
	wire   []byte
	fields ndn.LpFields
}

// Ids of the fake's first faces.
const (
	localFace  ndn.FaceID = 256
	remoteFace ndn.FaceID = 258
)

func newFake() *fake {
	f := &fake{now: 1, faces: map[ndn.FaceID]*run.FaceInfo{}, nextFace: 261}
	add := func(id ndn.FaceID, remote, local string, scope face.Scope, p face.Persistency) {
		f.faces[id] = &run.FaceInfo{
			ID: id, Info: face.Info{RemoteURI: remote, LocalURI: local, Scope: scope},
			Persistency: p, Up: true, MTU: 8800, CongestionMarking: true,
			CongestionThreshold: 65536, CongestionInterval: 100 * time.Millisecond,
		}
	}
	add(1, "internal://", "internal://", face.ScopeLocal, face.PersistencyPermanent)
	f.faces[1].LocalFields = true
	add(localFace, "fd://22", "unix:///run/nfd/nfd.sock", face.ScopeLocal, face.PersistencyOnDemand)
	f.faces[localFace].Stream = true
	add(remoteFace, "udp4://192.0.2.9:6363", "udp4://192.0.2.1:6363", face.ScopeNonLocal, face.PersistencyOnDemand)
	f.faces[remoteFace].ExpiresIn = 90 * time.Second
	f.cs = run.CSInfo{CapacityBytes: 65536 * packetBytes, Admit: true, Serve: true, Entries: 9, Misses: 53}
	f.strategies = []run.StrategyChoice{{Prefix: ndn.Name{}, Strategy: ndn.MustName("/localhost/nfd/strategy/best-route/v=5")}}
	f.fib = []run.FibEntry{{Prefix: proto.Localhost(), NextHops: []run.NextHop{{Face: 1}}}}
	return f
}

func (f *fake) parts() Forwarder {
	return Forwarder{Faces: f, RIB: f, FIB: f, Strategies: f, ContentStore: f, Internal: f, Status: f}
}

func (f *fake) emit(e run.Event) {
	if f.observe != nil {
		f.observe(e)
	}
}

func (f *fake) Now() ndn.Time { return f.now }

func (f *fake) SendInternal(wire []byte, fields *ndn.LpFields) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return false
	}
	f.sent = append(f.sent, sentPacket{bytes.Clone(wire), *fields})
	return true
}

// take returns what was sent since the last call.
func (f *fake) take() []sentPacket {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sent
	f.sent = nil
	return s
}

func (f *fake) Faces() (out []run.FaceInfo) {
	for _, i := range f.faces {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b run.FaceInfo) int { return int(a.ID) - int(b.ID) })
	return out
}

func (f *fake) Face(id ndn.FaceID) (run.FaceInfo, bool) {
	if i := f.faces[id]; i != nil {
		return *i, true
	}
	return run.FaceInfo{}, false
}

func (f *fake) CreateFace(s run.FaceSpec) (run.FaceInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.faces {
		if i.RemoteURI == s.URI {
			return *i, run.ErrFaceExists
		}
	}
	switch s.URI {
	case "udp4://nonsense":
		return run.FaceInfo{}, fmt.Errorf("%q: %w", s.URI, run.ErrURI)
	case "tcp4://192.0.2.66:6363":
		return run.FaceInfo{}, face.ErrRefused
	}
	i := &run.FaceInfo{
		ID: f.nextFace, Info: face.Info{RemoteURI: s.URI, LocalURI: "udp4://127.0.0.1:17363"},
		Persistency: s.Persistency, Up: true, MTU: 8800, CongestionMarking: true,
		CongestionThreshold: 65536, CongestionInterval: 100 * time.Millisecond,
	}
	f.nextFace++
	f.faces[i.ID] = i
	f.emit(run.Event{Kind: run.FaceCreated, Face: *i})
	return *i, nil
}

func (f *fake) UpdateFace(id ndn.FaceID, u run.FaceUpdate) (run.FaceInfo, error) {
	i := f.faces[id]
	if i == nil {
		return run.FaceInfo{}, run.ErrNoFace
	}
	if u.LocalFields != nil {
		if *u.LocalFields && i.Scope != face.ScopeLocal {
			return run.FaceInfo{}, run.ErrNotLocal
		}
		i.LocalFields = *u.LocalFields
	}
	if u.Persistency != nil {
		i.Persistency = *u.Persistency
	}
	if u.MTU != nil {
		if *u.MTU < 64 {
			return run.FaceInfo{}, run.ErrMTU
		}
		i.MTU = *u.MTU
	}
	if u.CongestionMarking != nil {
		i.CongestionMarking = *u.CongestionMarking
	}
	return *i, nil
}

func (f *fake) DestroyFace(id ndn.FaceID) error {
	i := f.faces[id]
	if i == nil {
		return run.ErrNoFace
	}
	delete(f.faces, id)
	f.emit(run.Event{Kind: run.FaceDestroyed, Face: *i})
	return nil
}

func (f *fake) Channels() []string {
	return []string{"udp4://0.0.0.0:6363", "unix:///run/nfd/nfd.sock"}
}

func (f *fake) AddRoute(r run.Route) error {
	if f.faces[r.Face] == nil {
		return run.ErrNoFace
	}
	r.Prefix = r.Prefix.Clone()
	f.emit(run.Event{Kind: run.RouteAdded, Route: r})
	for i := range f.routes {
		if o := &f.routes[i]; o.Face == r.Face && o.Origin == r.Origin && o.Prefix.Equal(r.Prefix) {
			*o = r
			return nil
		}
	}
	f.routes = append(f.routes, r)
	slices.SortStableFunc(f.routes, func(a, b run.Route) int { return a.Prefix.Compare(b.Prefix) })
	return nil
}

func (f *fake) RemoveRoute(prefix ndn.Name, id ndn.FaceID, origin uint64) bool {
	for i, o := range f.routes {
		if o.Face == id && o.Origin == origin && o.Prefix.Equal(prefix) {
			f.routes = slices.Delete(f.routes, i, i+1)
			f.emit(run.Event{Kind: run.RouteRemoved, Route: o})
			return true
		}
	}
	return false
}

func (f *fake) Routes() []run.Route { return slices.Clone(f.routes) }

func (f *fake) SetNextHop(prefix ndn.Name, id ndn.FaceID, cost uint64) error {
	if f.faces[id] == nil {
		return run.ErrNoFace
	}
	f.fib = append(f.fib, run.FibEntry{Prefix: prefix.Clone(), NextHops: []run.NextHop{{Face: id, Cost: cost}}})
	return nil
}

func (f *fake) RemoveNextHop(prefix ndn.Name, id ndn.FaceID) error {
	f.fib = slices.DeleteFunc(f.fib, func(e run.FibEntry) bool { return e.Prefix.Equal(prefix) && e.NextHops[0].Face == id })
	return nil
}

func (f *fake) FIB() []run.FibEntry { return f.fib }

func (f *fake) SetStrategy(prefix, name ndn.Name) (ndn.Name, error) {
	c, _ := name.At(3)
	if s := string(c.Value); s != "asf" && s != "best-route" {
		return nil, fmt.Errorf("%w %q; there are asf, best-route", strategy.ErrUnknown, s)
	}
	full := name.Clone()
	if name.Len() == 4 {
		full = full.AppendNumber(ndn.TypeVersion, 5)
	}
	f.strategies = append(f.strategies, run.StrategyChoice{Prefix: prefix.Clone(), Strategy: full})
	return full, nil
}

func (f *fake) UnsetStrategy(prefix ndn.Name) error {
	f.strategies = slices.DeleteFunc(f.strategies, func(c run.StrategyChoice) bool { return c.Prefix.Equal(prefix) })
	return nil
}

func (f *fake) Strategies() []run.StrategyChoice { return f.strategies }

func (f *fake) StrategyFactories() []strategy.Factory {
	return []strategy.Factory{{Name: "asf", Version: 5, Usage: "adaptive", Params: []strategy.Param{{Name: "probing-interval", Usage: "ms"}}}, {Name: "best-route", Version: 5}}
}

func (f *fake) StrategyReport(name ndn.Name) (strategy.Report, ndn.Name, bool) {
	full := ndn.MustName("/localhost/nfd/strategy/nst/v=1")
	if !name.HasPrefix(ndn.MustName("/replicated")) {
		return strategy.Report{}, full, false
	}
	return strategy.Report{Columns: []string{"value", "hops"}, Rows: []strategy.ReportRow{
		{Face: localFace, Cells: []float64{.5, 2}}, {Face: remoteFace, Cells: []float64{.25, 1}},
	}}, full, true
}

func (f *fake) TraceStrategies(t strategy.Tracer) { f.tracer = t }

func (f *fake) CS() run.CSInfo { return f.cs }

func (f *fake) ConfigureCS(c run.CSConfig) error {
	if c.CapacityBytes != nil {
		f.cs.CapacityBytes = *c.CapacityBytes
	}
	if c.Admit != nil {
		f.cs.Admit = *c.Admit
	}
	if c.Serve != nil {
		f.cs.Serve = *c.Serve
	}
	return nil
}

func (f *fake) EraseCS(prefix ndn.Name, limit int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.erased = append(f.erased, prefix.Clone())
	n := min(limit, f.csStored)
	f.csStored -= n
	return n
}

func (f *fake) Totals() Totals { return Totals{Fib: 2, Pit: 2, Cs: 9, InInterests: 6} }

// bench is a server with its fake forwarder and clock.
type bench struct {
	t       testing.TB
	f       *fake
	s       *Server
	wall    time.Time
	stamper proto.Stamper
	random  uint64

	mu      sync.Mutex
	servers uint64 // random numbers that the server drew
	refused []Refusal
}

// newBench makes a server with the policy of c.
func newBench(t testing.TB, c Config, files map[string][]byte) *bench {
	t.Helper()
	b := &bench{t: t, f: newFake(), wall: time.UnixMilli(1795000000000), random: 1}
	c.Now = func() time.Time { return b.wall }
	p, err := LoadPolicy(c, func(name string) ([]byte, error) {
		if f, ok := files[name]; ok {
			return f, nil
		}
		return nil, fmt.Errorf("no file %s", name)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.s, err = New(b.f.parts(), Options{
		Policy: p, Version: "test", Wall: func() time.Time { return b.wall },
		Refused: func(r Refusal) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.refused = append(b.refused, r)
		},
		Random: func() uint64 {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.servers++
			return 1<<40 + b.servers
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.f.observe = b.s.Observe
	return b
}

// advance moves both clocks and lets the server work.
func (b *bench) advance(d time.Duration) {
	b.f.now = b.f.now.Add(d)
	b.wall = b.wall.Add(d)
	b.s.work(b.f.now)
}

// deliver passes a packet to the server as the forwarder would, and returns
// what it sent meanwhile.
func (b *bench) deliver(in ndn.FaceID, wire []byte) []sentPacket {
	b.t.Helper()
	var p ndn.Packet
	if err := p.Parse(wire, &ndn.LpFields{PitToken: []byte{1, 2, 3, 4}, IncomingFace: in}); err != nil {
		b.t.Fatal(err)
	}
	b.s.Handle(b.f.now, &p)
	b.s.pending.Wait()
	return b.f.take()
}

// data parses the only packet of sent.
func (b *bench) data(sent []sentPacket) *ndn.Data {
	b.t.Helper()
	if len(sent) != 1 {
		b.t.Fatalf("%d packets sent, want 1", len(sent))
	}
	if string(sent[0].fields.PitToken) != "\x01\x02\x03\x04" || !sent[0].fields.NoCache {
		b.t.Errorf("link header %+v", sent[0].fields)
	}
	d := new(ndn.Data)
	if err := d.Parse(sent[0].wire); err != nil {
		b.t.Fatal(err)
	}
	if !d.VerifyDigest() {
		b.t.Error("bad digest signature")
	}
	return d
}

// command sends a command that is signed with a digest and returns the answer.
func (b *bench) command(in ndn.FaceID, module, verb string, p proto.ControlParameters) proto.ControlResponse {
	b.t.Helper()
	b.random++
	wire := proto.AppendCommand(nil, proto.Localhost(), module, verb, &p, b.stamper.Stamp(b.wall, b.random))
	return b.response(b.deliver(in, wire))
}

func (b *bench) response(sent []sentPacket) proto.ControlResponse {
	b.t.Helper()
	r, err := proto.ParseResponse(b.data(sent))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// fetch sends an Interest for a dataset name.
func (b *bench) fetch(in ndn.FaceID, name ndn.Name, prefix bool) []sentPacket {
	b.t.Helper()
	b.random++
	return b.deliver(in, ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: name, CanBePrefix: prefix, MustBeFresh: prefix, Nonce: uint32(b.random),
	}))
}

func dataset4(module, verb string) ndn.Name {
	return proto.Localhost().AppendGeneric(module).AppendGeneric(verb)
}
