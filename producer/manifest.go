package producer

import (
	"crypto/sha256"
	"slices"

	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
)

// Bounds of what manifests take.
const (
	// manifestPerLeaf and manifestPerRoot are how many digests a leaf and a
	// root hold where names leave room for them: a signature covers 3,840
	// segments, 30 MB at 8000 bytes, which are hashed before it is made.
	manifestPerLeaf = 240
	manifestPerRoot = 16
	// maxHashed is how many roots' digests are kept, 123 kB each.
	maxHashed = 16
	// maxAsking is how many Interests may wait for digests.
	maxAsking = 256
	// hashStep is how many segments are hashed at a time: some 200 µs, for
	// which other Interests have to wait.
	hashStep = 32
)

// hashed are the digests of the segments that a root covers, as far as they
// have been computed.
type hashed struct {
	object  ndn.Name // with its version
	root    uint64
	first   uint64 // segment
	digests []byte // its capacity is that of all
}

// complete reports whether all digests have been computed.
func (h *hashed) complete() bool { return len(h.digests) == cap(h.digests) }

// asked is an Interest that waits for digests. It owns its bytes.
type asked struct {
	name    ndn.Name
	token   []byte
	expires ndn.Time
}

// manifests is the state of the manifests that a Responder makes. Hashing is
// done in steps, by Tick, so that other Interests are answered meanwhile; the
// digests of the latest roots are kept, so that memory does not grow with the
// object.
type manifests struct {
	kept []*hashed // the latest last
	asks []asked
	buf  []byte // scratch
}

// layout is the layout of an object's manifest; ok is false when it has none:
// its end is not known, it is one segment, or its name leaves no room.
func (r *Responder) layout(obj Object, versioned ndn.Name) (l manifest.Layout, ok bool) {
	size, final := obj.Size()
	if !r.cfg.Manifest || !final || obj.Attributes().Growing {
		return l, false
	}
	const headers = 3*4 + // Data, Name, Content
		2 + 2 + 8 + // MetaInfo, FreshnessPeriod
		2 + len(manifest.KeywordRoot) + 2 + 8 +
		3*(3+1+8) + 3 + 3 // a root's elements
	room := (ndn.MaxPacketSize - LinkRoom - len(versioned) - headers - r.sig) / manifest.DigestSize
	n := SegmentCount(size, obj.SegmentSize())
	if n < 2 || room < 1 {
		return l, false
	}
	return manifest.Layout{
		Last: n - 1, PerLeaf: uint64(min(manifestPerLeaf, room)), PerRoot: uint64(min(manifestPerRoot, room)),
	}, true
}

// manifest answers for a root or a leaf, now or when its digests are there.
func (r *Responder) manifest(a *request, q *query, obj Object) error {
	h, l, err := r.hashedFor(q, obj)
	if err != nil {
		return err
	}
	m := &r.manifests
	if !h.complete() {
		if !a.again && !m.wait(a, r.fields.PitToken) {
			r.count.Refused++
		}
		a.blocked = true
		return nil
	}
	first, leaves := l.Leaves(h.root)
	leaf := func(i uint64) []byte {
		from, n := l.Segments(i)
		start, _ := l.Segments(first)
		return h.digests[(from-start)*manifest.DigestSize:][:n*manifest.DigestSize]
	}
	content, signer := []byte(nil), r.cfg.Segments
	if q.kind == askLeaf {
		content = leaf(q.segment)
	} else {
		sums := make([]byte, 0, leaves*manifest.DigestSize)
		for i := range uint64(leaves) {
			sum := sha256.Sum256(leaf(first + i))
			sums = append(sums, sum[:]...)
		}
		m.buf = l.AppendRoot(m.buf[:0], sums)
		content, signer = m.buf, r.cfg.Signer
	}
	r.data = ndn.DataFields{Name: a.name, Freshness: r.cfg.Freshness}
	b, to := ndn.BeginData(r.buf[:0], &r.data, len(content))
	copy(to, content)
	if err := r.send(b, signer); err != nil {
		return err
	}
	r.count.Manifests++
	return nil
}

