package producer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
)

// Sender takes the responder's answers. wire is one Data, and both arguments
// are valid only during the call.
type Sender interface {
	Send(wire []byte, f *ndn.LpFields)
}

// UnsignedSender is a Sender that signs itself, beside the responder's work.
type UnsignedSender interface {
	Sender
	// SendUnsigned is Send of a Data whose digest is still to be filled in
	// (ndn.FillDigest). wire may be changed.
	SendUnsigned(wire []byte, f *ndn.LpFields)
}

// Defaults of Config.
const (
	// DefaultFreshness is that of ndnputchunks.
	DefaultFreshness = 10 * time.Second
	// DefaultMetadataFreshness is short, as with ndnputchunks: so long may a
	// cache hide a new version.
	DefaultMetadataFreshness = 10 * time.Millisecond
	// DefaultMaxWaiting bounds the Interests for content that is still to come.
	DefaultMaxWaiting = 4096
)

// Config of a Responder. Zero values stand for the defaults above.
type Config struct {
	// Prefix is the served name; the paths of the store follow it.
	Prefix ndn.Name
	// Signer signs every Data; nil stands for ndn.DigestSigner. Segments, if not
	// nil, signs in its place what a manifest vouches for: the segments of
	// objects that have one, and its leaves.
	Signer, Segments ndn.Signer
	// Manifest offers a manifest of the digests of segments, whose roots Signer
	// signs (package manifest), for objects whose size is known from their
	// beginning.
	Manifest bool
	// Freshness of content, MetadataFreshness of metadata and of application
	// Nacks. Negative stands for none.
	Freshness, MetadataFreshness time.Duration
	MaxWaiting                   int
	// Announcement, if not nil, is a prefix announcement (NewAnnouncement) that
	// goes with the Data for Interests that are for discovery: from it the
	// forwarders in between learn the way.
	Announcement []byte
}

// Counters of a Responder.
type Counters struct {
	Interests uint64 // received under the prefix
	Segments  uint64 // Data with content sent
	Bytes     uint64 // of content in them
	Metadata  uint64
	Manifests uint64 // roots and leaves of manifests
	Nacks     uint64 // application Nacks
	Waited    uint64 // Interests that had to wait for content
	Expired   uint64 // of these, those whose lifetime passed
	Refused   uint64 // dropped because too many waited
	Errors    uint64 // content that could not be read or signed
}

// Responder answers Interests from a Store. It is a state machine without
// goroutines or clock: its user calls it from one goroutine at a time.
type Responder struct {
	cfg   Config
	store Store
	out   Sender
	later UnsignedSender // out, if it is one
	sig   int            // bytes of SignatureInfo and SignatureValue, at most

	waiting   waitList
	manifests manifests
	count     Counters

	// Scratch space, so that an answer allocates nothing.
	buf    []byte
	data   ndn.DataFields
	fields ndn.LpFields
	ask    request
	name   ndn.Name
	final  []byte
	meta   []byte
}

// ErrPrefix is returned for a prefix that cannot be served.
var ErrPrefix = errors.New("producer: a served prefix holds generic components, at least one")

// New returns a responder for store that answers through out.
func New(cfg Config, store Store, out Sender) (*Responder, error) {
	if cfg.Signer == nil {
		cfg.Signer = ndn.DigestSigner{}
	}
	if cfg.Segments == nil || !cfg.Manifest {
		cfg.Segments = cfg.Signer
	}
	if cfg.Freshness == 0 {
		cfg.Freshness = DefaultFreshness
	}
	if cfg.MetadataFreshness == 0 {
		cfg.MetadataFreshness = DefaultMetadataFreshness
	}
	if cfg.MaxWaiting <= 0 {
		cfg.MaxWaiting = DefaultMaxWaiting
	}
	if err := CheckPrefix(cfg.Prefix); err != nil {
		return nil, err
	}
	cfg.Prefix = cfg.Prefix.Clone()
	sig := 0
	for _, s := range []ndn.Signer{cfg.Signer, cfg.Segments} {
		n, err := signatureSize(s)
		if err != nil {
			return nil, fmt.Errorf("the signer does not sign: %w", err)
		}
		sig = max(sig, n)
	}
	later, _ := out.(UnsignedSender)
	return &Responder{
		cfg: cfg, store: store, out: out, later: later, sig: sig + sigSlack,
		waiting: waitList{limit: cfg.MaxWaiting},
		buf:     make([]byte, 0, ndn.MaxPacketSize+ndn.MaxPacketSize/8),
	}, nil
}

