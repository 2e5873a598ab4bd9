package mgmt

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// Bounds of what strangers' keys can cause, for each kind of them.
const (
	// maxKeys is how many keys' certificates are fetched at the same time. None
	// waits for its turn: it would outlive the command that wants it, and who
	// asks for what nobody answers would keep all others waiting.
	maxKeys     = 64
	maxPeerKeys = 8  // of these, that one host may have brought, or one local face
	maxEachKey  = 16 // commands that wait for the same key
	maxKeyName  = 1024
	maxFailed   = 1024 // keys that are remembered as not to be had
	failedFor   = 10 * time.Second
	// chainTime is for all certificates of a key: less than the lifetime of
	// commands, so that who is refused hears why.
	chainTime = proto.Lifetime - 500*time.Millisecond
	// strangerTime is the same for hosts whose address may be forged.
	strangerTime = 2 * time.Second
	certLifetime = time.Second
	faceLifetime = 500 * time.Millisecond
)

// Refusals of keys that are not known yet.
var (
	errKeyName  = errors.New("the name of its key is too long")
	errCrowded  = errors.New("others, whose keys are not known either, took its place")
	errTooMany  = errors.New("too many keys that are not known wait for their certificates already")
	errTooEager = errors.New("too many commands wait for the certificate of this key already")
	errNoRoute  = errors.New("there is no route to it")
	errNoAnswer = errors.New("nobody answers")
	errStopped  = errors.New("management stops")
)

// chains fetches the certificates of keys that nobody configured, through the
// forwarder itself. Whoever needs a key leaves a function to be called when it
// is known; nobody waits but a goroutine for each key.
type chains struct {
	rules chainRules
	send  func(interest []byte, via ndn.FaceID) // 0: by the routes
	nonce func() uint32
	erase func(certificate ndn.Name) // from the content store
	ctx   context.Context
	stop  context.CancelFunc
	start func(func()) // a goroutine

	mu      sync.Mutex
	closed  bool
	jobs    map[keyID]*keyJob
	list    []*keyJob // the same
	peers   map[string]int
	failed  *lru.Cache[keyID, failedKey]
	asked   map[*question]struct{}
	ok, bad uint64 // keys that were verified, and that were not
}

// chainRules are what differs between those who bring keys.
type chainRules struct {
	time time.Duration // for all certificates of a key
	// yield gives a new key the place of another one when there is none: at
	// random, so that whoever comes again gets through however many others
	// come, as long as the answers are there before the place is lost.
	yield bool
}

// Those who bring keys, and the chains of each.
const (
	here     = iota // are on this host
	there           // are known to be where they say
	anywhere        // may have forged their address
	askers
)

var keyRules = [askers]chainRules{
	here: {time: chainTime}, there: {time: chainTime}, anywhere: {time: strangerTime, yield: true},
}

// asker is who brings a key.
type asker struct {
	face ndn.FaceID
	peer string // what is bounded together: the host, or the local face
}

// keyID is a key as far as one policy's rule and one face are concerned: who
// commands by another may have the certificates, and must not suffer from one
// who claims to have the same key.
type keyID struct {
	by   *verify.Verifier
	face ndn.FaceID
	sum  [sha256.Size]byte // of the locator
}

type failedKey struct {
	why   error
	until time.Time
}

// keyJob is a key whose certificates are wanted.
type keyJob struct {
	id      keyID
	by      asker
	at      int // in list; -1: it has lost its place
	stop    context.CancelFunc
	locator ndn.Name
	trust   []*verify.Verifier
	waiting []waitingFor
}

// waitingFor is one who wants a key.
type waitingFor struct {
	id   string // two with the same one, not empty, are the same
	then func(failed error)
}

// question is a certificate that was asked for.
type question struct {
	name   ndn.Name
	answer chan certAnswer
}

type certAnswer struct {
	wire   []byte // nil: it is a Nack
	reason ndn.NackReason
}

func newChains(rules chainRules, send func([]byte, ndn.FaceID), nonce func() uint32, erase func(ndn.Name), start func(func())) *chains {
	c := &chains{
		rules: rules, send: send, nonce: nonce, erase: erase, start: start,
		jobs: map[keyID]*keyJob{}, peers: map[string]int{}, asked: map[*question]struct{}{},
	}
	c.failed, _ = lru.New[keyID, failedKey](maxFailed) // it fails for sizes below 1
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// close ends all fetches. Those who wait are told.
func (c *chains) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
}

// await has the certificates of a key fetched for the verifiers, and then
// calls w.then on another goroutine: with nil when one of them believes them,
// otherwise with the reason. An error means that w.then will not be called.
func (c *chains) await(by asker, locator ndn.Name, trust []*verify.Verifier, w waitingFor) error {
	if len(locator) > maxKeyName {
		return errKeyName
	}
	id := keyID{trust[0], by.face, sha256.Sum256(locator)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errStopped
	}
	if f, ok := c.failed.Get(id); ok && time.Now().Before(f.until) {
		return f.why
	}
	j := c.jobs[id]
	if j == nil {
		if c.peers[by.peer] >= maxPeerKeys || len(c.jobs) >= maxKeys && !c.rules.yield {
			return errTooMany
		}
		if len(c.jobs) >= maxKeys {
			c.removeLocked(c.victimLocked())
		}
		ctx, stop := context.WithTimeout(c.ctx, c.rules.time)
		j = &keyJob{id: id, by: by, stop: stop, locator: locator.Clone(), trust: trust}
		c.addLocked(j)
		c.start(func() {
			defer stop()
			err := c.learn(ctx, j)
			waiting, err := c.done(j, err)
			for _, w := range waiting {
				w.then(err)
			}
		})
	}
	for k := range j.waiting {
		if w.id != "" && j.waiting[k].id == w.id {
			j.waiting[k] = w // sent again: whoever asked last is answered
			return nil
		}
	}
	if len(j.waiting) >= maxEachKey {
		return errTooEager
	}
	j.waiting = append(j.waiting, w)
	return nil
}

