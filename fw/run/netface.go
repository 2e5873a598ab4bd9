package run

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/ndn"
)

// maxPending bounds the bytes of frames that wait for the next flush of a
// face. It is reached only when the goroutine that flushes cannot keep up.
const maxPending = 2 << 20

// netFace is one face: its link service and the transport that it has now.
type netFace struct {
	f        *Forwarder
	id       ndn.FaceID
	uri      string // as asked for; dialled again by permanent faces
	open     Opener // opens the transport instead of uri, if not nil
	listener *listener
	member   int          // position in the listener's list; the face table's lock
	routed   bool         // it has or had routes; the face table's lock
	host     netip.Prefix // the peer's, of a stream that was accepted; the face table's lock
	timer    *alarm       // of the link

	// sendMu serialises Transport.Send. It is only ever tried: who fails has
	// set want before, and the holder looks at want after unlocking.
	sendMu sync.Mutex
	want   atomic.Bool

	mu          sync.Mutex // the lock of the link; everything below
	name        string     // of the configuration
	link        *lp.Link
	tr          face.Transport // nil until the peer was reached once
	info        face.Info
	persistency face.Persistency
	up          bool
	downSince   ndn.Time // while it is down
	downWhy     error
	gone        bool // destroyed
	out         *face.Frames
	touched     bool // in the touched list of somebody who will flush
	mtu         int  // configured; 0: the transport's
	trMTU       int  // last seen
	lastIn      ndn.Time
	idle        *alarm         // of an on-demand datagram face
	idleTimeout time.Duration  // after which that ends it
	greeting    *alarm         // of a dialled datagram face
	budget      *budget        // of a peer that nobody configured; nil: no bound
	trusting    bool           // the link is to use reliability once the peer is proven
	probe       *alarm         // of the probation of a datagram face that had been refused
	probing     face.Transport // what is on probation; nil: none is
	silence     silence        // that ends it
	probeEnd    ndn.Time
	lpc         lp.Config
	ctr         FaceCounters  // what the link does not count
	wake        chan struct{} // closed: the face is gone, do not reconnect
	poke        chan struct{} // one token: the peer was heard of, reconnect now
}

// newLink makes the link service for what is known of the face.
func (fc *netFace) newLink() *lp.Link {
	cfg := fc.lpc
	cfg.Fragment = !fc.info.Stream
	cfg.MTU = fc.trMTU
	if fc.mtu > 0 && (cfg.MTU == 0 || fc.mtu < cfg.MTU) {
		cfg.MTU = fc.mtu
	}
	return lp.New(cfg)
}

// enqueue gives one packet to the link service and notes on u's list, once,
// that the face is to be flushed. A shard's lock is held.
func (fc *netFace) enqueue(now ndn.Time, wire []byte, f *ndn.LpFields, u *unit) bool {
	fc.mu.Lock()
	if !fc.up {
		fc.ctr.Drops.OutDown++
		fc.mu.Unlock()
		return false
	}
	if fc.budget != nil && !fc.affordLocked(now, wire, u) {
		fc.ctr.Drops.OutBudget++
		fc.mu.Unlock()
		return false
	}
	if fc.out == nil {
		fc.out = fc.f.frames.get()
		fc.link.Queue(now, fc.tr.QueueLen())
	} else if len(fc.out.Buf) >= maxPending {
		fc.ctr.Drops.OutQueue++
		fc.mu.Unlock()
		return false
	}
	if err := fc.link.Send(now, wire, f, fc.out); err != nil {
		if fc.out.Len() == 0 {
			fc.f.putFrames(fc.out)
			fc.out = nil
		}
		fc.mu.Unlock()
		return false
	}
	switch {
	case len(wire) == 0 || wire[0] == byte(ndn.TypeData):
		fc.ctr.OutData++
	case f != nil && f.IsNack:
		fc.ctr.OutNacks++
	default:
		fc.ctr.OutInterests++
	}
	fc.touchLocked(u)
	fc.mu.Unlock()
	return true
}

// touchLocked notes on u's list that the face is to be flushed.
func (fc *netFace) touchLocked(u *unit) {
	if !fc.touched {
		fc.touched = true
		u.touched = append(u.touched, fc)
	}
}

