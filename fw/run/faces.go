package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/fw"
	"ndnpop/ndn"
)

// Reasons of the end of a face that are no failures.
var (
	ErrIdle      = errors.New("idle")
	ErrCrowded   = errors.New("idle, and others wanted its place")
	ErrDestroyed = errors.New("destroyed by command")
)

// localMarking is how long the queue of a local face may stand before it is
// marked. CoDel's interval is to be about a round trip (RFC 8289, 4.3): on a
// host that is some milliseconds, and within NFD's 100 ms an application's slow
// start fills the socket's queue and loses packets.
const localMarking = 5 * time.Millisecond

// newFace is what addFace needs to know.
type newFace struct {
	tr          face.Transport // nil for a face that has not reached its peer
	uri         string
	name        string
	persistency face.Persistency
	listener    *listener
	open        Opener
	mtu         int
	localFields bool
	reliable    Reliability
	shaping     lp.Shaping
	id          ndn.FaceID // 0: the next one
}

// addFace puts a face into the tables.
func (f *Forwarder) addFace(n newFace) (*netFace, error) {
	fc := &netFace{
		f: f, name: n.name, uri: n.uri, listener: n.listener, open: n.open, id: n.id,
		tr: n.tr, up: n.tr != nil, mtu: n.mtu, persistency: n.persistency,
		lpc: f.opts.Link, wake: make(chan struct{}), poke: make(chan struct{}, 1),
		info: face.Info{RemoteURI: n.uri},
	}
	fc.lpc.FirstSequence = rand.Uint64()
	fc.lpc.LocalFields = n.localFields
	if n.tr != nil {
		fc.info, fc.trMTU = n.tr.Info(), n.tr.MTU()
	} else {
		fc.info.Stream, fc.info.Scope = !isDatagram(n.uri), scopeOf(n.uri)
		// It has no local end yet, and NFD's tools refuse what tells of none.
		scheme, _ := splitURI(n.uri)
		fc.info.LocalURI = scheme + "://"
	}
	if fc.info.Scope == face.ScopeLocal && fc.lpc.Marking.Interval == 0 {
		fc.lpc.Marking.Interval = localMarking
	}
	if l := n.listener; l != nil && l.total != nil {
		fc.budget = newBudget(l.opts.Allowance, l.total)
	}
	fc.link = fc.newLink()
	fc.setReliable(n.reliable)
	fc.link.SetShaping(n.shaping)
	fc.lastIn = f.clock.now()
	fc.downSince = fc.lastIn
	fc.timer = newAlarm(fc.linkDue)

	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case n.listener != nil && (len(n.listener.members) >= n.listener.opts.MaxFaces || len(f.faces) >= f.opts.MaxFaces):
		n.listener.full()
		return nil, ErrTooManyFaces
	case len(f.faces) >= f.opts.MaxFaces:
		return nil, ErrTooManyFaces
	}
	if fc.id == 0 {
		fc.id = f.nextID
		f.nextID++
	}
	for _, u := range f.units {
		var err error
		u.call(func(now ndn.Time) {
			err = u.shard.AddFace(now, fw.FaceInfo{
				ID: fc.id, Local: fc.info.Scope == face.ScopeLocal,
				MultiAccess: fc.info.Link != face.LinkPointToPoint,
				AdHoc:       fc.info.Link == face.LinkAdHoc,
			})
			if err != nil {
				return
			}
			u.faces[fc.id] = fc
			if !fc.up {
				u.shard.FaceDown(now, fc.id)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	f.faces[fc.id] = fc
	f.nameURI(fc, fc.info.RemoteURI)
	f.nameURI(fc, fc.uri)
	if l := n.listener; l != nil {
		l.join(fc)
		if !fc.info.Stream && l.opts.IdleTimeout > 0 {
			fc.idle, fc.idleTimeout = newAlarm(fc.idleDue), l.opts.IdleTimeout
			if other := f.byURI[fc.uri]; other != fc && other.listener == nil {
				fc.idleTimeout = min(fc.idleTimeout, besideIdle)
			}
			f.alarms.arm(fc.idle, fc.lastIn.Add(fc.idleTimeout))
		}
	}
	if isDatagram(fc.uri) && n.listener == nil {
		fc.greeting = newAlarm(fc.greet)
		f.alarms.arm(fc.greeting, f.clock.now())
	}
	f.emit(Event{Kind: FaceCreated, Face: fc.snapshot(f.clock.now())})
	return fc, nil
}

// nameURI makes fc found by a URI, unless another face is; f.mu is held. A face
// that was dialled takes the name of one that its peer's datagrams have made, which
// hears nothing more.
func (f *Forwarder) nameURI(fc *netFace, uri string) {
	if uri == "" {
		return
	}
	other := f.byURI[uri]
	if other == nil {
		f.byURI[uri] = fc
		return
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if other.expires() && fc.listener == nil {
		f.byURI[uri] = fc
		other.idleTimeout = min(other.idleTimeout, besideIdle) // unless idleDue finds otherwise
		f.alarms.arm(other.idle, f.clock.now().Add(besideIdle))
	}
}

// destroy removes a face from all tables, unless that has been done: nothing is
// sent there or taken from there any more. The sweeper removes its routes and,
// if there are many, its next hops; done is closed afterwards, and nil when
// there are none. At the end of the forwarder the tables stay as they are: it
// would take seconds to find other ways for all that is pending.
func (f *Forwarder) destroy(fc *netFace, why error) (done <-chan struct{}) {
	f.mu.Lock()
	if f.faces[fc.id] != fc {
		f.mu.Unlock()
		return nil
	}
	delete(f.faces, fc.id)
	fc.mu.Lock()
	fc.gone, fc.up = true, false
	tr, canonical := fc.tr, fc.info.RemoteURI
	fc.mu.Unlock()
	for _, uri := range []string{canonical, fc.uri} {
		if f.byURI[uri] == fc {
			delete(f.byURI, uri)
		}
	}
	if l := fc.listener; l != nil {
		l.leave(fc)
	}
	for _, u := range f.units {
		u.call(func(now ndn.Time) {
			delete(u.faces, fc.id)
			if !f.closed {
				u.shard.RemoveFacePart(now, fc.id, fibBatch)
			}
		})
	}
	if fc.routed && !f.closed {
		done = f.sweeper.add(fc.id) // with the lock held, so before Close ends it
	}
	last := fc.snapshot(f.clock.now())
	scheme, _ := splitURI(canonical)
	total := f.retired[scheme]
	total.add(&last.Counters)
	f.retired[scheme] = total
	f.emit(Event{Kind: FaceDestroyed, Face: last, Err: why})
	f.mu.Unlock()

	for _, a := range []*alarm{fc.timer, fc.idle, fc.probe, fc.greeting} {
		if a != nil {
			f.alarms.disarm(a)
		}
	}
	close(fc.wake)
	if tr != nil {
		_ = tr.Close()
	}
	return done
}

// list returns the faces by ascending id.
func (f *Forwarder) list() []*netFace {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listLocked()
}

func (f *Forwarder) listLocked() []*netFace {
	faces := make([]*netFace, 0, len(f.faces))
	for _, fc := range f.faces {
		faces = append(faces, fc)
	}
	slices.SortFunc(faces, func(a, b *netFace) int { return cmp.Compare(a.id, b.id) })
	return faces
}

// Faces lists the faces by ascending id.
func (f *Forwarder) Faces() []FaceInfo {
	faces, _ := f.FacesAndRetired()
	return faces
}

// FacesAndRetired lists the faces, and adds up, by the scheme of the remote
// URI, what the faces counted that do not exist any more. Together they are
// totals that only grow.
func (f *Forwarder) FacesAndRetired() (faces []FaceInfo, retired map[string]FaceCounters) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.now()
	for _, fc := range f.listLocked() {
		faces = append(faces, fc.snapshot(now))
	}
	return faces, maps.Clone(f.retired)
}

func (f *Forwarder) lookup(id ndn.FaceID) *netFace {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faces[id]
}

// Face returns one face.
func (f *Forwarder) Face(id ndn.FaceID) (FaceInfo, bool) {
	fc := f.lookup(id)
	if fc == nil {
		return FaceInfo{}, false
	}
	return fc.snapshot(f.clock.now()), true
}

// FaceByURI returns the face to a remote URI, in canonical form or as it was
// given when the face was created.
func (f *Forwarder) FaceByURI(remote string) (FaceInfo, bool) {
	full, err := canonical(remote)
	f.mu.Lock()
	fc := f.byURI[remote]
	if fc == nil && err == nil {
		fc = f.byURI[full]
	}
	f.mu.Unlock()
	if fc == nil {
		return FaceInfo{}, false
	}
	return fc.snapshot(f.clock.now()), true
}

// CreateFace makes a face to spec.URI. When one exists it returns that one
// with ErrFaceExists, also if another call is just making it. A permanent face
// is created even when the peer cannot be reached now.
func (f *Forwarder) CreateFace(spec FaceSpec) (info FaceInfo, err error) {
	if spec.Persistency == face.PersistencyOnDemand {
		return FaceInfo{}, fmt.Errorf("%w: a created face is persistent or permanent", ErrPersistency)
	}
	if err := checkMTU(spec.MTU); err != nil {
		return FaceInfo{}, err
	}
	uri, err := canonical(spec.URI)
	if err != nil {
		return FaceInfo{}, err
	}
	d := &dialling{done: make(chan struct{})}
	for {
		fc, other, err := f.mayDial(uri, d)
		switch {
		case err != nil:
			return FaceInfo{}, err
		case fc != nil:
			// Somebody who may says that this peer is wanted.
			fc.mu.Lock()
			fc.budget = nil
			fc.mu.Unlock()
			return fc.snapshot(f.clock.now()), ErrFaceExists
		}
		if other == d {
			break
		}
		<-other.done // when the forwarder closes as well
		if e := other.err; e != nil && !errors.Is(e, ErrFaceExists) && spec.Persistency != face.PersistencyPermanent {
			return FaceInfo{}, e
		}
	}
	started := false
	defer func() {
		d.err = err
		f.mu.Lock()
		delete(f.dialling, uri)
		f.mu.Unlock()
		close(d.done)
		if !started {
			f.wg.Done()
		}
	}()

	mtu := spec.MTU
	if mtu == 0 && isDatagram(uri) {
		mtu = f.opts.UDPMTU
	}
	var tr face.Server
	background := spec.Background && spec.Persistency == face.PersistencyPermanent && !atOnce(uri)
	if !background {
		tr, err = f.dial(uri, mtu)
	}
	if err != nil && spec.Persistency != face.PersistencyPermanent {
		return FaceInfo{}, fmt.Errorf("face %s: %w", spec.URI, err)
	}
	n := newFace{uri: uri, name: spec.Name, persistency: spec.Persistency, mtu: mtu,
		localFields: spec.LocalFields, reliable: spec.Reliable, shaping: spec.Shaping}
	if tr != nil {
		n.tr = tr
		if other, ok := f.FaceByURI(tr.Info().RemoteURI); ok {
			_ = tr.Close()
			return other, ErrFaceExists
		}
	}
	fc, err := f.addFace(n)
	if err != nil {
		if n.tr != nil {
			_ = tr.Close()
		}
		return FaceInfo{}, fmt.Errorf("face %s: %w", spec.URI, err)
	}
	started = true
	go func() {
		defer f.wg.Done()
		f.live(fc, tr, background)
	}()
	return fc.snapshot(f.clock.now()), nil
}

// dialling is a call of CreateFace that is under way.
type dialling struct {
	done chan struct{} // closed at its end, with err set
	err  error
}

// mayDial returns the face to a URI, if there is one, and otherwise the call
// that makes it: d, if it is the first.
func (f *Forwarder) mayDial(uri string, d *dialling) (fc *netFace, by *dialling, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fc := f.byURI[uri]; fc != nil {
		return fc, nil, nil
	}
	if f.closed {
		return nil, nil, ErrClosed
	}
	if by := f.dialling[uri]; by != nil {
		return nil, by, nil
	}
	f.dialling[uri] = d
	f.wg.Add(1) // for live; Close waits for it
	return nil, d, nil
}

// AttachFace makes a face of a transport that is open, such as one end of an
// in-memory pair, and owns it. It is persistent: it ends with its transport.
func (f *Forwarder) AttachFace(tr face.Server, name string) (FaceInfo, error) {
	fc, err := f.attachFace(tr, newFace{name: name})
	if err != nil {
		return FaceInfo{}, err
	}
	return fc.snapshot(f.clock.now()), nil
}

func (f *Forwarder) attachFace(tr face.Server, n newFace) (*netFace, error) {
	n.tr, n.uri = tr, tr.Info().RemoteURI
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, ErrClosed
	}
	f.wg.Add(1)
	f.mu.Unlock()
	fc, err := f.addFace(n)
	if err != nil {
		f.wg.Done()
		return nil, err
	}
	go func() {
		defer f.wg.Done()
		f.destroy(fc, tr.Serve(&ingress{fc: fc, tr: tr}))
	}()
	return fc, nil
}

// Opener opens the transport of a face; it ends early when ctx does.
type Opener func(ctx context.Context) (face.Server, error)

// OpenFace makes a permanent face of what open opens, now and again when it has
// ended: of transports that no URI describes, such as multicast on an
// interface.
func (f *Forwarder) OpenFace(name string, open Opener) (FaceInfo, error) {
	tr, err := open(f.ctx)
	if err != nil {
		return FaceInfo{}, err
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		_ = tr.Close()
		return FaceInfo{}, ErrClosed
	}
	f.wg.Add(1)
	f.mu.Unlock()
	fc, err := f.addFace(newFace{
		tr: tr, uri: tr.Info().RemoteURI, name: name, open: open, persistency: face.PersistencyPermanent,
	})
	if err != nil {
		f.wg.Done()
		_ = tr.Close()
		return FaceInfo{}, err
	}
	go func() {
		defer f.wg.Done()
		f.live(fc, tr, false)
	}()
	return fc.snapshot(f.clock.now()), nil
}

// UpdateFace changes a face and returns how it is now.
func (f *Forwarder) UpdateFace(id ndn.FaceID, u FaceUpdate) (FaceInfo, error) {
	fc := f.lookup(id)
	if fc == nil {
		return FaceInfo{}, fmt.Errorf("%w: %d", ErrNoFace, id)
	}
	if id < FirstFaceID {
		return FaceInfo{}, fmt.Errorf("%w: %d", ErrReservedFace, id)
	}
	if u.MTU != nil {
		if err := checkMTU(*u.MTU); err != nil {
			return FaceInfo{}, err
		}
	}
	if err := fc.update(u); err != nil {
		return FaceInfo{}, err
	}
	return fc.snapshot(f.clock.now()), nil
}

func checkMTU(mtu int) error {
	if mtu != 0 && (mtu < minMTU || mtu > ndn.MaxPacketSize) {
		return fmt.Errorf("%w: %d, must be %d to %d", ErrMTU, mtu, minMTU, ndn.MaxPacketSize)
	}
	return nil
}

// DestroyFace ends a face; its routes and next hops go with it.
func (f *Forwarder) DestroyFace(id ndn.FaceID) error {
	fc := f.lookup(id)
	if fc == nil {
		return fmt.Errorf("%w: %d", ErrNoFace, id)
	}
	if id < FirstFaceID {
		return fmt.Errorf("%w: %d", ErrReservedFace, id)
	}
	if done := f.destroy(fc, ErrDestroyed); done != nil {
		<-done
	}
	return nil
}
