package mgmt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/strategy"
)

func traceName(prefix string) ndn.Name {
	return ndn.AppendTLV(dataset4("strategy-choice", "trace"), ndn.TypeGeneric, ndn.MustName(prefix).AppendTLVTo(nil))
}

// follow sends an Interest of a follower, for the next decisions or for those
// of a number.
func (b *bench) follow(name ndn.Name, seq uint64) []sentPacket {
	b.random++
	i := ndn.InterestFields{Name: name, CanBePrefix: true, MustBeFresh: true, Nonce: uint32(b.random), Lifetime: 4 * time.Second}
	if seq > 0 {
		i.Name, i.CanBePrefix, i.MustBeFresh = name.Clone().AppendNumber(ndn.TypeSequenceNum, seq), false, false
	}
	return b.deliver(localFace, ndn.AppendInterest(nil, &i))
}

// decide has the forwarder's strategy decide about an Interest, as a shard
// would tell it, and reports whether it was asked to explain itself.
func (b *bench) decide(name string) bool {
	n, t := ndn.MustName(name), b.f.tracer
	if t == nil || !t.(strategy.TraceFilter).Follows(b.f.now, n) {
		return false
	}
	d := strategy.Decision{
		Now: b.f.now, Strategy: ndn.MustName("/s/v=1"), Name: n, Event: "Interest", In: remoteFace, To: localFace,
		Kind: strategy.TraceExplain, Reason: "cheapest", Candidates: []strategy.Candidate{{Face: localFace, Cost: 1, Weight: 2.5, Note: "ms"}},
	}
	t.Trace(&d)
	d.Kind, d.Reason, d.Candidates = strategy.TraceSend, "", nil
	t.Trace(&d)
	return true
}

// batch parses the only Data sent.
func (b *bench) batch(sent []sentPacket) (tr proto.Trace, seq uint64) {
	b.t.Helper()
	d := b.data(sent)
	tr, err := proto.ParseTrace(d.Content)
	if err != nil {
		b.t.Fatal(err)
	}
	c, _ := d.Name.At(-1)
	seq, ok := c.NumberAs(ndn.TypeSequenceNum)
	if !ok {
		b.t.Fatalf("no number in %s", d.Name)
	}
	return tr, seq
}

func TestTrace(t *testing.T) {
	b := newBench(t, Config{}, nil)
	b.advance(time.Second)
	if b.decide("/cdn/a"); b.f.tracer != nil {
		t.Fatal("traced though nobody follows")
	}
	film := traceName("/cdn/film")
	if sent := b.follow(film, 0); len(sent) != 0 {
		t.Fatal("answered before anything was decided")
	}
	b.s.work(b.f.now)
	if b.decide("/cdn/other") || b.decide("/localhost/nfd/faces/list") {
		t.Error("what nobody follows was explained")
	}
	if !b.decide("/cdn/film/1") {
		t.Fatal("what is followed was not explained")
	}
	b.s.work(b.f.now)
	tr, seq := b.batch(b.f.take())
	if len(tr.Decisions) != 2 || tr.Lost != 0 {
		t.Fatalf("%+v", tr)
	}
	why, sent := tr.Decisions[0], tr.Decisions[1]
	if why.Kind != proto.DecisionExplain || why.Reason != "cheapest" || why.FaceID != uint64(localFace) || why.Incoming != uint64(remoteFace) ||
		why.Name.String() != "/cdn/film/1" || len(why.Candidates) != 1 || why.Candidates[0].Weight != 2.5 || why.Time != uint64(b.wall.UnixMicro()) {
		t.Errorf("%+v", why)
	}
	if sent.Kind != proto.DecisionSend || sent.Result != "sent" {
		t.Errorf("%+v", sent)
	}
	// What is decided between two Interests of the follower is in the next
	// Data, which a second follower can have as well.
	for i := range 3 {
		b.f.now = b.f.now.Add(time.Millisecond)
		b.decide(fmt.Sprintf("/cdn/film/%d", i))
	}
	if b.follow(film, seq+1); len(b.f.take()) > 0 {
		t.Error("Data follow each other without a pause")
	}
	b.advance(traceSpacing)
	if tr, n := b.batch(b.f.take()); n != seq+1 || len(tr.Decisions) != 6 {
		t.Errorf("number %d after %d, %d decisions", n, seq, len(tr.Decisions))
	}
	if tr, _ := b.batch(b.follow(film, seq+1)); len(tr.Decisions) != 6 {
		t.Error("a second follower gets something else")
	}
	// Nobody follows any more.
	b.advance(traceFor)
	if b.f.tracer != nil || len(b.s.traces.streams) > 0 {
		t.Error("still traced")
	}
}

