package mgmt

import (
	"fmt"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// dataset is one verb that reads a table.
type dataset struct {
	module, verb string
	filter       bool // its name has one component more
	// live is set when the content changes without a command or event: it is
	// then encoded anew for every discovery after liveFor.
	live   bool
	encode func(s *Server, now ndn.Time, filter []byte) ([]byte, *proto.ControlResponse)
}

// datasets of all modules (NFD wiki, "Management").
var datasets = []dataset{
	{"status", "general", false, true, func(s *Server, _ ndn.Time, _ []byte) ([]byte, *proto.ControlResponse) {
		st := s.status()
		return st.AppendTo(nil), nil
	}},
	{"faces", "list", false, true, func(s *Server, _ ndn.Time, _ []byte) ([]byte, *proto.ControlResponse) {
		return s.faceList(&proto.FaceQueryFilter{}), nil
	}},
	{"faces", "query", true, true, (*Server).faceQuery},
	{"faces", "channels", false, false, (*Server).channelList},
	{"fib", "list", false, false, (*Server).fibList},
	{"rib", "list", false, false, (*Server).ribList},
	{"cs", "info", false, true, func(s *Server, _ ndn.Time, _ []byte) ([]byte, *proto.ControlResponse) {
		c := s.csInfo()
		return c.AppendTo(nil), nil
	}},
	{"strategy-choice", "list", false, false, (*Server).strategyList},
	{"strategy-choice", "available", false, false, (*Server).strategiesAvailable},
	{"strategy-choice", "report", true, true, (*Server).strategyReport},
}

func datasetOf(module, verb string) *dataset {
	for i := range datasets {
		if datasets[i].module == module && datasets[i].verb == verb {
			return &datasets[i]
		}
	}
	return nil
}

func (s *Server) faceList(q *proto.FaceQueryFilter) []byte {
	b := []byte{}
	for _, f := range s.fwd.Faces.Faces() {
		if st := faceStatus(&f); matches(q, &st) {
			b = st.AppendTo(b)
		}
	}
	return b
}

func (s *Server) faceQuery(_ ndn.Time, filter []byte) ([]byte, *proto.ControlResponse) {
	q, err := proto.ParseFaceQueryFilter(filter)
	if err != nil {
		return nil, &proto.ControlResponse{Code: proto.StatusBadRequest, Text: err.Error()}
	}
	return s.faceList(&q), nil
}

func (s *Server) channelList(ndn.Time, []byte) ([]byte, *proto.ControlResponse) {
	b := []byte{}
	for _, uri := range s.fwd.Faces.Channels() {
		c := proto.ChannelStatus{LocalURI: uri}
		b = c.AppendTo(b)
	}
	return b, nil
}

func (s *Server) fibList(ndn.Time, []byte) ([]byte, *proto.ControlResponse) {
	b := []byte{}
	var e proto.FibEntry
	for _, f := range s.fwd.FIB.FIB() {
		e.Name, e.NextHops = f.Prefix, e.NextHops[:0]
		for _, h := range f.NextHops {
			e.NextHops = append(e.NextHops, proto.NextHop{FaceID: uint64(h.Face), Cost: h.Cost})
		}
		b = e.AppendTo(b)
	}
	return b, nil
}

// ribList groups the routes, which are sorted by prefix.
func (s *Server) ribList(now ndn.Time, _ []byte) ([]byte, *proto.ControlResponse) {
	b := []byte{}
	routes := s.fwd.RIB.Routes()
	var e proto.RibEntry
	for i, r := range routes {
		out := proto.Route{FaceID: uint64(r.Face), Origin: r.Origin, Cost: r.Cost}
		if r.ChildInherit {
			out.Flags |= proto.RouteChildInherit
		}
		if r.Capture {
			out.Flags |= proto.RouteCapture
		}
		if r.Expires.IsSet() {
			out.Expiration = optional.Some(uint64(max(r.Expires.Sub(now), 0) / time.Millisecond))
		}
		e.Routes = append(e.Routes, out)
		if i+1 == len(routes) || !routes[i+1].Prefix.Equal(r.Prefix) {
			e.Name = r.Prefix
			b = e.AppendTo(b)
			e.Routes = e.Routes[:0]
		}
	}
	return b, nil
}

func (s *Server) strategyList(ndn.Time, []byte) ([]byte, *proto.ControlResponse) {
	b := []byte{}
	for _, c := range s.fwd.Strategies.Strategies() {
		item := proto.StrategyChoice{Name: c.Prefix, Strategy: c.Strategy}
		b = item.AppendTo(b)
	}
	return b, nil
}

func (s *Server) strategiesAvailable(ndn.Time, []byte) ([]byte, *proto.ControlResponse) {
	b := []byte{}
	for _, f := range s.fwd.Strategies.StrategyFactories() {
		item := proto.StrategyInfo{Strategy: f.FullName(), Usage: f.Usage}
		for _, p := range f.Params {
			item.Params = append(item.Params, proto.StrategyParam{Name: p.Name, Usage: p.Usage})
		}
		b = item.AppendTo(b)
	}
	return b, nil
}

func (s *Server) strategyReport(_ ndn.Time, filter []byte) ([]byte, *proto.ControlResponse) {
	prefix, err := ndn.ParseNameTLV(filter)
	if err != nil || prefix.Len() > ndn.MaxComponents {
		return nil, &proto.ControlResponse{Code: proto.StatusBadRequest, Text: "a report needs a name prefix"}
	}
	r, full, ok := s.fwd.Strategies.StrategyReport(prefix)
	if !ok {
		return nil, &proto.ControlResponse{Code: proto.StatusNotFound, Text: fmt.Sprintf("%s, the strategy of %s, keeps no table that it could show", full, prefix)}
	}
	out := proto.StrategyReport{Strategy: full, Columns: r.Columns}
	for _, row := range r.Rows {
		out.Rows = append(out.Rows, proto.ReportRow{FaceID: uint64(row.Face), Cells: row.Cells})
	}
	return out.AppendTo(nil), nil
}

// dataset answers an Interest for a dataset: the first segment of a new or
// unchanged version, or a segment of a version that is kept.
func (s *Server) dataset(now ndn.Time, p *ndn.Packet, d *dataset) {
	i := &p.Interest
	own := 4
	var filter []byte
	if d.filter {
		c, ok := i.Name.At(own)
		if !ok || c.Type != ndn.TypeGeneric {
			s.rejectDataset(p, i.Name, proto.StatusBadRequest, "the query has no filter")
			return
		}
		filter = c.Value
		own++
	}
	// Datasets need no signature, but python-ndn signs these Interests too and
	// looks for the answer below the digest of its parameters.
	if c, ok := i.Name.At(own); ok && c.Type == ndn.TypeParamsDigest {
		own++
	}
	prefix := i.Name.Prefix(own)
	if len(prefix) > maxDatasetName {
		s.rejectDataset(p, i.Name, proto.StatusBadRequest, "the query is too long")
		return
	}

	if rest := i.Name.Suffix(own); len(rest) > 0 {
		s.keptSegment(now, p, prefix, rest)
		return
	}
	if !i.CanBePrefix {
		// Whatever we answer would not match: its name is longer.
		s.count.unknown.Add(1)
		return
	}
	generation := s.generation.Load()
	s.mu.Lock()
	v := s.datasets.current(now, prefix, generation, d.live)
	s.mu.Unlock()
	if v == nil {
		content, refusal := d.encode(s, now, append([]byte(nil), filter...))
		if refusal != nil {
			s.rejectDataset(p, prefix, refusal.Code, refusal.Text)
			return
		}
		s.count.datasets.Add(1)
		s.mu.Lock()
		v = s.datasets.add(now, s.wall(), prefix, generation, content)
		s.mu.Unlock()
	}
	s.sendSegment(p, v, 0)
}

// rejectDataset answers with an application Nack that carries the reason, as
// NFD does. Under the Interest's name it matches with and without CanBePrefix.
func (s *Server) rejectDataset(p *ndn.Packet, name ndn.Name, code uint64, text string) {
	s.count.failed.Add(1)
	resp := proto.ControlResponse{Code: code, Text: text}
	wire, err := ndn.AppendData(nil, &ndn.DataFields{
		Name: name, ContentType: ndn.ContentNack, Freshness: datasetFreshness, Content: resp.AppendTo(nil),
	}, ndn.DigestSigner{})
	if err != nil || len(wire) > maxReply {
		s.count.unsent.Add(1)
		return
	}
	s.reply(p.PitToken)(wire)
}

// keptSegment answers an Interest for a version, with or without a segment.
func (s *Server) keptSegment(now ndn.Time, p *ndn.Packet, prefix, rest ndn.Name) {
	first, rest := rest.Next()
	version, okV := first.NumberAs(ndn.TypeVersion)
	var seg uint64
	okS := true
	switch {
	case len(rest) > 0:
		var c ndn.Component
		c, rest = rest.Next()
		seg, okS = c.NumberAs(ndn.TypeSegment)
	case !p.Interest.CanBePrefix:
		okS = false
	}
	if !okV || !okS || len(rest) > 0 {
		s.count.unknown.Add(1)
		return
	}
	s.mu.Lock()
	v := s.datasets.version(now, prefix, version)
	s.mu.Unlock()
	if v == nil || seg > v.last() {
		s.rejectDataset(p, p.Interest.Name, proto.StatusNotFound, "there is no such version or segment")
		return
	}
	s.sendSegment(p, v, seg)
}

func (s *Server) sendSegment(p *ndn.Packet, v *version, seg uint64) {
	wire, err := v.segment(seg)
	if err != nil || len(wire) > maxReply {
		s.count.unsent.Add(1)
		return
	}
	s.count.segments.Add(1)
	s.reply(p.PitToken)(wire)
}

// Bounds of datasets.
const (
	datasetFreshness = 100 * time.Millisecond
	liveFor          = 100 * time.Millisecond // a live dataset counts as unchanged
	unchangedFor     = time.Second            // others, while no event says otherwise
	keepFor          = 30 * time.Second       // a version, for those who fetch its segments
	keepVersions     = 64
	keepBytes        = 256 << 20
	segmentBytes     = 8000
	maxDatasetName   = 512 // bytes of prefix and filter
)

// version is one encoded dataset. It does not change.
type version struct {
	prefix     ndn.Name
	number     uint64
	generation uint64
	content    []byte
	made       ndn.Time
}

func (v *version) last() uint64 {
	if len(v.content) == 0 {
		return 0
	}
	return uint64(len(v.content)-1) / segmentBytes
}

// segment encodes segment n, which exists. Every segment names the last one.
func (v *version) segment(n uint64) ([]byte, error) {
	from := min(int(n)*segmentBytes, len(v.content))
	to := min(from+segmentBytes, len(v.content))
	name := append(ndn.Name(nil), v.prefix...)
	name = name.AppendNumber(ndn.TypeVersion, v.number).AppendNumber(ndn.TypeSegment, n)
	return ndn.AppendData(nil, &ndn.DataFields{
		Name: name, Freshness: datasetFreshness, Content: v.content[from:to:to],
		FinalBlock: ndn.Name(nil).AppendNumber(ndn.TypeSegment, v.last()),
	}, ndn.DigestSigner{})
}

// datasetStore keeps the versions, oldest first. It is bounded in number,
// bytes and age. There are few, so that it searches them one by one.
type datasetStore struct {
	versions []*version
	bytes    int
	lastNum  uint64
}

// current returns the newest version of prefix if it may still be given out.
func (d *datasetStore) current(now ndn.Time, prefix ndn.Name, generation uint64, live bool) *version {
	d.expire(now)
	fresh := unchangedFor
	if live {
		fresh = liveFor
	}
	for i := len(d.versions) - 1; i >= 0; i-- {
		v := d.versions[i]
		if v.prefix.Equal(prefix) {
			if v.generation == generation && now.Sub(v.made) < fresh {
				return v
			}
			return nil
		}
	}
	return nil
}

// version returns a kept version.
func (d *datasetStore) version(now ndn.Time, prefix ndn.Name, number uint64) *version {
	d.expire(now)
	for _, v := range d.versions {
		if v.number == number && v.prefix.Equal(prefix) {
			return v
		}
	}
	return nil
}

// add keeps content, which it owns, as a new version. Version numbers are
// milliseconds of the wall clock and grow.
func (d *datasetStore) add(now ndn.Time, wall time.Time, prefix ndn.Name, generation uint64, content []byte) *version {
	d.lastNum = max(d.lastNum+1, uint64(max(wall.UnixMilli(), 0)))
	v := &version{prefix.Clone(), d.lastNum, generation, content, now}
	d.versions = append(d.versions, v)
	d.bytes += len(content)
	for len(d.versions) > keepVersions || (d.bytes > keepBytes && len(d.versions) > 1) {
		d.dropOldest()
	}
	return v
}

func (d *datasetStore) expire(now ndn.Time) {
	for len(d.versions) > 0 && now.Sub(d.versions[0].made) > keepFor {
		d.dropOldest()
	}
}

func (d *datasetStore) dropOldest() {
	d.bytes -= len(d.versions[0].content)
	d.versions[0] = nil
	d.versions = d.versions[1:]
}
