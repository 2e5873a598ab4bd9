package mgmt

import (
	"context"
	"time"

	"ndnpop/fw/run"
	"ndnpop/ndn"
)

// Run publishes the forwarder's events and sends what is due to the routing
// daemon, until ctx ends; it then waits for the commands that still wait for a
// peer, and gives up those that wait for a certificate.
func (s *Server) Run(ctx context.Context) {
	defer s.pending.Wait()
	defer func() {
		for _, k := range s.keys {
			k.close()
		}
	}()
	defer s.install(false)
	// Routes of before the first event; what the events say later about the
	// same routes is newer.
	routes := s.fwd.RIB.Routes()
	s.mu.Lock()
	for i := range routes {
		s.adverts.route(&routes[i], true)
	}
	s.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queue.wake:
		case <-timer.C:
		}
		now := s.fwd.Internal.Now()
		deadline := s.work(now)
		wait := time.Hour
		if deadline != ndn.Never {
			wait = max(deadline.Sub(now), 0)
		}
		timer.Reset(wait)
	}
}

// work does what is to be done now and returns when there will be more.
func (s *Server) work(now ndn.Time) ndn.Time {
	events := s.queue.take()
	s.learn(events)
	s.mu.Lock()
	next := s.publish(now, events)
	follow := len(s.traces.streams) > 0
	s.mu.Unlock()
	s.install(follow)
	return next
}

// publish tells what has happened to those who want to know; s.mu is held.
func (s *Server) publish(now ndn.Time, events []run.Event) ndn.Time {
	for _, e := range events {
		switch e.Kind {
		case run.RouteAdded:
			s.adverts.route(&e.Route, true)
		case run.RouteRemoved:
			s.adverts.route(&e.Route, false)
		default:
			if n, ok := faceEvent(&e); ok {
				s.events.publish(now, n.AppendTo(nil))
			}
		}
	}
	s.sendAdverts(now)
	return min(s.adverts.deadline(), s.traces.work(now))
}