// However much is decided, a bounded part of it is told, as whole events, and
// the rest counted.
func TestTraceIsBounded(t *testing.T) {
	b := newBench(t, Config{}, nil)
	all := traceName("/")
	b.follow(all, 0)
	b.s.work(b.f.now)
	told := 0
	for i := range 100_000 { // a second
		b.f.now = b.f.now.Add(10 * time.Microsecond)
		if b.decide(fmt.Sprintf("/cdn/%d", i)) {
			told++
		}
	}
	if most := traceRate + traceBurst; told < traceRate-1 || told > most {
		t.Errorf("%d events explained, bound %d", told, most)
	}
	decisions, lost := 0, uint64(0)
	seq := uint64(0)
	for range 100 {
		b.advance(traceSpacing)
		sent := b.f.take()
		if len(sent) == 0 {
			break
		}
		var tr proto.Trace
		tr, seq = b.batch(sent)
		if len(sent[0].wire) > maxReply {
			t.Fatalf("Data of %d bytes", len(sent[0].wire))
		}
		decisions, lost = decisions+len(tr.Decisions), lost+tr.Lost
		b.follow(all, seq+1)
	}
	if decisions != 2*told || lost != uint64(100_000-told) {
		t.Errorf("%d decisions of %d events, %d lost", decisions, told, lost)
	}
	// A follower that does not ask leaves a bounded queue.
	for i := range 2000 {
		b.f.now = b.f.now.Add(10 * time.Millisecond)
		b.decide("/cdn/" + strings.Repeat("x", 200) + fmt.Sprint(i))
		if n := b.s.traces.streams[0].feed.bytes; n > traceQueue {
			t.Fatalf("%d bytes wait", n)
		}
	}
}

func TestTraceRefusals(t *testing.T) {
	b := newBench(t, Config{}, nil)
	refusal := func(sent []sentPacket) uint64 {
		t.Helper()
		d := b.data(sent)
		r, err := proto.ParseControlResponse(d.Content)
		if err != nil || d.ContentType != ndn.ContentNack {
			t.Fatalf("type %d, %v", d.ContentType, err)
		}
		return r.Code
	}
	if code := refusal(b.follow(dataset4("strategy-choice", "trace"), 0)); code != proto.StatusBadRequest {
		t.Error(code)
	}
	if code := refusal(b.follow(ndn.AppendTLV(dataset4("strategy-choice", "trace"), ndn.TypeGeneric, []byte("x")), 0)); code != proto.StatusBadRequest {
		t.Error(code)
	}
	for i := range maxTraces {
		b.follow(traceName(fmt.Sprintf("/%d", i)), 0)
	}
	if code := refusal(b.follow(traceName("/more"), 0)); code != proto.StatusUnavailable {
		t.Error(code)
	}
	// Remote hosts follow nothing.
	if sent := b.deliver(remoteFace, ndn.AppendInterest(nil, &ndn.InterestFields{Name: traceName("/"), CanBePrefix: true, Nonce: 1})); len(sent) != 0 {
		t.Error("a remote host was answered")
	}
}

func TestStrategyReport(t *testing.T) {
	b := newBench(t, Config{}, nil)
	name := func(prefix string) ndn.Name {
		return ndn.AppendTLV(dataset4("strategy-choice", "report"), ndn.TypeGeneric, ndn.MustName(prefix).AppendTLVTo(nil))
	}
	r, err := proto.ParseStrategyReport(b.data(b.fetch(localFace, name("/replicated/a"), true)).Content)
	if err != nil || len(r.Rows) != 2 || r.Rows[1].FaceID != uint64(remoteFace) || r.Rows[1].Cells[0] != .25 || r.Columns[1] != "hops" {
		t.Errorf("%+v, %v", r, err)
	}
	d := b.data(b.fetch(localFace, name("/other"), true))
	if resp, err := proto.ParseControlResponse(d.Content); err != nil || resp.Code != proto.StatusNotFound || !strings.Contains(resp.Text, "nst") {
		t.Errorf("%+v, %v", resp, err)
	}
	infos, err := proto.ParseStrategyInfos(b.data(b.fetch(localFace, dataset4("strategy-choice", "available"), true)).Content)
	if err != nil || len(infos) != 2 || infos[0].Params[0].Name != "probing-interval" {
		t.Errorf("%+v, %v", infos, err)
	}
}
