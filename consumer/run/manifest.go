package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"ndnpop/consumer"
	"ndnpop/ndn"
	"ndnpop/ndn/manifest"
	"ndnpop/ndn/verify"
)

// errDigest: a packet is not the one that the manifest means.
var errDigest = errors.New("its content is not what the signed manifest says")

// errNoManifest: there is no manifest to go by, so that the packets' own
// signatures decide.
var errNoManifest = errors.New("no manifest")

// leavesAhead is how many leaves are fetched before their segments are
// verified.
const leavesAhead = 4

// checker decides which packets of one object are believed: by the manifest
// that the metadata names, and by their own signatures where there is none.
// Its methods are called from several goroutines.
type checker struct {
	trust func(context.Context, *ndn.Data) error
	// get fetches the Data of a name.
	get func(context.Context, ndn.Name) ([]byte, error)
	// again gets another copy of a wrong one.
	again func(context.Context, ndn.Name, func(*ndn.Data) error) ([]byte, error)
	ctx   context.Context
	wg    sync.WaitGroup

	// Of the object; set by begin, before its first segment is checked.
	object, roots, leaves ndn.Name
	named                 bool // the metadata names a manifest

	mu      sync.Mutex
	loaded  [2]map[uint64]*part // roots, leaves
	missing bool                // there is no manifest
}

// part is a root or a leaf of the manifest.
type part struct {
	done    chan struct{} // closed when the rest is valid
	layout  manifest.Layout
	digests []byte
	err     error
}

// trusts lets v decide whom to believe, until ctx ends.
func (d *driver) trusts(ctx context.Context, v *verify.Verifier) {
	d.checker = &checker{
		ctx:   ctx,
		trust: func(ctx context.Context, p *ndn.Data) error { return v.Verify(ctx, p, d.ask) },
		get:   d.get,
		again: d.another,
	}
}

// check is output.Config.Check.
func (d *driver) check(a, b *ndn.Data) (errA, errB error) {
	d.mu.Lock()
	o, known := d.f.Object()
	d.mu.Unlock()
	if known {
		d.begun.Do(func() { d.checker.begin(&o) })
	}
	return d.checker.check(a, b)
}

// begin tells what is fetched.
func (c *checker) begin(o *consumer.Object) {
	c.object = o.Name
	c.roots, c.named = o.Manifest, o.Manifest != nil
	if !c.named {
		c.roots = manifest.RootName(nil, o.Name)
	}
	c.leaves = manifest.LeafName(nil, o.Name)
	c.missing = !c.named && !o.HasVersion
	c.loaded = [2]map[uint64]*part{{}, {}}
}

// check says why two packets must not be believed; nil if they may be. b may be
// nil.
func (c *checker) check(a, b *ndn.Data) (errA, errB error) {
	var y, sumA, sumB [manifest.DigestSize]byte
	x, goesA, errA := c.digest(a)
	goesB := false
	if b != nil {
		y, goesB, errB = c.digest(b)
	}
	switch {
	case goesA && goesB:
		sumA, sumB = manifest.Digests(a.Content, b.Content)
	case goesA:
		sumA = sha256.Sum256(a.Content)
	case goesB:
		sumB = sha256.Sum256(b.Content)
	}
	if goesA && sumA != x {
		errA = errDigest
	}
	if goesB && sumB != y {
		errB = errDigest
	}
	return errA, errB
}

// digest is the digest of a packet's content if the manifest decides whether it
// is believed. Otherwise err is why it must not be; nil if it may be.
func (c *checker) digest(d *ndn.Data) (sum [manifest.DigestSize]byte, goes bool, err error) {
	seg, ok := segmentBelow(d.Name, c.object)
	if !ok || !c.named && d.SigType != ndn.SigDigestSha256 {
		return sum, false, c.trust(c.ctx, d)
	}
	sum, err = c.byManifest(d, seg)
	if errors.Is(err, errNoManifest) {
		return sum, false, c.trust(c.ctx, d)
	}
	return sum, err == nil, err
}

// segmentBelow is the segment number in a name, if it is that of a segment of
// object.
func segmentBelow(n, object ndn.Name) (uint64, bool) {
	if object == nil || !n.HasPrefix(object) || len(n) == len(object) {
		return 0, false
	}
	last, rest := n[len(object):].Next()
	if len(rest) > 0 {
		return 0, false
	}
	return last.NumberAs(ndn.TypeSegment)
}

// byManifest is what the manifest says of the content of a packet.
func (c *checker) byManifest(d *ndn.Data, seg uint64) (sum [manifest.DigestSize]byte, err error) {
	first, err := c.root(0)
	if err != nil {
		return sum, err
	}
	l := first.layout
	if final, ok := d.FinalBlockNumber(ndn.TypeSegment); seg > l.Last || ok && final != l.Last {
		return sum, fmt.Errorf("%w: the object ends with segment %d", errDigest, l.Last)
	}
	leaf := seg / l.PerLeaf
	c.ahead(l, leaf)
	p, err := c.leaf(leaf)
	if err != nil {
		return sum, err
	}
	copy(sum[:], p.digests[seg%l.PerLeaf*manifest.DigestSize:])
	return sum, nil
}

