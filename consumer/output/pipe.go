// Package output takes a fetch's content from the fetch core, verifies it,
// and writes it: to a stream, or to a file through a part file that an
// interrupted fetch can go on with.
//
// A Pipe is the core's sink. It copies each piece into recycled blocks, which
// a goroutine of its own verifies and writes, so that neither hashing nor a
// slow disk or reader delays the arrival of packets and the measuring of
// round-trip times.
package output

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"runtime"
	"sync"
	"sync/atomic"

	"ndnpop/consumer"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// ErrVerify is wrapped by the errors of content that is not what it should be.
var ErrVerify = errors.New("verification failed")

// PacketError is a packet that must not be believed. It Is ErrVerify.
type PacketError struct {
	Name ndn.Name
	Err  error // why
}

func (e *PacketError) Error() string { return fmt.Sprintf("%v: %s: %v", ErrVerify, e.Name, e.Err) }

func (e *PacketError) Unwrap() error { return e.Err }

// errDigest: the DigestSha256 signature does not fit the packet.
var errDigest = errors.New("its digest is wrong")

// Is makes the error an ErrVerify, and one of a packet of which another copy may
// be right, unless it is a certificate that is missing.
func (e *PacketError) Is(target error) bool {
	return target == ErrVerify || target == consumer.ErrWrong && !errors.Is(e.Err, verify.ErrFetch)
}

// Verify says what is verified of each Data packet.
type Verify uint8

// Verification of Data packets.
const (
	VerifyNone Verify = iota
	// VerifyDigest checks DigestSha256 signatures. Packets with other
	// signatures pass, and the result says that not all was verified.
	VerifyDigest
	// VerifyTrust leaves it to Config.Check.
	VerifyTrust
)

// Target is where content goes. Its methods are called by one goroutine at a
// time: Open first, then Write, and at the end one of Commit and Abort.
type Target interface {
	// Open is told what is fetched, and says where the fetch is to begin.
	Open(*consumer.Object) (consumer.Resume, error)
	// Write appends p, after which the fetch would go on at then.
	Write(p []byte, then consumer.Resume) error
	// Commit: everything has been written and verified.
	Commit() error
	// Abort: the fetch failed or was interrupted; what was written is right as
	// far as it goes unless err Is ErrVerify.
	Abort(err error) error
}

// Config of a Pipe.
type Config struct {
	Verify Verify
	// Check verifies two packets for VerifyTrust, or one, if b is nil. It is
	// called from several goroutines and may take its time, for instance to fetch
	// certificates.
	// OnMetadata, called from the Pipe's goroutine, gets the verdict on each packet that
	// Metadata put off.
	Check      func(a, b *ndn.Data) (errA, errB error)
	OnMetadata func(error)
	// Again, if not nil, gets another copy of a packet that is wrong. It asks
	// until check says nil of what came, and gives up after a while with the
	// latest reason. It is called from several goroutines and may take its time.
	Again func(name ndn.Name, check func(*ndn.Data) error) (wire []byte, err error)
	// Sum hashes the whole content; Want, if not nil, is what the hash has to
	// be, and implies Sum. A hash that the producer states in the metadata
	// implies it as well, and is compared too.
	Sum  bool
	Want []byte
	// Backlog bounds the bytes that wait to be written; 0 is 8 MiB.
	Backlog int
	// OnRoom, if not nil, is called from the Pipe's goroutine when there is
	// room again after Ready returned false, and OnError when it failed.
	OnRoom  func()
	OnError func(error)
}

const (
	blockSize      = 256 << 10
	defaultBacklog = 8 << 20
)

// item is one piece in a block.
type item struct {
	at, n int // the packet, or with nothing to verify the content alone
	head  int // content bytes of the packet to skip
	size  int // content bytes wanted
	bare  bool
	// again is the packet that took the place of a wrong one, nil for none.
	again []byte
}

type block struct {
	buf   []byte
	items []item
	then  consumer.Resume
}

// Pipe is a consumer.Sink that writes to a Target.
type Pipe struct {
	cfg    Config
	to     Target
	prefix hash.Hash
	sum    hash.Hash // nil when nobody asks for it
	obj    consumer.Object

	mu      sync.Mutex
	wake    sync.Cond
	full    []*block // the last may still grow
	free    []*block
	backlog int
	starved bool // Ready returned false
	ended   bool // no more pieces
	kicked  bool
	err     error
	meta    []byte // a metadata packet to verify, nil if none
	busy    bool   // the goroutine works
	idle    sync.Cond
	done    chan struct{}

	unverified atomic.Bool // some packet has a signature that was not checked
	repaired   atomic.Uint64
	views      [2]ndn.Data
	// What verified packets say of the object's end, and where the content
	// now ends.
	final    uint64
	hasFinal bool
	end      consumer.Resume
}

