package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// strangers is a datagram listener whose peers the test makes up.
type strangers struct {
	t       testing.TB
	f       *Forwarder
	accepts chan face.Acceptor
	closed  chan struct{}
	accept  face.Acceptor

	mu    sync.Mutex
	n     int
	done  bool
	ended []*stranger
}

func (s *strangers) URI() string { return "udp4://192.0.2.100:6363" }

func (s *strangers) Serve(accept face.Acceptor) error {
	s.accepts <- accept
	<-s.closed
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
	s.reap()
	return face.ErrClosed
}

func (s *strangers) Close() error {
	close(s.closed)
	return nil
}

// reap tells the receivers of those that have ended, as a listener does.
func (s *strangers) reap() {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	for _, p := range ended {
		p.r.Closed(face.ErrClosed)
	}
}

// stranger is the transport of one of them.
type stranger struct {
	l    *strangers
	r    face.Receiver
	uri  string
	gone bool
	sent int
	size int
}

func (p *stranger) Info() face.Info {
	return face.Info{RemoteURI: p.uri, LocalURI: "udp4://192.0.2.100:6363"}
}
func (p *stranger) MTU() int                 { return 1400 }
func (p *stranger) Send(b *face.Frames) int  { p.sent += b.Len(); p.size += len(b.Buf); return 0 }
func (p *stranger) QueueLen() int            { return 0 }
func (p *stranger) receive(frames ...[]byte) { p.r.Receive(frames); p.r.Flush() }
func (p *stranger) alive() bool              { p.l.mu.Lock(); defer p.l.mu.Unlock(); return !p.gone }
func (p *stranger) Close() error {
	l := p.l
	l.mu.Lock()
	first := !p.gone && p.r != nil
	p.gone = true
	if first && !l.done {
		l.ended = append(l.ended, p)
		first = false
	}
	l.mu.Unlock()
	if first {
		p.r.Closed(face.ErrClosed)
	}
	return nil
}

func listenStrangers(t testing.TB, o ListenOptions) *strangers {
	s := &strangers{t: t, f: start(t, Options{}), accepts: make(chan face.Acceptor), closed: make(chan struct{})}
	if err := s.f.Listen(s, o); err != nil {
		t.Fatal(err)
	}
	s.accept = <-s.accepts
	return s
}

// come lets somebody who was never heard of send a packet.
func (s *strangers) come() (*stranger, error) {
	s.n++
	return s.from(s.n)
}

// from lets somebody who has no face send a packet.
func (s *strangers) from(n int) (*stranger, error) {
	s.reap()
	p := &stranger{l: s, uri: fmt.Sprintf("udp4://10.%d.%d.%d:6363", n>>16&0xff, n>>8&0xff, n&0xff)}
	r, err := s.accept(p)
	if err != nil {
		return nil, err
	}
	p.r = r
	p.receive(ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a/b"), Nonce: uint32(s.n), Lifetime: time.Second}))
	return p, nil
}

// TestForgedAddressesLetPeersIn: while ever new addresses send, a new peer gets
// a place, and keeps it once it has sent a second packet.
func TestForgedAddressesLetPeersIn(t *testing.T) { synctest.Test(t, forgedAddressesLetPeersIn) }

func forgedAddressesLetPeersIn(t *testing.T) {
	// Ten times as many forged addresses as get a place, and a peer whose second
	// packet comes 3 ms after its first.
	const places, every, flood = 256, 100 * time.Microsecond, 8000
	s := listenStrangers(t, ListenOptions{MaxFaces: places})
	made, begin := 0, time.Now()
	forge := func(n int) {
		for range n {
			time.Sleep(every)
			p, err := s.come()
			if err != nil {
				continue
			}
			if made++; p.sent > 4 {
				t.Fatal("a forged address is sent much")
			}
		}
	}
	forge(flood)
	rng, stayed, tries := rand.New(rand.NewPCG(1, 2)), 0, 0
	for n := range 20 {
		// It comes at any time between two of the others, which do not wait for it.
		come := func() (*stranger, error) {
			time.Sleep(time.Duration(rng.Int64N(int64(every))))
			return s.from(1<<23 + n)
		}
		p, err := come()
		for ; err != nil; p, err = come() {
			if tries++; tries > 2000 {
				t.Fatal("no place: ", err)
			}
			forge(10)
		}
		forge(places / 8)
		if !p.alive() {
			continue // it tries again
		}
		p.receive(ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a/b"), Nonce: 7, Lifetime: time.Second}))
		forge(flood)
		if !p.alive() {
			t.Fatal("a peer that goes on has lost its place to such as do not")
		}
		stayed++
	}
	if most := places * (1 + time.Since(begin).Seconds()/crowdTurns); float64(made) > most {
		t.Errorf("%d faces were made for forged addresses, at most %.0f may be", made, most)
	}
	if stayed < 10 {
		t.Errorf("%d of 20 kept their place until their second packet", stayed)
	}
	if n := len(s.f.Faces()); n > places+1 {
		t.Errorf("%d faces", n)
	}
}

// TestWhoComesBackGetsIn: while new addresses come a hundred times as fast as
// there are turns, a peer that was refused gets a place when it tries again a
// second later. Who forges addresses and uses each several times takes the turns
// of those who come back, and no more.
func TestWhoComesBackGetsIn(t *testing.T) { synctest.Test(t, whoComesBackGetsIn) }

func whoComesBackGetsIn(t *testing.T) {
	const places, every = 256, 150 * time.Microsecond
	s := listenStrangers(t, ListenOptions{MaxFaces: places})
	forge := func(d time.Duration, from func(k int) int) (made int) {
		for k := range int(d / every) {
			time.Sleep(every)
			if _, err := s.from(from(k)); err == nil {
				made++
			}
		}
		return made
	}
	fresh := func(int) int { s.n++; return s.n }
	forge(time.Second, fresh) // until the first turns are used
	at, late := 0, 0
	for n := range 50 {
		who := 1<<23 + n
		_, err := s.from(who)
		if err == nil {
			continue // lucky
		}
		at++
		forge(time.Second, fresh)
		if _, err := s.from(who); err != nil {
			late++
		}
	}
	if at < 25 || late > 2 {
		t.Errorf("%d were refused at first, of those %d again", at, late)
	}
	const long = 20 * time.Second
	made := forge(long, func(k int) int { return 1<<22 + k%2000 })
	if most := 2 * places / crowdTurns * int(long/time.Second); made > most+places {
		t.Errorf("%d faces for addresses that repeat, at most %d may be", made, most)
	}
	newcomers := 0
	for range 50 {
		forge(50*time.Millisecond, func(k int) int { return 1<<22 + k%333 })
		if _, err := s.come(); err == nil {
			newcomers++
		}
	}
	if newcomers < 40 {
		t.Errorf("only %d of 50 newcomers got in beside addresses that repeat", newcomers)
	}
}

// TestRepetitionsAreBudgeted: what a link with reliability repeats for a peer
// that is not proven, and acknowledges nothing, comes out of its allowance.
func TestRepetitionsAreBudgeted(t *testing.T) { synctest.Test(t, repetitionsAreBudgeted) }

func repetitionsAreBudgeted(t *testing.T) {
	a := Allowance{Rate: 1000, Burst: 60000}
	s := listenStrangers(t, ListenOptions{Reliable: ReliabilityOn, Allowance: a})
	_, id := memApp(t, s.f, echo(t, 1000))
	addRoute(t, s.f, "/a", id)
	p, err := s.come()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		p.receive(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+1000)))
		synctest.Wait()
	}
	if p.size < 50000 {
		t.Fatalf("only %d bytes were sent at first", p.size)
	}
	time.Sleep(5 * time.Second)
	// The headers of the first transmissions are not counted.
	if most := 60000 + 60*100 + 5*1000; p.size > most {
		t.Errorf("%d bytes were sent in all, at most %d may be", p.size, most)
	}
}