// affordLocked spends of the face's budget what wire costs. Its link header
// and the headers of fragments are not counted.
func (fc *netFace) affordLocked(now ndn.Time, wire []byte, u *unit) bool {
	if fc.persistency != face.PersistencyOnDemand {
		return true
	}
	v := fc.budget.spend(now, len(wire))
	if v.echo {
		if fc.out == nil {
			fc.out = fc.f.frames.get()
		}
		_ = fc.link.Send(now, fc.budget.echoInterest(), nil, fc.out)
		fc.touchLocked(u)
	}
	if v.challenge && v.pass {
		fc.link.Challenge(fc.budget.secret)
	}
	return v.pass
}

// budgetInLocked notes what a frame of a peer with a budget says about it, and
// reports whether the packet in it concerns nobody else.
func (fc *netFace) budgetInLocked(now ndn.Time, frame []byte, p *ndn.Packet, ok bool) bool {
	b := fc.budget
	b.received(len(frame))
	if n, ok := fc.link.Response(); ok {
		b.response(now, n)
	}
	echo := ok && p.Kind == ndn.KindNack && b.nack(now, &p.Interest)
	if fc.trusting && now < b.proven {
		// A stranger could fill the memory that the feature needs for each face.
		fc.trusting = false
		fc.link.SetAuto(false)
	}
	return echo
}

// flush sends what has been queued. No lock is held.
func (fc *netFace) flush() {
	fc.want.Store(true)
	for fc.want.Load() && fc.sendMu.TryLock() {
		fc.want.Store(false)
		fc.mu.Lock()
		out, tr, seen := fc.out, fc.tr, fc.trMTU
		fc.out, fc.touched = nil, false
		deadline := ndn.Never
		if fc.link.Waits() {
			deadline = fc.link.Deadline()
		}
		fc.mu.Unlock()
		fc.f.alarms.arm(fc.timer, deadline)
		if out != nil {
			dropped := out.Len()
			mtu := seen
			if tr != nil {
				dropped = tr.Send(out)
				mtu = tr.MTU()
			}
			if dropped > 0 || mtu != seen {
				fc.mu.Lock()
				fc.ctr.Drops.OutTransport += uint64(dropped)
				fc.setMTULocked(mtu)
				fc.mu.Unlock()
			}
			fc.f.putFrames(out)
		}
		fc.sendMu.Unlock()
	}
}

// queued is how many bytes wait to be sent, at least 1 while somebody is
// sending.
func (fc *netFace) queued() (n int) {
	fc.flush()
	if fc.sendMu.TryLock() {
		fc.sendMu.Unlock()
	} else {
		n++
	}
	fc.flush() // what others left to us in the meantime
	fc.mu.Lock()
	tr := fc.tr
	if fc.out != nil {
		n += len(fc.out.Buf)
	}
	up := fc.up
	fc.mu.Unlock()
	if !up || tr == nil {
		return 0
	}
	return n + tr.QueueLen()
}

// setMTULocked follows the transport's MTU.
func (fc *netFace) setMTULocked(mtu int) {
	if mtu == fc.trMTU && mtu > 0 {
		return
	}
	fc.trMTU = mtu
	if fc.mtu > 0 {
		mtu = min(mtu, fc.mtu)
	}
	if mtu > 0 {
		fc.link.SetMTU(mtu)
	}
}

// afterFragments does what a link wants after having received what was no
// packet: fragments, acknowledgements.
func (fc *netFace) afterFragments() {
	fc.mu.Lock()
	deadline := fc.link.Deadline()
	gaveUp := fc.gaveUpLocked()
	pending := fc.out != nil
	fc.mu.Unlock()
	fc.f.alarms.arm(fc.timer, deadline)
	fc.f.gaveUp(fc, gaveUp)
	if pending {
		fc.flush()
	}
}

// gaveUpLocked copies the Interests that the link gave up on.
func (fc *netFace) gaveUpLocked() (wires [][]byte) {
	for {
		wire, ok := fc.link.GaveUp()
		if !ok {
			return wires
		}
		wires = append(wires, append([]byte(nil), wire...))
	}
}