// ahead begins to fetch what will be needed after a leaf, roots early because
// their producer has to hash before it signs, and forgets what is no longer
// needed: segments are verified in their order, but for those of one block.
func (c *checker) ahead(l manifest.Layout, leaf uint64) {
	last := min(leaf+leavesAhead, l.LastLeaf())
	c.mu.Lock()
	_, begun := c.loaded[1][last]
	c.mu.Unlock()
	if begun {
		return
	}
	c.load(0, min((leaf+max(l.PerRoot/2, 1))/l.PerRoot, l.LastRoot()), c.fetchRoot)
	for i := leaf; i <= last; i++ {
		c.load(1, i, c.fetchLeaf)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.loaded[1] {
		if i+1 < leaf {
			delete(c.loaded[1], i)
		}
	}
	for i := range c.loaded[0] {
		if i > 0 && i < leaf/l.PerRoot {
			delete(c.loaded[0], i)
		}
	}
}

func (c *checker) root(i uint64) (*part, error) { return c.wait(c.load(0, i, c.fetchRoot)) }
func (c *checker) leaf(i uint64) (*part, error) { return c.wait(c.load(1, i, c.fetchLeaf)) }

// load returns a part that may still be on its way. kind is an index of
// loaded.
func (c *checker) load(kind int, i uint64, fetch func(uint64, *part) error) *part {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.loaded[kind][i]
	if p == nil {
		p = &part{done: make(chan struct{})}
		c.loaded[kind][i] = p
		if c.missing {
			p.err = errNoManifest
			close(p.done)
			return p
		}
		c.wg.Go(func() {
			defer close(p.done)
			if p.err = fetch(i, p); errors.Is(p.err, errNoManifest) {
				c.mu.Lock()
				c.missing = true
				c.mu.Unlock()
			}
		})
	}
	return p
}

func (c *checker) wait(p *part) (*part, error) {
	select {
	case <-p.done:
		return p, p.err
	case <-c.ctx.Done():
		return nil, fmt.Errorf("%w: %w", context.Canceled, context.Cause(c.ctx))
	}
}

// packet fetches and parses one packet of the manifest, and another copy of it
// where check does not accept the first.
func (c *checker) packet(name ndn.Name, d *ndn.Data, check func(*ndn.Data) error) error {
	wire, err := c.get(c.ctx, name)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return fmt.Errorf("%w: %s: %w", errNoManifest, name, err)
	}
	if err = d.Parse(wire); err != nil || !d.Name.Equal(name) {
		err = fmt.Errorf("%w: %s is malformed", errDigest, name)
	} else if err = check(d); err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, verify.ErrFetch) || errors.Is(err, verify.ErrNotAllowed) {
		return err
	}
	if wire, err = c.again(c.ctx, name, check); err != nil {
		return err
	}
	return d.Parse(wire)
}

func (c *checker) fetchRoot(i uint64, p *part) error {
	name := c.roots.Clone().AppendNumber(ndn.TypeSegment, i)
	var d ndn.Data
	err := c.packet(name, &d, func(d *ndn.Data) error { return c.trust(c.ctx, d) })
	switch {
	case errors.Is(err, errNoManifest):
		return err
	case errors.Is(err, verify.ErrNotAllowed):
		// A trust schema may know nothing of manifests.
		return fmt.Errorf("%w: %w", errNoManifest, err)
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return fmt.Errorf("its manifest %s: %w", name, err)
	}
	if p.layout, p.digests, err = manifest.ParseRoot(d.Content, i); err != nil {
		return err
	}
	if i > 0 {
		first, err := c.root(0)
		if err != nil {
			return err
		}
		if p.layout != first.layout {
			return fmt.Errorf("%w: %s and root 0 contradict one another", manifest.ErrRoot, name)
		}
	}
	return nil
}

func (c *checker) fetchLeaf(i uint64, p *part) error {
	first, err := c.root(0)
	if err != nil {
		return err
	}
	l := first.layout
	root, err := c.root(i / l.PerRoot)
	if err != nil {
		return err
	}
	name := c.leaves.Clone().AppendNumber(ndn.TypeSegment, i)
	var d ndn.Data
	_, n := l.Segments(i)
	from, _ := l.Leaves(i / l.PerRoot)
	at := (i - from) * manifest.DigestSize
	if err := c.packet(name, &d, func(d *ndn.Data) error {
		sum := sha256.Sum256(d.Content)
		if string(root.digests[at:at+manifest.DigestSize]) != string(sum[:]) || len(d.Content) != n*manifest.DigestSize {
			return fmt.Errorf("%w: %s", errDigest, name)
		}
		return nil
	}); err != nil {
		return err
	}
	p.digests = d.Content
	return nil
}
