package consumer

import (
	"errors"
	"testing"
	"time"

	"ndnpop/consumer/cc"
	"ndnpop/ndn"
)

// laterSink puts off what it says about metadata.
type laterSink struct {
	*testSink
	asked int
}

func (s *laterSink) Metadata(*ndn.Data) error { s.asked++; return ErrLater }

// TestMetadataVerifiedLater: nothing is believed, asked for or written before
// the answer, however long that takes, and a refusal ends the fetch.
func TestMetadataVerifiedLater(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		o := newOrigin(50_000, 1000)
		n := newNet(t, 0, 0)
		fl := n.add(o, 5*ms, cfgFor(o), controller(t, "cubic", cc.Params{}), nil)
		later := &laterSink{testSink: fl.sink}
		fl.f.sink = later
		fl.f.Verified(n.now, nil) // of nothing
		n.run(20 * time.Second)
		if _, known := fl.f.Object(); known || fl.f.Done() || later.asked != 1 || len(fl.sent) != 1 || fl.sink.bytes != 0 {
			t.Fatalf("before the answer: known %v, done %v, asked %d times, %d Interests, %d bytes",
				known, fl.f.Done(), later.asked, len(fl.sent), fl.sink.bytes)
		}
		if fl.f.Deadline() != ndn.Never {
			t.Errorf("it waits for something else: %v", fl.f.Deadline())
		}
		var bad error
		if refuse {
			bad = errors.New("forged")
		}
		fl.f.Verified(n.now, bad)
		fl.f.Verified(n.now, nil) // once is enough
		fl.pump(n.now)
		n.run(time.Minute)
		if !refuse {
			fl.ok()
		} else if !errors.Is(fl.f.Err(), bad) || fl.sink.bytes != 0 {
			t.Errorf("error %v, %d bytes", fl.f.Err(), fl.sink.bytes)
		}
	}
}
