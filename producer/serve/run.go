package serve

import (
	"context"
	"fmt"
	"time"
)

// Back-off between attempts to reach the forwarder again.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// refresh is how often routes are registered again over a transport that
// does not tell when the forwarder restarts.
const refresh = 30 * time.Second

// Run serves h until ctx ends, and returns nil then. It fails when the
// forwarder cannot be used at the start: with an error that Is ErrUnreachable,
// ErrNoAnswer or ErrNoManagement, or a *mgmt.StatusError. Once it has served
// it does not give up: when the connection ends it connects and registers
// anew.
func (a *App) Run(ctx context.Context, h Handler) error {
	a.mu.Lock()
	a.handler = h
	a.mu.Unlock()
	defer a.stop()
	served := false
	for wait := firstWait; ; {
		c, err := a.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			if c != nil {
				c.end()
			}
			return nil
		case err != nil && !served:
			return err
		case err != nil:
			a.report(Event{Kind: Failed, Err: err, Wait: wait})
		default:
			served, wait = true, firstWait
			a.report(Event{Kind: Ready})
			err = a.stay(ctx, c)
			c.end()
			if ctx.Err() != nil {
				return nil
			}
			a.report(Event{Kind: Lost, Err: err, Wait: wait})
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		wait = min(2*wait, lastWait)
	}
}

// attempt connects and registers. On an error nothing is left open.
func (a *App) attempt(ctx context.Context) (*connection, error) {
	s, err := a.cfg.Dial()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	c := a.connect(s)
	if err := a.register(ctx, c); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// stay waits for the end of the connection or of ctx.
func (a *App) stay(ctx context.Context, c *connection) error {
	var again <-chan time.Time
	if !c.server.Info().Stream && len(a.cfg.Prefixes) > 0 {
		t := time.NewTicker(refresh)
		defer t.Stop()
		again = t.C
	}
	for {
		select {
		case <-ctx.Done():
			a.unregister(c)
			return nil
		case <-c.ended:
			return c.err
		case <-again:
			if err := a.register(ctx, c); err != nil {
				return err
			}
		}
	}
}

// stop ends the timer.
func (a *App) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