// NewPipe makes a Pipe and starts its goroutine, which Close ends. prefix is
// the content that to already holds when a fetch is resumed and the whole
// content is hashed: a hash state to go on with, nil for none.
func NewPipe(cfg Config, to Target, prefix hash.Hash) *Pipe {
	if cfg.Backlog <= 0 {
		cfg.Backlog = defaultBacklog
	}
	p := &Pipe{cfg: cfg, to: to, prefix: prefix, done: make(chan struct{})}
	p.wake.L, p.idle.L = &p.mu, &p.mu
	if cfg.Sum || cfg.Want != nil {
		p.startSum()
	}
	go p.work()
	return p
}

func (p *Pipe) startSum() {
	if p.sum = p.prefix; p.sum == nil {
		p.sum = sha256.New()
	}
}

// Metadata implements consumer.Sink.
func (p *Pipe) Metadata(d *ndn.Data) error {
	switch p.cfg.Verify {
	case VerifyNone:
		return nil
	case VerifyTrust:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.meta = append([]byte(nil), d.Wire...)
		p.wake.Signal()
		return consumer.ErrLater
	default:
		return p.verify(d)
	}
}

// Object implements consumer.Sink.
func (p *Pipe) Object(o *consumer.Object) (consumer.Resume, error) {
	p.obj = *o
	if o.HasFinal {
		p.mu.Lock()
		p.final, p.hasFinal = o.Final, true
		p.mu.Unlock()
	}
	res, err := p.to.Open(o)
	if p.sum == nil && o.Sha256 != nil && (p.prefix != nil || res == (consumer.Resume{})) {
		p.startSum()
	}
	return res, err
}

// Ready implements consumer.Sink.
func (p *Pipe) Ready() bool {
	p.mu.Lock()
	ok := p.backlog < p.cfg.Backlog
	p.starved = p.starved || !ok
	p.mu.Unlock()
	return ok
}

// Deliver implements consumer.Sink.
func (p *Pipe) Deliver(pc *consumer.Piece) {
	src, it := pc.Content, item{n: len(pc.Content), size: len(pc.Content), bare: true}
	if p.cfg.Verify != VerifyNone && pc.Wire != nil {
		src = pc.Wire
		it = item{n: len(pc.Wire), head: pc.Head, size: len(pc.Content)}
	}
	p.mu.Lock()
	b := p.room(len(src))
	it.at = len(b.buf)
	b.buf = append(b.buf, src...)
	b.items = append(b.items, it)
	b.then = pc.Then
	p.backlog += len(src)
	p.mu.Unlock()
}

// room returns the block that takes n more bytes.
func (p *Pipe) room(n int) *block {
	if k := len(p.full); k > 0 {
		if b := p.full[k-1]; len(b.buf)+n <= cap(b.buf) {
			return b
		}
	}
	var b *block
	if k := len(p.free); k > 0 {
		b, p.free = p.free[k-1], p.free[:k-1]
	} else {
		b = &block{buf: make([]byte, 0, max(blockSize, n))}
	}
	p.full = append(p.full, b)
	return b
}

// Kick lets the goroutine take what was delivered. The driver calls it when
// nothing more is at hand.
func (p *Pipe) Kick() {
	p.mu.Lock()
	if len(p.full) > 0 && !p.kicked {
		p.kicked = true
		p.wake.Signal()
	}
	p.mu.Unlock()
}

// work is the Pipe's goroutine: it verifies and writes block after block.
func (p *Pipe) work() {
	defer close(p.done)
	var batch []*block
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for !p.kicked && !p.ended && p.meta == nil {
			p.busy = false
			p.idle.Broadcast()
			p.wake.Wait()
		}
		p.busy = true
		if p.meta != nil {
			p.judge()
			continue
		}
		if len(p.full) == 0 && p.ended {
			return
		}
		batch, p.full = p.full, batch[:0]
		p.kicked = false
		for i, b := range batch {
			size := len(b.buf)
			if p.err == nil {
				p.mu.Unlock()
				err := p.write(b)
				p.mu.Lock()
				if err != nil {
					p.fail(err)
				}
			}
			b.buf, b.items = b.buf[:0], b.items[:0]
			p.free = append(p.free, b)
			batch[i] = nil
			p.backlog -= size
			if p.starved && p.backlog <= p.cfg.Backlog/2 {
				p.starved = false
				p.unlocked(p.cfg.OnRoom)
			}
		}
	}
}