// hashedFor finds the digests that the answer for q needs, perhaps none of
// them computed yet. ErrNotFound: there is no such part of a manifest.
func (r *Responder) hashedFor(q *query, obj Object) (*hashed, manifest.Layout, error) {
	l, ok := r.layout(obj, q.versioned)
	if !ok || q.kind == askLeaf && q.segment > l.LastLeaf() {
		return nil, l, ErrNotFound
	}
	root := q.segment
	if q.kind == askLeaf {
		root /= l.PerRoot
	}
	first, leaves := l.Leaves(root)
	if leaves == 0 {
		return nil, l, ErrNotFound
	}
	m := &r.manifests
	at := slices.IndexFunc(m.kept, func(h *hashed) bool { return h.root == root && h.object.Equal(q.versioned) })
	if at >= 0 {
		h := m.kept[at]
		m.kept = append(slices.Delete(m.kept, at, at+1), h)
		return h, l, nil
	}
	if len(m.kept) == maxHashed {
		m.kept = slices.Delete(m.kept, 0, 1)
	}
	from, _ := l.Segments(first)
	to, n := l.Segments(first + uint64(leaves) - 1)
	h := &hashed{
		object: q.versioned.Clone(), root: root, first: from,
		digests: make([]byte, 0, (int(to-from)+n)*manifest.DigestSize),
	}
	m.kept = append(m.kept, h)
	return h, l, nil
}

// wait keeps an Interest until its digests are computed. A repeated one
// replaces its predecessor.
func (m *manifests) wait(a *request, token []byte) bool {
	at := slices.IndexFunc(m.asks, func(x asked) bool { return x.name.Equal(a.name) })
	if at < 0 {
		if len(m.asks) == maxAsking {
			return false
		}
		at = len(m.asks)
		m.asks = append(m.asks, asked{name: a.name.Clone()})
	}
	m.asks[at].token = append(m.asks[at].token[:0], token...)
	m.asks[at].expires = a.now.Add(a.lifetime)
	return true
}

// due is when hashSome wants to be called: at once, while anybody waits.
func (m *manifests) due() ndn.Time {
	if len(m.asks) == 0 {
		return ndn.Never
	}
	return 1
}

// hashSome computes some of the digests that the first of the waiting
// Interests needs, and answers those that have what they need.
func (r *Responder) hashSome(now ndn.Time) {
	m := &r.manifests
	for len(m.asks) > 0 && m.asks[0].expires <= now {
		m.asks = slices.Delete(m.asks, 0, 1)
		r.count.Expired++
	}
	if len(m.asks) == 0 {
		return
	}
	q := parseQuery(m.asks[0].name, len(r.cfg.Prefix))
	obj, err := r.store.At(q.path, q.version)
	if err == nil {
		var h *hashed
		if h, _, err = r.hashedFor(&q, obj); err == nil {
			if err = m.hash(h, obj); err == nil && !h.complete() {
				return
			}
		}
	}
	asks := m.asks
	m.asks = nil
	for i := range asks {
		w := &asks[i]
		a := request{now: now, name: w.name, again: true}
		r.fields = ndn.LpFields{PitToken: w.token}
		if i == 0 && err != nil {
			r.refuse(&a, err)
		} else {
			r.handle(&a)
		}
		if a.blocked {
			m.asks = append(m.asks, *w)
		}
	}
}

// hash computes the next few digests, two at a time.
func (m *manifests) hash(h *hashed, obj Object) error {
	ss := uint64(obj.SegmentSize())
	size, _ := obj.Size()
	for range hashStep / 2 {
		left := (cap(h.digests) - len(h.digests)) / manifest.DigestSize
		if left == 0 {
			break
		}
		at := (h.first + uint64(len(h.digests)/manifest.DigestSize)) * ss
		n := min(uint64(min(left, 2))*ss, size-at)
		m.buf = slices.Grow(m.buf[:0], int(2*ss))[:n]
		if err := obj.ReadAt(m.buf, at); err != nil {
			return err
		}
		if left == 1 {
			sum := sha256.Sum256(m.buf)
			h.digests = append(h.digests, sum[:]...)
			break
		}
		x, y := manifest.Digests(m.buf[:ss], m.buf[ss:])
		h.digests = append(append(h.digests, x[:]...), y[:]...)
	}
	return nil
}