// tickLocked lets the link do what is due. What it repeats counts for the budget
// of an unproven peer: who receives nothing acknowledges nothing, and would be
// sent everything several times. Frames that are over it are lost.
func (fc *netFace) tickLocked(now ndn.Time) {
	if fc.budget == nil || fc.persistency != face.PersistencyOnDemand {
		fc.link.Tick(now, fc.out)
		return
	}
	frames, size, repeated := fc.out.Len(), len(fc.out.Buf), fc.link.Counters().Retransmitted
	fc.link.Tick(now, fc.out)
	if n := len(fc.out.Buf) - size; fc.link.Counters().Retransmitted > repeated && !fc.budget.repeat(now, n) {
		fc.ctr.Drops.OutBudget += uint64(fc.out.Len() - frames)
		fc.out.Buf, fc.out.Ends = fc.out.Buf[:size], fc.out.Ends[:frames]
	}
}

// linkDue is the link's timer: reassembly, reliability.
func (fc *netFace) linkDue(now ndn.Time) ndn.Time {
	fc.mu.Lock()
	if fc.gone {
		fc.mu.Unlock()
		return ndn.Never
	}
	if fc.out == nil {
		fc.out = fc.f.frames.get()
	}
	fc.tickLocked(now)
	pending := fc.out.Len() > 0
	if !pending {
		fc.f.putFrames(fc.out)
		fc.out = nil
	}
	gaveUp := fc.gaveUpLocked()
	next := fc.link.Deadline()
	fc.mu.Unlock()
	if pending {
		fc.flush()
	}
	fc.f.gaveUp(fc, gaveUp)
	return next
}

// snapshot describes the face.
func (fc *netFace) snapshot(now ndn.Time) FaceInfo {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	c := fc.link.Counters()
	marking := fc.link.Marking()
	i := FaceInfo{
		Info: fc.info, ID: fc.id, Name: fc.name, Persistency: fc.persistency, Up: fc.up,
		MTU: fc.link.MTU(), LocalFields: fc.link.LocalFields(),
		Reliable:            fc.link.Reliable(),
		CongestionMarking:   !marking.Off,
		CongestionThreshold: marking.Threshold,
		CongestionInterval:  marking.Interval,
		Counters:            fc.ctr,
	}
	i.Counters.InFrames, i.Counters.InBytes = c.InFrames, c.InBytes
	i.Counters.OutFrames, i.Counters.OutBytes = c.OutFrames, c.OutBytes
	i.Counters.CongestionMarks = c.OutMarked
	i.Counters.Retransmissions = c.Retransmitted
	i.Counters.Drops.InMalformed = c.InParse + c.InNetParse + c.InFields + c.InOversize
	i.Counters.Drops.InFragments = c.InFragment + c.InReassemblyOld + c.InReassemblyMax
	i.Counters.Drops.OutOversize = c.OutOversize
	i.Counters.Drops.OutUnacked = c.RetxExhausted
	i.Counters.Drops.OutQueue += c.OutQueue + c.OutShapeFull + c.OutShapeLost
	if fc.up {
		i.Counters.QueueBytes = fc.tr.QueueLen()
	} else if !fc.gone {
		i.DownFor = now.Sub(fc.downSince)
		if fc.downWhy != nil {
			i.DownWhy = strings.TrimPrefix(fc.downWhy.Error(), "face: ") // it is said where this stands
		}
	}
	i.Proven = !fc.dispensable(now)
	if fc.expires() {
		i.ExpiresIn = max(0, fc.lastIn.Add(fc.idleTimeout).Sub(now))
	}
	return i
}

// expires reports whether idleness destroys the face; the lock is held.
func (fc *netFace) expires() bool {
	return fc.idle != nil && fc.persistency == face.PersistencyOnDemand
}