// judge verifies the metadata packet that waits.
func (p *Pipe) judge() {
	wire := p.meta
	p.meta = nil
	if p.ended {
		return
	}
	p.unlocked(func() {
		var d ndn.Data
		err := d.Parse(wire)
		if err == nil {
			err = p.verify(&d)
		}
		if p.cfg.OnMetadata != nil {
			p.cfg.OnMetadata(err)
		}
	})
}

// Settle waits until everything that was delivered has been verified and
// written, or anything failed.
func (p *Pipe) Settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.full) > 0 {
		p.kicked = true
		p.wake.Signal()
	}
	for p.err == nil && !p.ended && (p.busy || p.kicked || p.meta != nil || len(p.full) > 0) {
		p.idle.Wait()
	}
}

func (p *Pipe) unlocked(f func()) {
	if f != nil {
		p.mu.Unlock()
		f()
		p.mu.Lock()
	}
}

func (p *Pipe) fail(err error) {
	p.err = err
	p.idle.Broadcast()
	if p.cfg.OnError != nil {
		p.unlocked(func() { p.cfg.OnError(err) })
	}
}

// write verifies a block, moves its content together and writes it.
func (p *Pipe) write(b *block) error {
	if p.cfg.Verify == VerifyTrust || !p.digests(b.items, b.buf) {
		if err := p.verifyAll(b.items, b.buf); err != nil {
			return err
		}
	}
	n := 0
	for _, it := range b.items {
		w := b.buf[it.at : it.at+it.n]
		if !it.bare {
			if it.again != nil {
				w = it.again
			}
			d := &p.views[0]
			if err := d.Parse(w); err != nil {
				return fmt.Errorf("output: %w", err)
			}
			if n, ok := d.FinalBlockNumber(ndn.TypeSegment); ok {
				p.final, p.hasFinal = n, true
			}
			w = d.Content[it.head : it.head+it.size]
		}
		n += copy(b.buf[n:], w)
	}
	if p.sum != nil {
		p.sum.Write(b.buf[:n])
	}
	p.end = b.then
	return p.to.Write(b.buf[:n], b.then)
}

// digests reports whether the digests of all packets of a block are right. It
// checks two at a time.
func (p *Pipe) digests(items []item, buf []byte) bool {
	first := false // views[0] is to be checked
	for _, it := range items {
		if it.bare {
			continue
		}
		d := &p.views[0]
		if first {
			d = &p.views[1]
		}
		if d.Parse(buf[it.at:it.at+it.n]) != nil {
			return false
		}
		if d.SigType != ndn.SigDigestSha256 {
			p.unverified.Store(true)
			continue
		}
		if first = !first; first {
			continue
		}
		if a, b := ndn.VerifyDigests(&p.views[0], &p.views[1]); !a || !b {
			return false
		}
	}
	return !first || p.views[0].VerifyDigest()
}

