package consumer

import (
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
)

// request is the single Interest of the stages before the segments: the
// metadata, or a segment that tells sizes.
type request struct {
	name        ndn.Name
	canBePrefix bool
	fresh       bool
	out         bool // in flight
	held        bool // answered; the answer is being verified
	retx        uint16
	wrong       uint8 // how often a wrong packet came
	refused     uint8 // replicas that said there is nothing, by bits
	refusals    int   // how often that was said
	rounds      uint8 // how often all said so
	nonce       uint32
	sentAt      ndn.Time
	firstAt     ndn.Time
	expires     ndn.Time
}

func (r *request) start(name ndn.Name, canBePrefix, fresh bool) {
	*r = request{name: name, canBePrefix: canBePrefix, fresh: fresh}
}

func (r *request) deadline() ndn.Time {
	if r.out {
		return r.expires
	}
	return ndn.Never
}

// probe asks for one segment for its sizes.
func (f *Fetch) probe(now ndn.Time, seg uint64) {
	f.one.start(f.obj.Name.Clone().AppendNumber(ndn.TypeSegment, seg), false, f.cfg.Fresh)
	f.wake = now
}

func (f *Fetch) oneNext(now ndn.Time, b []byte) ([]byte, bool) {
	r := &f.one
	l := f.cur
	if now < l.holdUntil {
		f.wake = min(f.wake, l.holdUntil)
		return b, false
	}
	if r.out || r.held {
		return b, false
	}
	if r.firstAt.IsSet() {
		r.retx++
		f.stats.Retransmissions++
	} else {
		r.firstAt = now
	}
	f.stats.Interests++
	r.out, r.sentAt, r.nonce = true, now, f.rng.Uint32()
	rto := l.paths.rto(now)
	r.expires = now.Add(rto)
	b = ndn.AppendInterest(b, &ndn.InterestFields{
		Name: r.name, CanBePrefix: r.canBePrefix, MustBeFresh: r.fresh,
		ForwardingHint: l.hint, Nonce: r.nonce, Lifetime: max(f.cfg.Lifetime, 2*rto),
	})
	if f.trace != nil {
		f.emit(now, l, TraceSend, 0, 0, 0, 0)
	}
	return b, true
}

func (f *Fetch) oneTick(now ndn.Time) {
	r := &f.one
	if !r.out || now < r.expires {
		return
	}
	r.out = false
	f.stats.Timeouts++
	f.cur.paths.backoff()
	if f.trace != nil {
		f.emit(now, f.cur, TraceTimeout, 0, 0, 0, 0)
	}
	f.otherReplica()
	if f.exhausted(now, r.retx, r.firstAt) {
		f.Fail(now, fmt.Errorf("%w: %s was asked for %d times in %v", ErrUnreachable, r.name, r.retx+1,
			now.Sub(r.firstAt).Round(100*time.Millisecond)))
	}
}

func (f *Fetch) oneNack(now ndn.Time, in *ndn.Interest, reason ndn.NackReason) {
	r := &f.one
	if !r.out || in.Nonce != r.nonce || !in.Name.Equal(r.name) {
		f.stats.Unsolicited++
		return
	}
	f.stats.Nacks++
	if f.trace != nil {
		f.emit(now, f.cur, TraceNack, 0, 0, 0, 0)
	}
	switch reason {
	case ndn.NackDuplicate:
	case ndn.NackCongestion:
		r.out = false
		f.cur.holdUntil = now.Add(suppression(r.retx))
		if f.exhausted(now, r.retx, r.firstAt) {
			f.Fail(now, fmt.Errorf("%w: the network is congested", ErrUnreachable))
		}
	default:
		r.out = false
		f.wake = now
		if f.cur.noRoutes++; !f.otherReplica() {
			// noRoute counts it. The lane may be another one now, which fell silent
			// instead of being refused.
			f.cur.noRoutes = max(f.cur.noRoutes-1, 0)
			f.noRoute(now, f.cur)
		}
	}
}

