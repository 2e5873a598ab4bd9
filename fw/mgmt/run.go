package mgmt

import (
	"context"
	"time"

	"ndnpop/fw/run"
	"ndnpop/ndn"
)

// Run publishes the forwarder's events and sends what is due to the routing
// daemon, until ctx ends; it then waits for the commands that still wait for a
// peer.
func (s *Server) Run(ctx context.Context) {
	defer s.pending.Wait()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.queue.take() {
		switch e.Kind {
		case run.RouteAdded:
			s.adverts.route(&e.Route, true)
		case run.RouteRemoved:
			s.adverts.route(&e.Route, false)
		default:
			if n, ok := faceEvent(&e); ok {
				s.events.publish(now, &n)
			}
		}
	}
	s.sendAdverts(now)
	return s.adverts.deadline()
}