func (c *chains) addLocked(j *keyJob) {
	j.at = len(c.list)
	c.list = append(c.list, j)
	c.jobs[j.id] = j
	c.peers[j.by.peer]++
}

// removeLocked takes a key's place away, unless that has been done.
func (c *chains) removeLocked(j *keyJob) {
	if j.at < 0 {
		return
	}
	last := len(c.list) - 1
	c.list[last].at = j.at
	c.list[j.at] = c.list[last]
	c.list[last] = nil
	c.list, j.at = c.list[:last], -1
	delete(c.jobs, j.id)
	if c.peers[j.by.peer]--; c.peers[j.by.peer] == 0 {
		delete(c.peers, j.by.peer)
	}
	j.stop()
}

// victimLocked chooses who loses its place: of a few at random one of the host
// that has the most.
func (c *chains) victimLocked() *keyJob {
	const sample = 4
	var v *keyJob
	for range sample {
		j := c.list[c.nonce()%uint32(len(c.list))]
		if v == nil || c.peers[j.by.peer] > c.peers[v.by.peer] {
			v = j
		}
	}
	return v
}

// learn has the verifiers fetch the certificates of a key until one believes
// them. Those that nobody believes do not stay in the content store, where they
// would stand in for the right ones.
func (c *chains) learn(ctx context.Context, j *keyJob) (err error) {
	var fetched []ndn.Name
	for _, v := range j.trust {
		e := v.Learn(ctx, j.locator, func(ctx context.Context, name ndn.Name) ([]byte, error) {
			wire, err := c.fetch(ctx, j.id.face, name)
			var d ndn.Data
			if err == nil && d.Parse(wire) == nil {
				fetched = append(fetched, d.Name)
			}
			return wire, err
		})
		if e == nil {
			return nil
		}
		if err == nil {
			err = e
		}
	}
	for _, name := range fetched {
		c.erase(name)
	}
	return err
}

// done notes what has become of a key and returns who wants to know, and what
// to tell them.
func (c *chains) done(j *keyJob, err error) ([]waitingFor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	crowded := j.at < 0
	c.removeLocked(j)
	switch {
	case err == nil:
		c.ok++
	case crowded:
		// It says nothing of the key.
		return j.waiting, errCrowded
	default:
		c.bad++
		c.failed.Add(j.id, failedKey{err, time.Now().Add(failedFor)})
	}
	return j.waiting, err
}

// fetch gets a certificate: by the routes like any Data, and from the face that
// the command came by, for who commands may have it and cannot register it.
func (c *chains) fetch(ctx context.Context, face ndn.FaceID, name ndn.Name) ([]byte, error) {
	q := &question{name.Clone(), make(chan certAnswer, 1)}
	c.mu.Lock()
	c.asked[q] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, q)
		c.mu.Unlock()
	}()
	failed := errNoAnswer
	for _, via := range []ndn.FaceID{0, face, 0} {
		lifetime := certLifetime
		switch {
		case via != 0:
			lifetime = faceLifetime
		case errors.Is(failed, errNoRoute):
			continue
		}
		wire, err := c.ask(ctx, q, via, lifetime)
		switch {
		case wire != nil:
			return wire, nil
		case ctx.Err() != nil:
			return nil, err
		case via == 0:
			failed = err
		}
	}
	return nil, failed
}

// ask asks for a certificate once and waits for the answer.
func (c *chains) ask(ctx context.Context, q *question, via ndn.FaceID, lifetime time.Duration) ([]byte, error) {
	c.send(ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: q.name, CanBePrefix: true, MustBeFresh: true, Nonce: c.nonce(), Lifetime: lifetime,
	}), via)
	timer := time.NewTimer(lifetime)
	defer timer.Stop()
	for {
		select {
		case a := <-q.answer:
			switch {
			case a.wire != nil:
				return a.wire, nil
			case a.reason == ndn.NackNoRoute:
				return nil, errNoRoute
			}
		case <-timer.C:
			return nil, errNoAnswer
		case <-ctx.Done():
			if c.ctx.Err() != nil {
				return nil, errStopped
			}
			return nil, errNoAnswer
		}
	}
}

// data takes a Data that may be a certificate that was asked for.
func (c *chains) data(d *ndn.Data) {
	c.tell(func(q *question) bool { return d.Name.HasPrefix(q.name) }, func() certAnswer {
		return certAnswer{wire: append([]byte(nil), d.Wire...)}
	})
}

// nack takes a Nack of an Interest.
func (c *chains) nack(name ndn.Name, reason ndn.NackReason) {
	c.tell(func(q *question) bool { return q.name.Equal(name) }, func() certAnswer { return certAnswer{reason: reason} })
}

// tell answers the questions that match; the order does not matter.
func (c *chains) tell(match func(*question) bool, answer func() certAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for q := range c.asked {
		if match(q) {
			select {
			case q.answer <- answer():
			default: // it has one that it has not read yet
			}
		}
	}
}

// forget forgets which keys could not be had.
func (c *chains) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed.Purge()
}

func (c *chains) counts() (ok, bad uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ok, c.bad
}