func (f *Fetch) oneData(now ndn.Time, p *ndn.Packet) {
	r, d := &f.one, &p.Data
	if r.held {
		f.stats.Duplicates++
		return
	}
	if !r.name.Equal(d.Name) && (!r.canBePrefix || !d.Name.HasPrefix(r.name)) {
		f.stats.Unsolicited++
		return
	}
	if d.ContentType == ndn.ContentNack {
		if f.nothingThere() {
			f.Fail(now, fmt.Errorf("%w: the producer has no %s", ErrNoContent, f.cfg.Name))
			return
		}
		r.out, f.wake = false, now // the next one
		if !f.otherReplica() {
			f.noRoute(now, f.cur)
		}
		return
	}
	if r.retx == 0 && r.firstAt.IsSet() {
		f.sampleRTT(f.cur, f.cur.paths.of(&p.LpFields, false), now.Sub(r.sentAt), 1)
	}
	f.progress(now, f.cur)
	if f.trace != nil {
		f.emit(now, f.cur, TraceData, 0, 0, now.Sub(r.sentAt), 0)
	}
	r.out = false
	switch err := f.sink.Metadata(d); {
	case errors.Is(err, ErrLater):
		r.held = true
		f.heldWire = append(f.heldWire[:0], d.Wire...)
	case err != nil:
		f.oneWrong(now, d.Name, err)
	default:
		f.believe(now, d)
	}
}

// maxRounds is how often all replicas are asked for what none of them is sure to
// have refused.
const maxRounds = 3

// nothingThere takes the answer that there is no content, and reports whether that
// is settled. Of several replicas each must say so; and while some requests have
// no answer yet, one may have said so late, twice over, for another.
func (f *Fetch) nothingThere() bool {
	r, n := &f.one, len(f.sources)
	if n == 1 {
		return true
	}
	r.refusals++
	if r.refused |= 1 << f.cur.replica; r.refused != 1<<n-1 {
		return false
	}
	if r.refusals > int(r.retx) {
		return true
	}
	r.refused = 0
	r.rounds++
	return r.rounds >= maxRounds
}

// Verified is the answer to a packet about which Sink.Metadata said ErrLater:
// nil when it may be believed, an ErrWrong when another copy of it may be asked
// for, or the error that ends the fetch. Without such a packet it does nothing.
func (f *Fetch) Verified(now ndn.Time, err error) {
	if f.Done() || !f.one.held {
		return
	}
	f.stats.Now = now
	f.one.held = false
	if e := f.view.Parse(f.heldWire); e != nil {
		f.Fail(now, e)
		return
	}
	if err != nil {
		f.oneWrong(now, f.view.Name, err)
		return
	}
	f.believe(now, &f.view)
}

// believe takes what the single packet says.
func (f *Fetch) believe(now ndn.Time, d *ndn.Data) {
	if f.stage == stageMeta {
		m, err := ParseMetadata(d.Content)
		if err != nil {
			f.oneWrong(now, d.Name, err)
			return
		}
		f.known(now, m.Object, m.Inline)
		return
	}
	if err := f.learn(d); err != nil {
		f.Fail(now, err)
		return
	}
	f.known(now, f.obj, nil)
}

// learn takes the sizes that a range needs from segment 0 or the last one.
func (f *Fetch) learn(d *ndn.Data) error {
	o := &f.obj
	if final, ok := d.FinalBlockNumber(ndn.TypeSegment); ok {
		if o.HasFinal && o.Final != final {
			return ErrChanged
		}
		o.Final, o.HasFinal = final, true
	}
	n := uint64(len(d.Content))
	if f.stage == stageLast {
		o.Size, o.HasSize = o.Final*o.SegmentSize+n, true
		return nil
	}
	if n == 0 {
		return errors.Join(ErrRange, errors.New("the object is empty"))
	}
	o.SegmentSize = n
	if o.HasFinal && o.Final == 0 {
		o.Size, o.HasSize = n, true
	}
	return nil
}
