package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"ndnpop/ndn"
)

// ErrNoAnswer: nobody answered an Interest beside the fetch.
var ErrNoAnswer = errors.New("nobody answers")

// Attempts at an Interest beside the fetch, and how long the first one waits;
// each later one waits as much longer. The Interests live longer than that, so
// that forwarders know a retransmission and try another way.
const (
	askAttempts = 4
	askWait     = 500 * time.Millisecond
	askLifetime = ndn.DefaultLifetime
)

// ask is an Interest beside the fetch's, for a certificate or a part of the
// manifest, and its answer.
type ask struct {
	name  ndn.Name
	exact bool // not for a newest version, of which name is a prefix
	fresh bool
	hint  []ndn.Name
	nonce uint32
	got   chan answer
}

type answer struct {
	wire []byte
	err  error
}

// ask gets the Data with a name of which name is a prefix, over the
// connection of the fetch. It is called from a goroutine that may wait.
func (d *driver) ask(ctx context.Context, name ndn.Name) ([]byte, error) {
	return d.fetch(ctx, name, false, func(int) (bool, []ndn.Name) { return true, nil })
}

// get gets the Data with a name, as ask.
func (d *driver) get(ctx context.Context, name ndn.Name) ([]byte, error) {
	return d.fetch(ctx, name, true, func(int) (bool, []ndn.Name) { return false, nil })
}

// fetch asks several times. how says of each whether it asks for fresh Data, and
// under which forwarding hint.
func (d *driver) fetch(ctx context.Context, name ndn.Name, exact bool, how func(attempt int) (fresh bool, hint []ndn.Name)) ([]byte, error) {
	var last error
	for i := range time.Duration(askAttempts) {
		a := &ask{name: name.Clone(), exact: exact, nonce: rand.Uint32(), got: make(chan answer, 1)}
		a.fresh, a.hint = how(int(i))
		d.mu.Lock()
		d.asks = append(d.asks, a)
		err := d.sendAsk(a)
		d.mu.Unlock()
		if err != nil {
			return nil, err
		}
		t := time.NewTimer((i + 1) * askWait)
		select {
		case r := <-a.got:
			if r.err == nil {
				t.Stop()
				return r.wire, nil
			}
			// Where there is no route now, there may be one in a moment.
			last = r.err
			select {
			case <-t.C:
			case <-ctx.Done():
			}
		case <-t.C:
			last = fmt.Errorf("%w in %v", ErrNoAnswer, askAttempts*(askAttempts+1)/2*askWait)
		case <-ctx.Done():
		}
		t.Stop()
		d.forget(a)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", context.Canceled, context.Cause(ctx))
		}
		if errors.Is(last, errRefused) {
			break
		}
	}
	return nil, last
}

func (d *driver) sendAsk(a *ask) error {
	now := d.now()
	wire := ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: a.name, CanBePrefix: !a.exact, MustBeFresh: a.fresh, ForwardingHint: a.hint, Nonce: a.nonce, Lifetime: askLifetime,
	})
	if err := d.link.Send(now, wire, nil, &d.frames); err != nil {
		return err
	}
	d.tr.Send(&d.frames)
	d.frames.Reset()
	return nil
}

func (d *driver) forget(a *ask) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, x := range d.asks {
		if x == a {
			d.asks = append(d.asks[:i], d.asks[i+1:]...)
			return
		}
	}
}

// errRefused: the producer says that there is none.
var errRefused = errors.New("the producer has none")

// answered hands the packet in d.p to whoever asked for it, and reports
// whether anybody did.
func (d *driver) answered() bool {
	found := false
	keep := d.asks[:0]
	for _, a := range d.asks {
		var r answer
		switch p := &d.p; {
		case p.Kind == ndn.KindNack && p.Interest.Nonce == a.nonce && p.Interest.Name.Equal(a.name):
			r.err = fmt.Errorf("the network refuses with %s", p.NackReason)
		case p.Kind == ndn.KindData && p.Data.Name.HasPrefix(a.name) && p.Data.ContentType == ndn.ContentNack:
			r.err = errRefused
		case p.Kind == ndn.KindData && p.Data.Name.HasPrefix(a.name):
			r.wire = bytes.Clone(p.Data.Wire)
		default:
			keep = append(keep, a)
			continue
		}
		found = true
		a.got <- r
	}
	clear(d.asks[len(keep):])
	d.asks = keep
	return found
}
