package run

import (
	"ndnpop/face"
	"ndnpop/ndn"
)

// ingress receives for one face from one transport (face.Receiver).
type ingress struct {
	fc *netFace
	tr face.Transport
	b  *batch // held between Receive and Flush
	// odd is set when a frame was no packet by itself, or is to be acknowledged:
	// the link may want something even if nothing is sent.
	odd bool
	// onClosed is told the end; it replaces the default when a goroutine of
	// the face waits for Serve to return.
	onClosed func(err error)
}

// Receive takes a batch of frames through the shard.
func (r *ingress) Receive(frames [][]byte) { r.ReceiveFrom(0, frames) }

// ReceiveFrom implements face.SenderReceiver.
func (r *ingress) ReceiveFrom(sender uint64, frames [][]byte) {
	f := r.fc.f
	if r.b == nil {
		r.b = f.batches.get()
	}
	for len(frames) > 0 {
		now := f.clock.now()
		var n int
		n, frames = r.parse(now, sender, frames)
		if n > 0 {
			f.process(now, r.fc, r.b, n)
		}
		// A transport that always has more at hand must not hold back what
		// others wait for.
		if r.b.since += n; r.b.since >= flushPackets || r.b.sent >= flushBytes {
			r.flush()
		}
	}
}

// parse fills the batch with packets that may be processed together, and
// returns how many and the frames that remain.
func (r *ingress) parse(now ndn.Time, sender uint64, frames [][]byte) (n int, rest [][]byte) {
	fc := r.fc
	late := false
	for i, frame := range frames {
		p := &r.b.packets[n]
		fc.mu.Lock()
		ok, _ := fc.link.ReceiveFrom(now, sender, frame, p)
		joined := fc.link.Reassembled()
		if fc.budget != nil && fc.budgetInLocked(now, frame, p, ok) {
			ok = false
		}
		if !ok && fc.link.Asked() {
			fc.answerLocked(now)
		}
		if ok {
			switch p.Kind {
			case ndn.KindInterest:
				fc.ctr.InInterests++
			case ndn.KindData:
				fc.ctr.InData++
			case ndn.KindNack:
				fc.ctr.InNacks++
			}
		}
		if i == 0 {
			fc.lastIn = now
			late = !fc.up
		}
		// Whatever comes is to be acknowledged, and may itself acknowledge.
		r.odd = r.odd || fc.link.Reliable()
		fc.mu.Unlock()
		if !ok {
			r.odd = true
			continue
		}
		// The next frame may overwrite a packet that was put together.
		if n++; n == batchSize || joined {
			rest = frames[i+1:]
			break
		}
	}
	if late {
		// Hearing from the peer ends a probation.
		fc.f.faceUp(fc, r.tr)
	}
	return n, rest
}

// Flush sends what the packets since the last one caused.
func (r *ingress) Flush() {
	if r.b == nil {
		return
	}
	r.flush()
	r.fc.f.batches.put(r.b)
	r.b = nil
	if r.odd {
		r.odd = false
		r.fc.afterFragments()
	}
}

func (r *ingress) flush() {
	for i, fc := range r.b.touched {
		fc.flush()
		r.b.touched[i] = nil
	}
	r.b.touched, r.b.since, r.b.sent = r.b.touched[:0], 0, 0
}

// Closed tells the forwarder that the transport has ended.
func (r *ingress) Closed(err error) {
	r.Flush()
	if r.onClosed != nil {
		r.onClosed(err)
	}
}
