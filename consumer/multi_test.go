package consumer

import (
	"errors"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// replicaNet answers the Interests of one fetch, which are told apart by
// whether they have a forwarding hint, after 10 ms. answer returns the Data and its path tag, 0 for none; no Data is silence.
func replicaNet(t *testing.T, f *Fetch, answer func(now ndn.Time, hinted bool, in *ndn.Interest) ([]byte, uint64)) {
	t.Helper()
	type reply struct {
		at   ndn.Time
		wire []byte
		tag  uint64
	}
	var due []reply
	var p ndn.Packet
	now := ndn.Time(1)
	for !f.Done() {
		for {
			w, ok := f.Next(now, nil)
			if !ok {
				break
			}
			var in ndn.Interest
			if err := in.Parse(w); err != nil {
				t.Fatal(err)
			}
			if w, tag := answer(now, len(in.ForwardingHint) > 0, &in); w != nil {
				due = append(due, reply{now.Add(10 * ms), w, tag})
			}
		}
		next := f.Deadline()
		if len(due) > 0 {
			next = min(next, due[0].at)
		}
		if next == ndn.Never || next > ndn.Time(time.Minute) {
			t.Fatalf("the fetch waits for ever: %+v", f.Stats())
		}
		now = max(now, next)
		f.Tick(now)
		for len(due) > 0 && due[0].at <= now {
			lp := ndn.LpFields{HasPathTag: due[0].tag > 0, PathTag: ndn.PathTag{Tag: due[0].tag, Hops: 2}}
			if err := p.Parse(due[0].wire, &lp); err != nil {
				t.Fatal(err)
			}
			due = due[1:]
			f.Data(now, &p)
		}
	}
}

func contentNack(in *ndn.Interest) []byte {
	return mustData(&ndn.DataFields{Name: in.Name, ContentType: ndn.ContentNack}, nullSigner{})
}

func isSegment(o *origin, in *ndn.Interest) bool { return in.Name.HasPrefix(o.name) }

// A fetch that stays with the replica that told of the object takes that one's
// word for what is not there.
func TestStaysWithReplicaWithoutContent(t *testing.T) {
	o := newOrigin(100_000, 1000)
	cfg := DefaultConfig(o.prefix)
	cfg.Replicas = []Replica{{Hint: []ndn.Name{ndn.MustName("/r")}}}
	f, err := New(cfg, controller(t, "cubic", cc.Params{}), &testSink{}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	replicaNet(t, f, func(_ ndn.Time, hinted bool, in *ndn.Interest) ([]byte, uint64) {
		switch {
		case !hinted:
			return nil, 0
		case isSegment(o, in):
			return contentNack(in), 0
		}
		return o.answer(in), 0
	})
	if !errors.Is(f.Err(), ErrNoContent) {
		t.Error(f.Err())
	}
}

// Of two lanes to one place the second is given up; when the first one's
// replica then has not got the content, the fetch still ends.
func TestOnlyLaneLeftHasNotTheContent(t *testing.T) {
	o := newOrigin(100_000, 1000)
	cfg := DefaultConfig(o.prefix)
	cfg.Replicas = []Replica{{Hint: []ndn.Name{ndn.MustName("/r")}}}
	cfg.MultiSource = true
	cfg.NewController = func() (cc.Controller, error) { return cc.NewCubic(cc.Params{}) }
	sink := &testSink{}
	f, err := New(cfg, controller(t, "cubic", cc.Params{}), sink, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	byHint, plain := 0, 0
	replicaNet(t, f, func(_ ndn.Time, hinted bool, in *ndn.Interest) ([]byte, uint64) {
		if !isSegment(o, in) {
			return o.answer(in), 0
		}
		if !hinted {
			if plain++; plain == 1 {
				return nil, 0 // so that the other lane's path is known first
			}
			return o.answer(in), 7
		}
		if byHint++; byHint > 25 {
			return contentNack(in), 0
		}
		return o.answer(in), 7
	})
	if f.Err() != nil || sink.bytes != 100_000 {
		t.Error(f.Err(), sink.bytes, byHint, plain)
	}
}

// A replica that does not answer gets one Interest at a time, and costs nothing
// else.
func TestSilentLaneIsProbed(t *testing.T) {
	o := newOrigin(1_500_000, 1000)
	cfg := DefaultConfig(o.prefix)
	cfg.Replicas = []Replica{{Hint: []ndn.Name{ndn.MustName("/r")}}}
	cfg.MultiSource = true
	cfg.NewController = func() (cc.Controller, error) { return cc.NewFixed(cc.Params{Window: 8}) }
	sink := &testSink{}
	f, err := New(cfg, controller(t, "fixed", cc.Params{Window: 1}), sink, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	silent := 0
	replicaNet(t, f, func(_ ndn.Time, hinted bool, in *ndn.Interest) ([]byte, uint64) {
		if hinted && isSegment(o, in) {
			silent++
			return nil, 0
		}
		return o.answer(in), 0
	})
	if f.Err() != nil || sink.bytes != 1_500_000 {
		t.Fatal(f.Err(), sink.bytes)
	}
	if silent < 9 || silent > 20 {
		t.Errorf("%d Interests to the silent one", silent)
	}
}