// TestReturns: a refusal is remembered for a while, and taken for nobody else's.
func TestReturns(t *testing.T) {
	var r returns
	now, rng := ndn.Time(time.Hour), rand.New(rand.NewPCG(3, 4))
	key := rng.Uint64()
	if r.known(now, key) || r.sets != nil {
		t.Fatal("somebody is known before anybody was refused")
	}
	r.note(now, key)
	if !r.known(now.Add(returnTime), key) || r.known(now.Add(returnTime+time.Second), key) {
		t.Error("remembered too long, or too short")
	}
	if r.known(now, key^1<<63) {
		t.Error("another address of the same set is known")
	}
	// 27,000 others a second take few of the places within one.
	mine := make([]uint64, 1000)
	for i := range mine {
		mine[i] = rng.Uint64()
		r.note(now, mine[i])
	}
	for range 27000 {
		r.note(now, rng.Uint64())
	}
	known := 0
	for _, k := range mine {
		if r.known(now.Add(time.Second), k) {
			known++
		}
	}
	if known < 990 {
		t.Errorf("%d of 1000 are known after a second", known)
	}
	// Where a set is full, who was refused the longest ago makes room.
	var full returns
	same := func(n int) uint64 { return uint64(n+1)<<40 | 7 }
	for i := range returnWays {
		full.note(now.Add(time.Duration(i)*time.Second), same(i))
	}
	now = now.Add(returnWays * time.Second)
	full.note(now, same(0))
	full.note(now, same(returnWays))
	for i := range returnWays + 1 {
		if full.known(now, same(i)) != (i != 1) {
			t.Errorf("of %d that were refused one after the other, the first again, number %d is known: %v", returnWays, i, i == 1)
		}
	}
}

// TestWorthFades: addresses that have sent much, and nothing any
// more, are worth nothing after a while.
func TestWorthFades(t *testing.T) {
	s := listenStrangers(t, ListenOptions{MaxFaces: 8})
	for range 8 {
		p, err := s.come()
		if err != nil {
			t.Fatal(err)
		}
		for k := range 5 {
			p.receive(ndn.AppendInterest(nil, &ndn.InterestFields{Name: ndn.MustName("/a/b"), Nonce: uint32(100 + k)}))
		}
	}
	for _, fc := range s.f.list() {
		fc.mu.Lock()
		fc.lastIn = fc.lastIn.Add(-10 * time.Second)
		fc.mu.Unlock()
	}
	fresh, err := s.come()
	if err != nil {
		t.Fatal(err)
	}
	for range 6 { // there are seven of the others left
		if _, err := s.come(); err != nil {
			t.Fatal(err)
		}
	}
	if !fresh.alive() {
		t.Error("who has just come goes before those that are silent")
	}
}

func BenchmarkStranger(b *testing.B) {
	s := listenStrangers(b, ListenOptions{MaxFaces: 4096})
	refused := 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.come(); errors.Is(err, ErrTooManyFaces) {
			refused++
		}
	}
	b.ReportMetric(float64(refused)/float64(b.N), "refused/op")
}
