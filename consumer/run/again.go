package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/face"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// Other copies of a packet that is wrong: how many are looked at, and how long
// is waited before the first; twice as long before each later one.
const (
	againCopies = 3
	againPause  = 100 * time.Millisecond
)

// another gets a copy of a packet, of which a wrong one came, that check accepts.
//
// Whoever keeps the wrong one would answer with it again. The own forwarder is
// told to forget it, and others are asked for what is fresh, at first, so that
// they do not answer with what they have kept for longer than its producer
// wants. Where there are replicas, the copies are asked for at one after the
// other.
func (d *driver) another(ctx context.Context, name ndn.Name, check func(*ndn.Data) error) ([]byte, error) {
	var last error
	pause := againPause
	for i := range againCopies {
		d.mu.Lock()
		d.disown(name)
		d.mu.Unlock()
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("%w: %w", context.Canceled, context.Cause(ctx))
		}
		pause *= 2
		wire, err := d.fetch(ctx, name, true, func(attempt int) (bool, []ndn.Name) {
			return attempt%2 == 0, d.hint(i + attempt)
		})
		if err != nil {
			if last == nil || ctx.Err() != nil {
				last = err
			}
			return nil, last
		}
		var p ndn.Data
		if err := p.Parse(wire); err != nil || !p.Name.Equal(name) {
			last = fmt.Errorf("%w: %s is malformed", errDigest, name)
			continue
		}
		if last = check(&p); last == nil {
			return wire, nil
		}
	}
	return nil, last
}

// hint is the forwarding hint of the nth attempt.
func (d *driver) hint(n int) []ndn.Name {
	if n %= len(d.replicas) + 1; n > 0 {
		return d.replicas[n-1].Hint
	}
	return nil
}

// disown tells the own forwarder to forget a Data that is wrong, with a command
// whose answer does not matter: not everybody may give it, and not every
// forwarder has a content store. The lock is held.
func (d *driver) disown(name ndn.Name) {
	if d.tr.Info().Scope != face.ScopeLocal {
		return
	}
	p := &mgmt.ControlParameters{Name: optional.Some(name), Count: optional.Some(uint64(1))}
	now := d.now()
	d.buf = mgmt.AppendCommand(d.buf[:0], mgmt.Localhost(), "cs", "erase", p, d.stamper.Stamp(time.Now(), rand.Uint64()))
	if d.link.Send(now, d.buf, nil, &d.frames) == nil {
		d.tr.Send(&d.frames)
		d.frames.Reset()
	}
}