// idleDue is the idle timer of an on-demand datagram face.
func (fc *netFace) idleDue(now ndn.Time) ndn.Time {
	beside, used := fc.beside()
	fc.mu.Lock()
	expires := fc.expires() && !fc.gone
	if fc.idleTimeout = fc.listener.opts.IdleTimeout; used {
		fc.idleTimeout = min(fc.idleTimeout, besideIdle)
	}
	at := fc.lastIn.Add(fc.idleTimeout)
	fc.mu.Unlock()
	switch {
	case !expires:
		return ndn.Never
	case at > now && beside:
		return min(at, now.Add(besideIdle))
	case at > now:
		return at
	}
	fc.f.destroy(fc, ErrIdle)
	return ndn.Never
}

// besideIdle is how long an on-demand datagram face is kept that hears nothing
// while another one to its peer, which was dialled, is up: the peer's datagrams go
// to that one. What they asked for before is answered, or has expired by then.
const besideIdle = 30 * time.Second

// beside reports whether another face to the peer was dialled, and whether that is
// what serves the peer now.
func (fc *netFace) beside() (beside, used bool) {
	fc.f.mu.Lock()
	defer fc.f.mu.Unlock()
	other := fc.f.byURI[fc.uri]
	if other == nil || other.listener != nil || fc.routed {
		return false, false
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	return true, other.up
}

// minMTU leaves a fragment room beside its header, in bytes (NFD: MIN_MTU).
const minMTU = lp.MinMTU

// update applies a change.
func (fc *netFace) update(u FaceUpdate) error {
	fc.mu.Lock()
	defer fc.mu.Unlock()
	if u.Persistency != nil && *u.Persistency != fc.persistency {
		if err := fc.persistencyPossible(*u.Persistency); err != nil {
			return err
		}
	}
	if u.LocalFields != nil && *u.LocalFields && fc.info.Scope != face.ScopeLocal {
		return ErrNotLocal
	}
	if u.Persistency != nil {
		fc.persistency = *u.Persistency
		if fc.expires() {
			fc.f.alarms.arm(fc.idle, fc.f.clock.now().Add(fc.listener.opts.IdleTimeout))
		}
	}
	if u.Name != nil {
		fc.name = *u.Name
	}
	if u.LocalFields != nil {
		fc.link.SetLocalFields(*u.LocalFields)
	}
	if u.MTU != nil {
		fc.mtu = *u.MTU
		seen := fc.trMTU
		fc.trMTU = 0
		fc.setMTULocked(seen)
	}
	if u.Reliable != nil {
		fc.setReliable(*u.Reliable)
	}
	if u.Shaping != nil {
		fc.link.SetShaping(*u.Shaping)
	}
	m := fc.link.Marking()
	if u.CongestionMarking != nil {
		m.Off = !*u.CongestionMarking
	}
	if u.CongestionThreshold != nil {
		m.Threshold = *u.CongestionThreshold
	}
	if u.CongestionInterval != nil {
		m.Interval = *u.CongestionInterval
	}
	fc.link.SetMarking(m)
	return nil
}

// setReliable applies a choice of the reliability feature; the lock is held, or
// nobody else knows the face.
func (fc *netFace) setReliable(r Reliability) {
	fc.trusting = false
	switch {
	case r != ReliabilityAuto:
		fc.link.SetReliable(r == ReliabilityOn)
	case fc.info.Stream || loopback(fc.info.RemoteURI):
		fc.link.SetReliable(false)
	case fc.persistency != face.PersistencyOnDemand:
		fc.link.SetAuto(true)
	case fc.budget != nil:
		fc.trusting = true // budgetInLocked goes on
	default:
		fc.link.SetAuto(false)
	}
}

// loopback reports whether a URI has an address of this host.
func loopback(uri string) bool {
	_, rest := splitURI(uri)
	a, err := netip.ParseAddrPort(rest)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// persistencyPossible reports why a face cannot have a persistency: a stream
// that the peer opened cannot be opened from here, and who opened one does not
// let it end by idleness (NFD: canChangePersistencyTo).
func (fc *netFace) persistencyPossible(p face.Persistency) error {
	switch accepted := fc.listener != nil; {
	case accepted && fc.info.Stream && p == face.PersistencyPermanent:
		return fmt.Errorf("%w: the peer opened it", ErrPersistency)
	case !accepted && p == face.PersistencyOnDemand:
		return fmt.Errorf("%w: it was created from here", ErrPersistency)
	}
	return nil
}
