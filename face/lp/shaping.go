package lp

import (
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Shaping holds Interests back so that the Data that they bring home fit into
// the link, after Wang, Rozhnova, Narayanan, Oran and Rhee, "An Improved
// Hop-by-hop Interest Shaper for Congestion Control in Named Data Networking"
// (ICN workshop of SIGCOMM 2013). Both rates set turn it on; both ends of a link
// use it. What does not fit into the queue is refused, and the forwarder answers
// with a Nack Congestion.
type Shaping struct {
	// Out and In are the rates of the link in bit/s, from and to this end.
	Out, In int64
	// Queue is how many Interests may wait. 0 means 50.
	Queue int
}

func (s *Shaping) on() bool { return s.Out > 0 && s.In > 0 }

const (
	// shapeHeadroom is left of the link, and of what the other direction is
	// expected to ask for.
	shapeHeadroom = 0.98
	// shapeWindow is how long the other direction's Interests are counted.
	shapeWindow = 10 * time.Millisecond
	// shapeBurst is what may leave late at once.
	shapeBurst = time.Millisecond
)

// mean is a running mean of sizes with weight 1/8, 0 before the first.
type mean float64

func (m *mean) add(size int) {
	if *m == 0 {
		*m = mean(size)
		return
	}
	*m += (mean(size) - *m) / 8
}

// shaper is the state of Interest shaping at one end of a link.
type shaper struct {
	cfg Shaping
	// Sizes on the link in bytes.
	outInterest, outData, inInterest, inData mean
	// Interests that come: bits of this window, and bit/s of the last one.
	windowEnds ndn.Time
	bits       float64
	observed   float64

	next    ndn.Time // when an Interest may leave
	waiting []shaped // a ring
	head, n int
}

// shaped is an Interest that waits.
type shaped struct {
	wire   []byte
	fields ndn.LpFields
	token  [maxToken]byte
}

// maxToken is the longest PIT token in bytes (NDNLPv2).
const maxToken = 32

func newShaper(cfg Shaping) *shaper {
	set(&cfg.Queue, 50)
	return &shaper{cfg: cfg, waiting: make([]shaped, cfg.Queue)}
}

// rate is how many bits of Interests may leave per second, 0 when all may
// because the sizes of Data are not known yet.
func (s *shaper) rate(now ndn.Time) float64 {
	s.turn(now)
	if s.inData == 0 || s.outInterest == 0 {
		return 0
	}
	c1, c2 := float64(s.cfg.Out), float64(s.cfg.In)
	r1 := float64(s.inData / s.outInterest)
	r2 := r1 // until Data have gone the other way
	if s.outData > 0 && s.inInterest > 0 {
		r2 = float64(s.outData / s.inInterest)
	}
	most := c2 / r1
	least, expected := fairRates(c1, c2, r1, r2)
	expected *= shapeHeadroom
	least = min(least, most)
	rate := least
	if s.observed < expected {
		free := 1 - s.observed/expected
		rate += (most - least) * free * free
	}
	return shapeHeadroom * rate
}

// fairRates are the rate of our Interests and of those of the other end, in
// bit/s, that share a link fairly when both ends want all of it. The link
// carries c1 bit/s from here and c2 to here; r1 and r2 are how many bytes of
// Data a byte of Interest brings to us and takes from us. Interests and Data
// that go the same way share it: s + r2·e ≤ c1 and e + r1·s ≤ c2, of which both
// or one are tight.
func fairRates(c1, c2, r1, r2 float64) (ours, theirs float64) {
	// A way that is alone in being tight is shared half and half. With r1·r2 = 1
	// one of them always is.
	switch both := r1*r2 - 1; {
	case c1*(r1*r2+1) <= 2*r2*c2:
		return c1 / 2, c1 / (2 * r2)
	case c2*(r1*r2+1) <= 2*r1*c1:
		return c2 / (2 * r1), c2 / 2
	default:
		return (r2*c2 - c1) / both, (r1*c1 - c2) / both
	}
}

// turn ends a window that is over.
func (s *shaper) turn(now ndn.Time) {
	if now < s.windowEnds {
		return
	}
	if s.windowEnds.IsSet() {
		s.observed = s.bits / (shapeWindow + now.Sub(s.windowEnds)).Seconds()
	}
	s.bits, s.windowEnds = 0, now.Add(shapeWindow)
}

// received notes a packet that came, of size bytes with its headers.
func (s *shaper) received(now ndn.Time, kind ndn.Kind, size int) {
	s.turn(now)
	switch kind {
	case ndn.KindInterest:
		s.inInterest.add(size)
		s.bits += 8 * float64(size)
	case ndn.KindData:
		s.inData.add(size)
	}
}

// sent notes a packet that left, and for an Interest when the next one may.
func (s *shaper) sent(now ndn.Time, interest bool, size int) {
	if !interest {
		s.outData.add(size)
		return
	}
	s.outInterest.add(size)
	s.next = max(s.next, now.Add(-shapeBurst))
	if r := s.rate(now); r > 0 {
		s.next = s.next.Add(time.Duration(8 * float64(size) / r * float64(time.Second)))
	}
}

// hold takes an Interest that may not leave yet. It reports whether it was
// taken, and whether it may leave now.
func (s *shaper) hold(now ndn.Time, wire []byte, f *ndn.LpFields) (taken, free bool) {
	if s.n == 0 && s.next <= now {
		return false, true
	}
	if s.n == len(s.waiting) {
		return false, false
	}
	w := &s.waiting[(s.head+s.n)%len(s.waiting)]
	s.n++
	w.wire = append(w.wire[:0], wire...)
	w.fields = *f
	if f.PitToken != nil {
		w.fields.PitToken = w.token[:copy(w.token[:], f.PitToken)]
	}
	return true, false
}

// pop is the next Interest that waits, valid until the next call of hold.
func (s *shaper) pop() *shaped {
	w := &s.waiting[s.head]
	s.head = (s.head + 1) % len(s.waiting)
	s.n--
	return w
}

func (s *shaper) deadline() ndn.Time {
	if s.n == 0 {
		return ndn.Never
	}
	return s.next
}

// release sends the Interests whose time has come.
func (s *shaper) release(now ndn.Time, l *Link, out *face.Frames) {
	for s.n > 0 && s.next <= now {
		w := s.pop()
		l.fields = w.fields
		if l.pass(now, w.wire, out) != nil {
			// Nobody waits for the answer: it counts as lost on the link.
			l.ctr.OutShapeLost++
		}
	}
}
