package consumer

import (
	"errors"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// withReplica is a fetch from what the network finds and from one replica.
func withReplica(t *testing.T, o *origin, set func(*Config)) (*Fetch, *testSink) {
	t.Helper()
	cfg := DefaultConfig(o.prefix)
	cfg.Replicas = []Replica{{Hint: []ndn.Name{ndn.MustName("/r")}}}
	cfg.MultiSource = true
	cfg.NewController = func() (cc.Controller, error) { return cc.NewFixed(cc.Params{Window: 8}) }
	set(&cfg)
	sink := &testSink{}
	f, err := New(cfg, controller(t, "fixed", cc.Params{Window: 8}), sink, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return f, sink
}

// A replica whose segments are not those of the object that was discovered is
// used no more, whether it is one with a number or what the network finds.
func TestDifferingReplicaIsLeft(t *testing.T) {
	for _, bad := range []bool{false, true} { // with a hint
		o := newOrigin(100_000, 1000)
		other := newOrigin(60_000, 1000)
		other.lateFBI, o.lateFBI = false, false
		first := 0
		if !bad {
			first = 1 // who tells of the object
		}
		f, sink := withReplica(t, o, func(c *Config) { c.First = first })
		wrong := 0
		replicaNet(t, f, func(_ ndn.Time, hinted bool, in *ndn.Interest) ([]byte, uint64) {
			if isSegment(o, in) && hinted == bad {
				wrong++
				return other.answer(in), 0
			}
			return o.answer(in), 0
		})
		if f.Err() != nil || sink.bytes != 100_000 || wrong == 0 || wrong > 8 {
			t.Errorf("bad one with a hint %v: %v, %d bytes, %d Interests to the bad one", bad, f.Err(), sink.bytes, wrong)
		}
	}
	// When both differ from what was discovered, the object has changed.
	o, other := newOrigin(100_000, 1000), newOrigin(60_000, 1000)
	f, _ := withReplica(t, o, func(*Config) {})
	replicaNet(t, f, func(_ ndn.Time, _ bool, in *ndn.Interest) ([]byte, uint64) {
		if isSegment(o, in) {
			return other.answer(in), 0
		}
		return o.answer(in), 0
	})
	if !errors.Is(f.Err(), ErrChanged) {
		t.Error(f.Err())
	}
}

// That there is no content is believed once every replica has said so; one that
// says it late does not say it for another.
func TestLateRefusalIsOneReplicas(t *testing.T) {
	for _, exists := range []bool{true, false} {
		o := newOrigin(500, 1000)
		f, sink := withReplica(t, o, func(c *Config) { c.First = 1 })
		now := ndn.Time(1)
		ask := func() ndn.Interest {
			t.Helper()
			now = max(now, f.Deadline())
			f.Tick(now)
			w, ok := f.Next(now, nil)
			for !ok && !f.Done() {
				now = f.Deadline()
				f.Tick(now)
				w, ok = f.Next(now, nil)
			}
			var in ndn.Interest
			if err := in.Parse(w); err != nil {
				t.Fatal(err)
			}
			return in
		}
		data := func(wire []byte) {
			var p ndn.Packet
			if err := p.Parse(wire, &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			f.Data(now, &p)
		}
		hinted := ask()
		plain := ask() // after a timeout
		if len(hinted.ForwardingHint) == 0 || len(plain.ForwardingHint) > 0 {
			t.Fatalf("asked %v, then %v", hinted.ForwardingHint, plain.ForwardingHint)
		}
		data(contentNack(&hinted)) // late
		if f.Done() {
			t.Fatal(f.Err())
		}
		again := ask()
		if len(again.ForwardingHint) == 0 {
			t.Fatal("the other one was not asked")
		}
		data(contentNack(&again))
		for i := 0; !f.Done() && i < 10; i++ {
			if in := ask(); exists && len(in.ForwardingHint) == 0 {
				data(o.answer(&in))
			} else {
				data(contentNack(&in))
			}
		}
		if exists && (f.Err() != nil || sink.bytes != 500) || !exists && !errors.Is(f.Err(), ErrNoContent) {
			t.Errorf("exists %v: %v, %d bytes", exists, f.Err(), sink.bytes)
		}
	}
}

// What the network finds is silent, and there is no route to the others: that ends,
// and is no Nack of the silent one.
func TestSilenceAndNoRoute(t *testing.T) {
	for _, multi := range []bool{false, true} {
		o := newOrigin(500, 1000)
		f, _ := withReplica(t, o, func(c *Config) { c.MultiSource, c.Retries = multi, 3 })
		silent := 0
		for now := ndn.Time(1); !f.Done(); now = max(now, f.Deadline()) {
			if now > ndn.Time(time.Minute) {
				t.Fatal("it does not give up")
			}
			f.Tick(now)
			w, ok := f.Next(now, nil)
			if !ok {
				continue
			}
			var p ndn.Packet
			p.Kind, p.NackReason = ndn.KindNack, ndn.NackNoRoute
			if err := p.Interest.Parse(w); err != nil {
				t.Fatal(err)
			}
			if len(p.Interest.ForwardingHint) == 0 {
				silent++
				continue
			}
			f.Nack(now, &p)
		}
		if err := f.Err(); !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrNoRoute) || silent < 2 {
			t.Errorf("all at once %v: %v after %d Interests without an answer", multi, err, silent)
		}
	}
}
