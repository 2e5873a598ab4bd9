package lp

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

// end is one end of a link in a random run.
type end struct {
	l    *Link
	cfg  Config
	sent map[string]bool // wires that were given to it
	way  [][]byte        // frames to the other end
}

func (e *end) take(frames *face.Frames) {
	for i := range frames.Len() {
		e.way = append(e.way, bytes.Clone(frames.Frame(i)))
	}
}

// check checks what always holds of the reliability feature's state.
func (e *end) check(t *rapid.T) {
	r := e.l.rel
	if r == nil {
		return
	}
	flying, size := 0, 0
	for tx := r.first; tx != r.next; tx++ {
		if f := r.inFlight(tx); f != nil {
			flying, size = flying+1, size+len(f.body)
		}
	}
	queued := map[*packet]bool{}
	for f := r.queue.head; f != nil; f = f.next {
		queued[f.pkt] = true
	}
	switch {
	case flying != r.flying || size != r.bytes:
		t.Fatalf("%d fragments of %d bytes in flight, counted %d of %d", flying, size, r.flying, r.bytes)
	case len(queued) != r.queued:
		t.Fatalf("%d packets in the queue, counted %d", len(queued), r.queued)
	case r.flying > r.cfg.Window && !r.deaf() || len(r.ring) > 2*maxUnacked || len(r.acks) > maxAcks:
		t.Fatalf("%d in flight, a ring of %d, %d acknowledgements", r.flying, len(r.ring), len(r.acks))
	case r.flying > 0 && r.timer == ndn.Never:
		t.Fatal("nothing will repeat what is in flight")
	case (r.queue.head != nil || r.lost.head != nil) && r.flying == 0 && r.pumpAt == ndn.Never:
		t.Fatal("nothing will send what waits")
	case len(r.acks) > 0 && r.ackAt == ndn.Never:
		t.Fatal("nothing will send acknowledgements")
	}
}

// TestRandomLinks: two ends on a path that loses, repeats and reorders, where
// ends start anew with or without the feature, change their minds and their MTU,
// and somebody acknowledges what was never sent. Whatever comes is what was sent,
// the state is consistent, and all ends when nobody sends any more.
func TestRandomLinks(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		now := 1 * ms
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		draw := rng.IntN
		fresh := func(e *end) {
			e.cfg = Config{Fragment: true, MTU: 200 + 100*draw(13), FirstSequence: rng.Uint64()}
			switch draw(5) {
			case 0:
				e.cfg.Reliability.On = true
			case 1, 2:
				e.cfg.Reliability.Auto, e.cfg.Reliability.Offer = true, true
			case 3:
				e.cfg.Reliability.Auto = true
			}
			e.cfg.Reliability.Window = []int{0, 1, 4}[draw(3)]
			e.l = New(e.cfg)
		}
		ends := [2]*end{{sent: map[string]bool{}}, {sent: map[string]bool{}}}
		for _, e := range ends {
			fresh(e)
		}
		deliver := func(k, i int, keep bool) {
			from, to := ends[k], ends[1-k]
			frame := from.way[i]
			if !keep {
				from.way = append(from.way[:i:i], from.way[i+1:]...)
			}
			var p ndn.Packet
			if ok, _ := to.l.Receive(now, bytes.Clone(frame), &p); ok && !from.sent[string(p.Wire())] {
				t.Fatalf("%x was not sent", p.Wire())
			}
		}
		tickBoth := func() {
			for _, e := range ends {
				if e.l.Deadline() <= now {
					frames := new(face.Frames)
					e.l.Tick(now, frames)
					e.take(frames)
				}
				for _, ok := e.l.GaveUp(); ok; _, ok = e.l.GaveUp() {
				}
			}
		}
		for step := range rapid.IntRange(1, 2000).Draw(t, "steps") {
			k := draw(2)
			e := ends[k]
			switch op := draw(20); {
			case op < 6:
				wire := interest(byte(step))
				if op < 3 {
					wire = data(tb, byte(step), 60+draw(3000))
				}
				e.sent[string(wire)] = true
				frames := new(face.Frames)
				_ = e.l.Send(now, wire, nil, frames)
				e.take(frames)
			case op < 13:
				if n := len(e.way); n > 0 {
					deliver(k, draw(n)*draw(2), draw(10) == 0)
				}
			case op < 15:
				if len(e.way) > 0 {
					e.way = e.way[1:]
				}
			case op < 17:
				now = now.Add(time.Duration(draw(300)) * time.Millisecond)
			case op == 17 && draw(8) == 0:
				switch draw(4) {
				case 0:
					fresh(e)
				case 1:
					e.l.SetReliable(draw(2) == 0)
				case 2:
					e.l.SetAuto(draw(2) == 0)
				default:
					e.l.SetMTU(200 + 100*draw(13))
				}
			case op == 18 && draw(8) == 0: // lies
				tx := rng.Uint64()
				if r := e.l.rel; r != nil {
					tx = r.next - uint64(draw(100)) + 10
				}
				_ = ack(e.l, now, tx)
			}
			tickBoth()
			for _, e := range ends {
				e.check(t)
			}
		}
		// The path becomes good, and nobody sends any more.
		for range 2000 {
			for k := range ends {
				for len(ends[k].way) > 0 {
					deliver(k, 0, false)
				}
			}
			next := min(ends[0].l.Deadline(), ends[1].l.Deadline())
			if next == ndn.Never && len(ends[0].way)+len(ends[1].way) == 0 {
				break
			}
			if next != ndn.Never {
				now = max(now, next)
			}
			tickBoth()
		}
		for _, e := range ends {
			e.check(t)
			if e.l.Deadline() != ndn.Never || len(e.way) > 0 {
				t.Fatal("it never ends")
			}
		}
	})
}
