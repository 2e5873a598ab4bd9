package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/face"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// Errors of registration, beside the *mgmt.StatusError of a refusal.
var (
	// ErrNoAnswer: the forwarder answers no management command.
	ErrNoAnswer = errors.New("the forwarder does not answer")
	// ErrNoManagement: it has nobody to answer it.
	ErrNoManagement = errors.New("the forwarder has no management to register prefixes with")
	// ErrRemote wraps these two when the transport is not local to the
	// forwarder, which then has to allow registrations at /localhop/nfd.
	ErrRemote = errors.New("over this transport we are a remote host to the forwarder")
)

// command is a management command that awaits its answer.
type command struct {
	name   ndn.Name // nil: none
	answer chan error
}

// take reports whether p answers the command, and if so passes that on.
func (c *command) take(p *ndn.Packet) bool {
	if c.name == nil {
		return false
	}
	var err error
	switch {
	case p.Kind == ndn.KindData && p.Data.Name.HasPrefix(c.name):
		var r mgmt.ControlResponse
		if r, err = mgmt.ParseResponse(&p.Data); err == nil {
			err = r.Err()
		}
	case p.Kind == ndn.KindNack && p.Interest.Name.Equal(c.name):
		err = fmt.Errorf("%w (Nack %s)", ErrNoManagement, p.NackReason)
	default:
		return false
	}
	c.answer <- err
	c.name = nil
	return true
}

// attempts is how often an unanswered command is sent.
const attempts = 3

// register registers all prefixes.
func (a *App) register(ctx context.Context, c *connection) error {
	for _, p := range a.cfg.Prefixes {
		err := ErrNoAnswer
		for try := 0; try < attempts && errors.Is(err, ErrNoAnswer); try++ {
			err = a.run(ctx, c, "register", registration(p, a.cfg.Origin))
		}
		if err == nil {
			continue
		}
		if c.server.Info().Scope != face.ScopeLocal && (errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrNoManagement)) {
			err = fmt.Errorf("%w: %w", ErrRemote, err)
		}
		return fmt.Errorf("registering %s: %w", p, err)
	}
	return nil
}

// registration is the command for a prefix. The route is not inherited by
// longer prefixes: this application would deny what another one publishes
// there.
func registration(prefix ndn.Name, origin uint64) *mgmt.ControlParameters {
	p := mgmt.Register(prefix, origin, 0)
	p.Flags = optional.Some(uint64(0))
	return p
}

// run sends one command and waits for the answer.
func (a *App) run(ctx context.Context, c *connection, verb string, p *mgmt.ControlParameters) error {
	answer := make(chan error, 1)
	a.Do(func(ndn.Time) { a.sendCommand(c, verb, p, answer) })
	defer a.Do(func(ndn.Time) { a.command = command{} })
	timeout := time.NewTimer(mgmt.Lifetime)
	defer timeout.Stop()
	select {
	case err := <-answer:
		return err
	case <-timeout.C:
		return ErrNoAnswer
	case <-c.ended:
		return fmt.Errorf("%w: %w", ErrUnreachable, c.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sendCommand sends a command of the rib module. Over the network only
// /localhop reaches the forwarder.
func (a *App) sendCommand(c *connection, verb string, p *mgmt.ControlParameters, answer chan error) {
	prefix := mgmt.Localhop()
	if c.server.Info().Scope == face.ScopeLocal {
		prefix = mgmt.Localhost()
	}
	wire, err := mgmt.AppendSignedCommand(nil, prefix, "rib", verb, p, a.stamper.Stamp(time.Now(), rand.Uint64()), a.cfg.Signer)
	var i ndn.Interest
	if err == nil {
		err = i.Parse(wire)
	}
	if err != nil {
		answer <- err
		return
	}
	a.command = command{i.Name, answer}
	a.Send(wire, nil)
}

// unregister takes the routes back, without waiting for an answer. A stream's
// end says the same to the forwarder.
func (a *App) unregister(c *connection) {
	if c.server.Info().Stream {
		return
	}
	a.Do(func(ndn.Time) {
		for _, p := range a.cfg.Prefixes {
			a.sendCommand(c, "unregister", mgmt.Unregister(p, a.cfg.Origin), make(chan error, 1))
		}
		a.command = command{}
	})
}