// CheckPrefix reports whether a prefix can be served: a name of one or more
// generic components, so that what follows it can be told apart.
func CheckPrefix(prefix ndn.Name) error {
	if len(prefix) == 0 {
		return fmt.Errorf("%w: %s has none", ErrPrefix, prefix)
	}
	for n := prefix; len(n) > 0; {
		var c ndn.Component
		if c, n = n.Next(); c.Type != ndn.TypeGeneric {
			return fmt.Errorf("%w: %s in %s is not generic", ErrPrefix, c, prefix)
		}
	}
	return nil
}

// Counters returns what has been counted so far.
func (r *Responder) Counters() Counters { return r.count }

// Waiting is the number of Interests that wait for content.
func (r *Responder) Waiting() int { return r.waiting.len() }

// Receive takes a packet; only Interests are answered. p is a view, valid
// during the call. An error says why content that should be there could not
// be sent; the Interest is then left unanswered.
func (r *Responder) Receive(now ndn.Time, p *ndn.Packet) error {
	if p.Kind != ndn.KindInterest {
		return nil
	}
	name, digest := p.Interest.Name, false
	if _, n, ok := p.Interest.ImplicitDigest(); ok {
		name, digest = n, true
	}
	if !name.HasPrefix(r.cfg.Prefix) {
		return nil
	}
	r.count.Interests++
	r.ask = request{
		now: now, lifetime: p.Interest.Lifetime, name: name,
		canBePrefix: p.Interest.CanBePrefix, digest: digest, discovers: !p.NonDiscovery,
	}
	r.header(p.PitToken, r.ask.discovers)
	return r.handle(&r.ask)
}

// Announce replaces Config.Announcement, whose time may run out.
func (r *Responder) Announce(announcement []byte) { r.cfg.Announcement = announcement }

// header makes the link header of the answer to an Interest.
func (r *Responder) header(token []byte, discovers bool) {
	r.fields = ndn.LpFields{PitToken: token}
	if discovers {
		r.fields.Announcement = r.cfg.Announcement
	}
}

// request is one Interest while it is answered.
type request struct {
	now         ndn.Time
	lifetime    time.Duration
	name        ndn.Name // without an implicit digest
	canBePrefix bool
	digest      bool // there was an implicit digest
	discovers   bool // the way may be announced

	again   bool // it has waited
	blocked bool // and has to go on waiting
}

func (r *Responder) handle(a *request) error {
	q := parseQuery(a.name, len(r.cfg.Prefix))
	if err := r.answer(a, &q); err != nil {
		return r.refuse(a, err)
	}
	return nil
}

// refuse tells the consumer that err is why there is no answer, if that is
// final.
func (r *Responder) refuse(a *request, err error) error {
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrChanged):
		return r.nack(a)
	}
	r.count.Errors++
	return err
}

func (r *Responder) answer(a *request, q *query) error {
	// A name that lacks components can only be answered by longer ones.
	prefix := a.canBePrefix && !a.digest
	switch q.kind {
	case askSegment:
		obj, err := r.store.At(q.path, q.version)
		if err != nil {
			return err
		}
		return r.segment(a, obj, a.name, q.segment)
	case askMetadata:
		if !prefix {
			// As ndnputchunks, except that there is no Data to Nack it with: one
			// of this very name would answer others' discovery.
			return nil
		}
		return r.latest(q, func(obj Object) error { return r.metadata(q, obj, stageNow) })
	case askRoot, askLeaf:
		obj, err := r.store.At(q.path, q.version)
		if err != nil {
			return err
		}
		return r.manifest(a, q, obj)
	case askMetaVer, askMetaSeg:
		if (q.kind == askMetaVer && !prefix) || (q.kind == askMetaSeg && q.segment != 0) {
			return ErrNotFound
		}
		return r.oldMetadata(q)
	case askObject, askVersion:
		if !prefix {
			return ErrNotFound
		}
		first := func(obj Object) error {
			r.name = r.versioned(r.name, q, obj).AppendNumber(ndn.TypeSegment, 0)
			return r.segment(a, obj, r.name, 0)
		}
		if q.kind == askObject {
			return r.latest(q, first)
		}
		obj, err := r.store.At(q.path, q.version)
		if err != nil {
			return err
		}
		return first(obj)
	}
	return ErrNotFound
}

