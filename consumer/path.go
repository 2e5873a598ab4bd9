package consumer

import (
	"time"

	"ndnpop/consumer/rtt"
	"ndnpop/ndn"
)

// maxPaths bounds the path tags that are told apart; the one that was silent
// longest gives way.
const maxPaths = 8

// sharePeriod is the number of Data after which the byte shares of the paths
// are halved, so that they follow the present.
const sharePeriod = 256

// foreignPeriod is the memory of the share of other paths' Data, in Data. With
// 256 its noise alone moves the pacing rate by several per cent at a share of
// one half, and a rate-based controller sees losses of its own making.
const foreignPeriod = 512

// path is what is known of one (source, path), told apart by path tags. Data
// without a tag are those of path 0.
type path struct {
	tag         uint64
	near        bool // no tag, but a source nearer than the other one
	fromCache   bool // the source is a content store
	hops        uint8
	used        bool
	est         rtt.Estimator
	lastSeen    ndn.Time
	share       float64 // bytes, decaying
	hi          uint64  // highest transmission number answered
	losses      uint64
	delivered   uint64 // bytes
	deliveredAt ndn.Time
	firstSent   ndn.Time
	// appLimitedUntil: samples are application-limited until this much has
	// been delivered; 0 when they are not.
	appLimitedUntil uint64
	roundEnd        uint64
	round           uint64
}

// pathSet is the paths of one fetch, one of which the controller runs on.
type pathSet struct {
	all     [maxPaths]path
	n       int
	ctl     int8 // the controlled one
	cfg     rtt.Config
	count   int
	foreign float64 // share of Data of other paths, EWMA of 1/foreignPeriod per Data
	guard   bimodal
}

func newPathSet(cfg rtt.Config) pathSet {
	p := pathSet{n: 1, cfg: cfg}
	p.all[0].est = rtt.New(cfg)
	return p
}

// controlled is the path that the controller runs on.
func (ps *pathSet) controlled() *path { return &ps.all[ps.ctl] }

// of returns the index of the path with a Data's tag, making room if needed.
// near tells two sources without tags apart.
func (ps *pathSet) of(f *ndn.LpFields, near bool) int8 {
	var tag ndn.PathTag
	if f.HasPathTag {
		tag = f.PathTag
	}
	if c := &ps.all[ps.ctl]; c.used && c.tag == tag.Tag && c.near == near {
		return ps.ctl
	}
	for i := range ps.n {
		if p := &ps.all[i]; p.used && p.tag == tag.Tag && p.near == near {
			return int8(i)
		}
	}
	i := ps.ctl
	if ps.all[i].used {
		i = ps.room()
		ps.all[i] = path{est: rtt.New(ps.cfg)}
	}
	// The first path inherits what was recorded before anything arrived.
	p := &ps.all[i]
	p.tag, p.hops, p.near, p.used = tag.Tag, tag.Hops, near, true
	p.fromCache = tag.Flags&ndn.PathFromCache != 0
	return i
}

func (ps *pathSet) room() int8 {
	if ps.n < maxPaths {
		ps.n++
		return int8(ps.n - 1)
	}
	oldest := int8(none)
	for i := range ps.n {
		if int8(i) == ps.ctl {
			continue
		}
		if oldest < 0 || ps.all[i].lastSeen < ps.all[oldest].lastSeen {
			oldest = int8(i)
		}
	}
	return oldest
}

// arrived counts a Data of path i and reports whether another path has to be
// controlled from now on.
func (ps *pathSet) arrived(now ndn.Time, i int8, size int) (takeover bool) {
	p := &ps.all[i]
	p.lastSeen = now
	p.share += float64(size)
	if ps.count++; ps.count == sharePeriod {
		ps.count = 0
		for k := range ps.n {
			ps.all[k].share /= 2
		}
	}
	if i == ps.ctl {
		if ps.foreign > 0 {
			ps.foreign -= ps.foreign / foreignPeriod
		}
		return false
	}
	ps.foreign += (1 - ps.foreign) / foreignPeriod
	c := ps.controlled()
	switch near, cnear := p.nearCache(), c.nearCache(); {
	case near && !cnear:
		// Hits at the first hop say nothing of the path behind it, unless
		// nothing else comes any more.
		return now.Sub(c.lastSeen) > 2*c.est.RTO()
	case !near && cnear:
		return p.share >= 8*float64(size)
	}
	return p.share > 2*c.share || now.Sub(c.lastSeen) > 2*c.est.RTO()
}

// nearCache reports whether the source is a content store at the first hop, or
// seems to be one.
func (p *path) nearCache() bool { return p.near || p.fromCache && p.hops <= 1 }

// take makes path i the controlled one.
func (ps *pathSet) take(now ndn.Time, i int8) {
	ps.ctl = i
	p := &ps.all[i]
	p.hi, p.appLimitedUntil = 0, 0
	p.deliveredAt, p.firstSent = now, now
	p.roundEnd = p.delivered
	ps.foreign = 0
}

// rto is the timeout for an Interest whose path is not known beforehand: the
// longest of the paths heard of in the last second.
func (ps *pathSet) rto(now ndn.Time) time.Duration {
	d := ps.controlled().est.RTO()
	if ps.n == 1 {
		return d
	}
	for i := range ps.n {
		if p := &ps.all[i]; p.used && now.Sub(p.lastSeen) <= time.Second {
			d = max(d, p.est.RTO())
		}
	}
	return d
}

func (ps *pathSet) backoff() {
	for i := range ps.n {
		ps.all[i].est.Backoff()
	}
}

// onSend records the delivery-rate state in s (draft-ietf-ccwg-bbr, "Delivery
// Rate Sampling").
func (ps *pathSet) onSend(now ndn.Time, s *slot, inflight int) {
	p := ps.controlled()
	if inflight == 0 {
		p.firstSent, p.deliveredAt = now, now
	}
	s.path = ps.ctl
	s.delivered, s.deliveredTime, s.firstSent = p.delivered, p.deliveredAt, p.firstSent
	s.appLimited = p.appLimitedUntil > 0
}

// rateSample is one delivery-rate sample.
type rateSample struct {
	rate       float64 // bytes per second, 0: none
	appLimited bool
	roundStart bool
}

// onData counts a Data of size bytes on the controlled path, which answers
// the transmission that s records.
func (ps *pathSet) onData(now ndn.Time, s *slot, size int) rateSample {
	p := ps.controlled()
	p.delivered += uint64(size)
	p.deliveredAt = now
	if p.appLimitedUntil > 0 && p.delivered > p.appLimitedUntil {
		p.appLimitedUntil = 0
	}
	var r rateSample
	if s.path != ps.ctl {
		return r
	}
	if s.delivered >= p.roundEnd {
		p.roundEnd = p.delivered
		p.round++
		r.roundStart = true
	}
	interval := max(s.sentAt.Sub(s.firstSent), now.Sub(s.deliveredTime))
	p.firstSent = s.sentAt
	if interval <= 0 || interval < p.est.Min() {
		return r
	}
	r.rate = float64(p.delivered-s.delivered) / interval.Seconds()
	r.appLimited = s.appLimited
	return r
}
