package mgmt

import (
	"context"
	"errors"
	"fmt"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/ndn/verify"
)

// learntFor bounds the life of a route that a strategy has learnt; a longer
// expiration period does not bind us (NFD: SelfLearningStrategy,
// ROUTE_RENEW_LIFETIME).
const learntFor = 10 * time.Minute

// learn adds the routes of prefix announcements that strategies want learnt,
// as far as they are believed. s.mu is not held.
func (s *Server) learn(events []run.Event) {
	for i := range events {
		if events[i].Kind == run.PrefixAnnounced {
			s.learnRoute(&events[i].Announcement)
		}
	}
}

// Disbelief is a prefix announcement that was not learnt.
type Disbelief struct {
	Face ndn.FaceID
	Data string // name of the Data that carried it
	Err  error
}

func (s *Server) learnRoute(an *run.Announcement) {
	done := func(err error) {
		if err != nil {
			s.count.disbelieved.Add(1)
			s.disbelieved(Disbelief{an.Face, printable(an.Data), err})
		} else {
			s.count.learnt.Add(1)
		}
	}
	a, err := parseAnnouncement(an.Wire)
	if err == nil {
		err = s.learnable(&a, an.Data)
	}
	if err != nil {
		done(err)
		return
	}
	local := false
	if f, ok := s.fwd.Faces.Face(an.Face); ok {
		local = f.Scope == localScope
	}
	s.believe(an.Face, local, &a, func(why error) {
		if why == nil {
			why = s.addLearnt(&a, an)
		}
		done(why)
	})
}

// learnable says why an announcement that came with a Data is not learnt,
// whoever signed it.
func (s *Server) learnable(a *announcement, data ndn.Name) error {
	switch {
	case a.left(s.wall()) <= 0:
		return errOutdated
	case a.prefix.Len() > ndn.MaxComponents:
		return fmt.Errorf("%w: the prefix has more than 32 components", errAnnouncement)
	case !data.HasPrefix(a.prefix):
		return fmt.Errorf("%w: %s does not cover the Data that carried it", errAnnouncement, a.prefix)
	case !s.sameChoice(a.prefix, data):
		// Who was asked for /a/b has no say about all of /.
		return fmt.Errorf("%w: the strategy that learns is not that of %s", errAnnouncement, a.prefix)
	}
	return nil
}

var errOutdated = fmt.Errorf("%w: it is not valid now", errAnnouncement)

func (s *Server) addLearnt(a *announcement, an *run.Announcement) error {
	left := a.left(s.wall())
	if left <= 0 {
		return errOutdated
	}
	return s.fwd.RIB.AddRoute(run.Route{
		Prefix: a.prefix, Face: an.Face, Origin: proto.OriginPrefixAnn, Cost: announcementCost,
		ChildInherit: true, Expires: s.fwd.Internal.Now().Add(min(left, learntFor)),
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

// believe calls done with nil when a prefix announcement that came from a face
// is believed, otherwise with the reason: now, or on another goroutine when its
// certificates are there. a must not change until then.
func (s *Server) believe(in ndn.FaceID, local bool, a *announcement, done func(why error)) {
	by := s.policy.Load().announcers
	err := by.believe(a, s.wall())
	if !errors.Is(err, verify.ErrWanted) {
		done(err)
		return
	}
	then := func(failed error) {
		err := by.believe(a, s.wall())
		if err != nil && failed != nil {
			err = fmt.Errorf("%w: %w", errAnnouncer, failed)
		}
		done(err)
	}
	err = s.await(in, local, certfile.Locator(&a.data), []*verify.Verifier{by.trust}, waitingFor{then: then})
	if err != nil {
		done(fmt.Errorf("%w: %w", errAnnouncer, err))
	}
}

// errAnnouncer: a prefix announcement is not that of an announcer.
var errAnnouncer = errors.New("the announcement is not believed")

// believe decides whether a prefix announcement is believed: with announcers
// in the configuration those that one of their keys has signed, or one that
// they have certified for it; otherwise all that are whole. What it wraps is
// verify.ErrWanted when a certificate is missing.
func (p *announcers) believe(a *announcement, wall time.Time) error {
	if len(p.certs) == 0 && p.trust == nil {
		return nil
	}
	key := certfile.Locator(&a.data)
	if key == nil {
		return fmt.Errorf("%w: it names no key", errAnnouncer)
	}
	d, covered, err := spec_2022.Spec{}.ReadData(enc.NewBufferView(a.data.Wire))
	if err != nil {
		return fmt.Errorf("%w: %w", errAnnouncer, err)
	}
	why := errors.New("none of the announcers has signed it")
	for i := range p.certs {
		c := &p.certs[i]
		if !key.HasPrefix(c.Key) {
			continue
		}
		if ok, err := signer.ValidateData(d, covered, c.data); !ok || err != nil {
			why = fmt.Errorf("signed by %s: %w", c.Data.Name, verify.ErrSignature)
		} else if err := c.ValidAt(wall); err != nil {
			why = fmt.Errorf("signed by %s: %w: it %w", c.Data.Name, verify.ErrValidity, err)
		} else {
			return nil
		}
	}
	if p.trust != nil {
		if why = p.trust.Verify(context.Background(), &a.data, nil); why == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", errAnnouncer, why)
}