// latest calls f with the newest version, again if that changes meanwhile.
func (r *Responder) latest(q *query, f func(Object) error) error {
	err := ErrChanged
	for try := 0; try < 3 && errors.Is(err, ErrChanged); try++ {
		var obj Object
		if obj, err = r.store.Latest(q.path); err != nil {
			continue
		}
		err = f(obj)
	}
	if errors.Is(err, ErrChanged) {
		// There is something, but not what to say of it. The consumer asks again.
		return errRestless
	}
	return err
}

var errRestless = errors.New("producer: the content changes while it is read")

// versioned writes the name of an object's version into b.
func (r *Responder) versioned(b ndn.Name, q *query, obj Object) ndn.Name {
	b = append(b[:0], q.object...)
	if !q.path.Listing && obj.Attributes().Listing {
		b = append(ndn.AppendTL(b, ndn.TypeKeyword, len(keywordListing)), keywordListing...)
	}
	return b.AppendNumber(ndn.TypeVersion, obj.Version())
}

// segment sends segment n of obj under name, or lets the Interest wait for it.
func (r *Responder) segment(a *request, obj Object, name ndn.Name, n uint64) error {
	size, final := obj.Size()
	ss := uint64(obj.SegmentSize())
	if final && n >= SegmentCount(size, int(ss)) {
		return ErrNotFound
	}
	// The last whole segment is held back until more follows: without its
	// FinalBlockId nothing would tell where the end is.
	if !final && (size == 0 || n >= (size-1)/ss) {
		r.wait(a, n)
		return nil
	}
	length := min(ss, size-n*ss)
	r.data = ndn.DataFields{Name: name, Freshness: r.cfg.Freshness}
	if final {
		r.final = ndn.AppendNatTLV(r.final[:0], ndn.TypeSegment, SegmentCount(size, int(ss))-1)
		r.data.FinalBlock = r.final
	}
	b, content := ndn.BeginData(r.buf[:0], &r.data, int(length))
	if length > 0 {
		if err := obj.ReadAt(content, n*ss); err != nil {
			return err
		}
	}
	signer := r.cfg.Signer
	if r.cfg.Manifest {
		if _, ok := r.layout(obj, name[:len(name)-ndn.TLVSize(ndn.TypeSegment, ndn.NatSize(n))]); ok {
			signer = r.cfg.Segments
		}
	}
	if err := r.send(b, signer); err != nil {
		return err
	}
	r.count.Segments++
	r.count.Bytes += length
	return nil
}

// ErrTooLarge says that a name leaves too little room in a packet.
var ErrTooLarge = errors.New("producer: the packet would be too large")

// send signs and sends the Data that begins r.buf.
func (r *Responder) send(b []byte, by ndn.Signer) error {
	_, unsigned := by.(ndn.DigestSigner)
	if unsigned = unsigned && r.later != nil; unsigned {
		by = ndn.DigestLater{}
	}
	b, err := ndn.EndData(b, 0, by)
	r.buf = b[:0]
	if err != nil {
		return fmt.Errorf("signing %s: %w", r.data.Name, err)
	}
	if len(b) > ndn.MaxPacketSize-LinkRoom {
		return fmt.Errorf("%w: %s takes %d bytes", ErrTooLarge, r.data.Name, len(b))
	}
	if unsigned {
		r.later.SendUnsigned(b, &r.fields)
	} else {
		r.out.Send(b, &r.fields)
	}
	return nil
}

// nack tells that no such content exists. Under an implicit digest nothing
// can be told.
func (r *Responder) nack(a *request) error {
	if a.digest {
		return nil
	}
	r.data = ndn.DataFields{Name: a.name, ContentType: ndn.ContentNack, Freshness: r.cfg.MetadataFreshness}
	b, _ := ndn.BeginData(r.buf[:0], &r.data, 0)
	if err := r.send(b, r.cfg.Signer); err != nil {
		r.count.Errors++
		return err
	}
	r.count.Nacks++
	return nil
}

// oldMetadata answers for a metadata packet that was issued before.
func (r *Responder) oldMetadata(q *query) error {
	for stage := uint64(0); stage <= stageFinal && stage <= q.version; stage++ {
		obj, err := r.store.At(q.path, q.version-stage)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return err
		case stage == 0 || obj.Attributes().Growing:
			return r.metadata(q, obj, stage)
		}
	}
	return ErrNotFound
}

// stageNow stands for the stage that an object has reached.
const stageNow = ^uint64(0)

