package mgmt

import (
	"fmt"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// learntFor bounds the life of a route that a strategy has learnt; a longer
// expiration period does not bind us (NFD: SelfLearningStrategy,
// ROUTE_RENEW_LIFETIME).
const learntFor = 10 * time.Minute

// learn adds the routes of prefix announcements that strategies want learnt,
// as far as they are believed. s.mu is not held.
func (s *Server) learn(now ndn.Time, events []run.Event) {
	for i := range events {
		if events[i].Kind != run.PrefixAnnounced {
			continue
		}
		if err := s.learnRoute(now, &events[i].Announcement); err != nil {
			s.count.disbelieved.Add(1)
			s.disbelieved(Disbelief{events[i].Announcement.Face, printable(events[i].Announcement.Data), err})
		} else {
			s.count.learnt.Add(1)
		}
	}
}

// Disbelief is a prefix announcement that was not learnt.
type Disbelief struct {
	Face ndn.FaceID
	Data string // name of the Data that carried it
	Err  error
}

func (s *Server) learnRoute(now ndn.Time, an *run.Announcement) error {
	a, err := parseAnnouncement(an.Wire)
	if err != nil {
		return err
	}
	wall := s.wall()
	left := a.left(wall)
	switch {
	case left <= 0:
		return fmt.Errorf("%w: it is not valid now", errAnnouncement)
	case a.prefix.Len() > ndn.MaxComponents:
		return fmt.Errorf("%w: the prefix has more than 32 components", errAnnouncement)
	case !an.Data.HasPrefix(a.prefix):
		return fmt.Errorf("%w: %s does not cover the Data that carried it", errAnnouncement, a.prefix)
	case !s.sameChoice(a.prefix, an.Data):
		// Who was asked for /a/b has no say about all of /.
		return fmt.Errorf("%w: the strategy that learns is not that of %s", errAnnouncement, a.prefix)
	}
	if err := s.policy.Load().announces(an.Wire, wall); err != nil {
		return err
	}
	return s.fwd.RIB.AddRoute(run.Route{
		Prefix: a.prefix, Face: an.Face, Origin: proto.OriginPrefixAnn, Cost: announcementCost,
		ChildInherit: true, Expires: now.Add(min(left, learntFor)),
	})
}

// left is how long an announcement is valid from now on.
func (a *announcement) left(wall time.Time) time.Duration {
	if wall.Before(a.notBefore) {
		return 0
	}
	if a.notAfter.IsZero() {
		return a.expiration
	}
	return min(a.expiration, a.notAfter.Sub(wall))
}

// sameChoice reports whether the strategy of two names, of which the first is
// a prefix of the second, was chosen at the same prefix.
func (s *Server) sameChoice(prefix, name ndn.Name) bool {
	of := -1
	for _, c := range s.fwd.Strategies.Strategies() {
		if name.HasPrefix(c.Prefix) {
			of = max(of, c.Prefix.Len())
		}
	}
	return of >= 0 && prefix.Len() >= of
}

// announces decides whether a prefix announcement is believed: with announcers
// in the configuration those that one of their keys has signed, otherwise all
// that are whole.
func (p *Policy) announces(wire []byte, wall time.Time) error {
	if len(p.announcers) == 0 {
		return nil
	}
	d, covered, err := spec_2022.Spec{}.ReadData(enc.NewBufferView(wire))
	if err != nil {
		return fmt.Errorf("%w: %w", errAnnouncement, err)
	}
	sig := d.Signature()
	if sig == nil || sig.KeyName() == nil {
		return fmt.Errorf("%w: it names no key", errAnnouncement)
	}
	key := ndn.FromNdnd(sig.KeyName())
	for i := range p.announcers {
		c := &p.announcers[i]
		if !key.HasPrefix(c.keyName) || wall.Before(c.notBefore) || (!c.notAfter.IsZero() && wall.After(c.notAfter)) {
			continue
		}
		if ok, err := signer.ValidateData(d, covered, c.data); ok && err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: none of the announcers has signed it", errAnnouncement)
}