// verifyAll verifies the packets of a block on all processors: signatures of
// public keys take longer than anything else of a fetch. The first bad packet
// in the order of the content is the one that is told. Of wrong packets other
// copies are asked for, of all of them at once.
func (p *Pipe) verifyAll(items []item, buf []byte) error {
	errs := make([]error, len(items))
	var next atomic.Int64
	one := func() {
		var d [2]ndn.Data
		for {
			i := int(next.Add(2)) - 2
			if i >= len(items) {
				return
			}
			var of [2]int
			n := 0
			end := min(i+2, len(items))
			for k, it := range items[i:end] {
				if it.bare {
					continue
				}
				if errs[i+k] = d[n].Parse(buf[it.at : it.at+it.n]); errs[i+k] == nil {
					of[n] = i + k
					n++
				}
			}
			switch n {
			case 1:
				errs[of[0]] = p.verify(&d[0])
			case 2:
				errs[of[0]], errs[of[1]] = p.verifyTwo(&d[0], &d[1])
			}
			for _, err := range errs[i:end] {
				if err != nil && (p.cfg.Again == nil || !errors.Is(err, consumer.ErrWrong)) {
					next.Store(int64(len(items))) // the rest does not matter
				}
			}
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(items)) - 1 {
		wg.Go(one)
	}
	one()
	wg.Wait()
	if p.cfg.Again != nil {
		for i, err := range errs {
			if errors.Is(err, consumer.ErrWrong) {
				wg.Go(func() { errs[i] = p.repair(&items[i], buf, err) })
			}
		}
		wg.Wait()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// repair gets another copy in the place of a packet that is wrong for a reason.
// The fetch has gone by the end of the object in that packet, and by how much
// there was in it: a copy that says otherwise comes too late.
func (p *Pipe) repair(it *item, buf []byte, why error) error {
	var bad ndn.Data
	if err := bad.Parse(buf[it.at : it.at+it.n]); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	wire, err := p.cfg.Again(bad.Name, p.verify)
	if errors.Is(err, context.Canceled) {
		return err
	}
	var good ndn.Data
	if err == nil {
		err = good.Parse(wire)
	}
	if err == nil && (len(good.Content) != len(bad.Content) || bad.FinalBlock != nil && !bytes.Equal(good.FinalBlock, bad.FinalBlock)) {
		return why
	}
	var another *PacketError
	switch {
	case errors.As(err, &another):
		return &PacketError{bad.Name.Clone(), fmt.Errorf("%w, and so in every copy that was asked for", another.Err)}
	case err != nil:
		var first *PacketError
		if errors.As(why, &first) {
			why = first.Err
		}
		return &PacketError{bad.Name.Clone(), fmt.Errorf("%w, and there is no other copy: %w", why, err)}
	}
	p.repaired.Add(1)
	it.again = wire
	return nil
}

// verify checks one packet. A digest check leaves other signatures alone and
// remembers that.
func (p *Pipe) verify(d *ndn.Data) error {
	switch {
	case p.cfg.Verify == VerifyTrust:
		err, _ := p.cfg.Check(d, nil)
		return blame(d, err)
	case d.SigType != ndn.SigDigestSha256:
		p.unverified.Store(true)
	case !d.VerifyDigest():
		return &PacketError{d.Name.Clone(), errDigest}
	}
	return nil
}

func (p *Pipe) verifyTwo(a, b *ndn.Data) (errA, errB error) {
	if p.cfg.Verify != VerifyTrust {
		return p.verify(a), p.verify(b)
	}
	errA, errB = p.cfg.Check(a, b)
	return blame(a, errA), blame(b, errB)
}

// blame says of which packet an error is, unless it is not the packet's fault.
func blame(d *ndn.Data, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &PacketError{d.Name.Clone(), err}
}

// Result is what became of the content.
type Result struct {
	// Sha256 of the whole content (of the fetched range), nil when it was not
	// computed.
	Sha256 []byte
	// Verified: every packet's signature was checked, or the hash of the whole
	// is the wanted one.
	Verified bool
	// Repaired is the number of packets that were wrong and of which another
	// copy was right.
	Repaired uint64
}

// Ended tells what the fetch took for the end of the object. It is called
// before Close.
func (p *Pipe) Ended(o *consumer.Object) { p.obj.Final, p.obj.HasFinal = o.Final, o.HasFinal }

// Close waits until everything delivered has been written, and commits, or
// aborts when cause is not nil or anything went wrong; the first error is
// returned (cause itself if there is no other). whole says that the content
// is the object from its first byte to its last, so that the producer's hash
// applies. Nothing may be delivered any more.
func (p *Pipe) Close(cause error, whole bool) (Result, error) {
	p.mu.Lock()
	p.ended = true
	p.wake.Signal()
	p.mu.Unlock()
	<-p.done
	err := p.err
	if err == nil || cause != nil && errors.Is(err, context.Canceled) {
		err = cause
	}
	var r Result
	if p.sum != nil {
		r.Sha256 = p.sum.Sum(nil)
	}
	r.Repaired = p.repaired.Load()
	r.Verified = p.cfg.Verify != VerifyNone && !p.unverified.Load()
	if err == nil {
		err = p.compare(&r, whole)
	}
	if err != nil {
		r.Verified = false
		if e := p.to.Abort(err); e != nil {
			err = fmt.Errorf("%w (and %w)", err, e)
		}
		return r, err
	}
	return r, p.to.Commit()
}

func (p *Pipe) compare(r *Result, whole bool) error {
	// The fetch takes the end of the object from any packet that arrives, also
	// from a forged one that lies beyond it and is never delivered.
	if o := &p.obj; p.cfg.Verify == VerifyTrust && o.HasFinal && p.end.Segment > o.Final && (!p.hasFinal || p.final != o.Final) {
		return fmt.Errorf("%w: no signed packet says that segment %d of %s is the last", ErrVerify, o.Final, o.Name)
	}
	if p.cfg.Want != nil {
		if string(p.cfg.Want) != string(r.Sha256) {
			return fmt.Errorf("%w: SHA-256 is %x, not %x", ErrVerify, r.Sha256, p.cfg.Want)
		}
		r.Verified = true
	}
	if said := p.obj.Sha256; said != nil && r.Sha256 != nil && whole && string(said) != string(r.Sha256) {
		return fmt.Errorf("%w: SHA-256 is %x, the producer says %x", ErrVerify, r.Sha256, said)
	}
	return nil
}