// metadata sends the metadata of obj as of a stage.
func (r *Responder) metadata(q *query, obj Object, stage uint64) error {
	m := describe(obj)
	r.name = r.versioned(r.name, q, obj)
	versionedLen := len(r.name)
	// The name of the metadata packet follows the object's in one buffer.
	r.name = append(r.name, q.object...)
	r.name = append(ndn.AppendTL(r.name, ndn.TypeKeyword, len(keywordMetadata)), keywordMetadata...)
	prefixLen := len(r.name)

	withManifest := false
	room := func() int {
		r.meta = m.appendFixed(r.meta[:0], r.name[:versionedLen])
		if withManifest {
			r.meta = appendManifestName(r.meta, r.name[:versionedLen])
		}
		return ndn.MaxPacketSize - LinkRoom - r.sig - // packet and signature
			12 - (prefixLen - versionedLen) - 10 - 3 - // headers, name, version, segment
			2 - 6 - 5 - // MetaInfo with FinalBlockId
			len(r.meta) - 6 - hashSize
	}
	left := room()
	if _, ok := r.layout(obj, r.name[:versionedLen]); ok && m.size > uint64(max(left, 0)) {
		withManifest = true
		if left = room(); left < 0 {
			withManifest = false
			left = room()
		}
	}
	at := m.stage(left)
	if stage != stageNow && stage != at {
		if stage > at {
			return ErrNotFound
		}
		at = stage
		m.at(at)
		if left = room(); at == stageStart && m.stage(left) != stageStart {
			return ErrNotFound // the end came before there was enough
		}
	}
	if err := r.appendStart(&m, m.start(at, left)); err != nil {
		return err
	}
	r.name = r.name.AppendNumber(ndn.TypeVersion, obj.Version()+at).AppendNumber(ndn.TypeSegment, 0)
	r.final = ndn.AppendNatTLV(r.final[:0], ndn.TypeSegment, 0)
	r.data = ndn.DataFields{
		Name: r.name[versionedLen:], Freshness: r.cfg.MetadataFreshness, FinalBlock: r.final,
	}
	b, content := ndn.BeginData(r.buf[:0], &r.data, len(r.meta))
	copy(content, r.meta)
	if err := r.send(b, r.cfg.Signer); err != nil {
		return err
	}
	r.count.Metadata++
	return nil
}

// appendStart appends the first n bytes of the content and, when it is known
// or that is all there is, the hash of the whole.
func (r *Responder) appendStart(m *metadataOf, n int) error {
	if n > 0 {
		at := len(r.meta)
		r.meta = ndn.AppendTL(r.meta, TypeContentStart, n)
		head := len(r.meta)
		for len(r.meta)-head < n {
			r.meta = append(r.meta, 0)
		}
		if err := m.obj.ReadAt(r.meta[head:], 0); err != nil {
			r.meta = r.meta[:at]
			return err
		}
	}
	if sum := m.attr.SHA256; sum != nil {
		r.meta = m.appendHash(r.meta, sum)
	} else if m.final && uint64(n) == m.size {
		sum := sha256.Sum256(r.meta[len(r.meta)-n:])
		r.meta = m.appendHash(r.meta, &sum)
	}
	return nil
}

// Grown tells the responder that the growing object of its store has more
// content, or its end, and answers the Interests that waited for it, in order
// of their segments. Errors are joined; the Interests concerned stay
// unanswered.
func (r *Responder) Grown(now ndn.Time) error {
	var errs []error
	for w := r.waiting.min(); w != nil; w = r.waiting.min() {
		if w.expires <= now {
			r.waiting.pop()
			r.count.Expired++
			continue
		}
		r.header(w.token, w.discovers)
		a := request{now: now, name: w.name, canBePrefix: w.canBePrefix, digest: w.digest, again: true}
		err := r.handle(&a)
		if a.blocked {
			break
		}
		r.waiting.pop()
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// wait keeps an Interest until segment n exists.
func (r *Responder) wait(a *request, n uint64) {
	if a.again {
		a.blocked = true
		return
	}
	added, instead := r.waiting.add(a, n, r.fields.PitToken)
	if added {
		r.count.Waited++
	}
	if !added || instead {
		r.count.Refused++
	}
}

// Deadline is when Tick is due.
func (r *Responder) Deadline() ndn.Time { return min(r.waiting.deadline(), r.manifests.due()) }

// Tick forgets the Interests whose lifetime has passed, and goes on with
// manifests that somebody waits for.
func (r *Responder) Tick(now ndn.Time) {
	r.count.Expired += uint64(r.waiting.expire(now))
	r.hashSome(now)
}
