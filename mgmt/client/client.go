// Package client manages a forwarder over a socket: it sends commands, fetches
// datasets, follows face events and strategies' decisions, and blocks meanwhile. It is the driver of
// package mgmt for tools; applications that have a receive loop of their own
// use that package directly.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// ErrClosed is wrapped when the connection to the forwarder has ended.
var ErrClosed = errors.New("the connection to the forwarder ended")

// Limit is the largest dataset that is read, in bytes.
const Limit = 256 << 20

// commandTimeout is how long a command may take: longer than the forwarder
// waits for a peer that does not answer.
const commandTimeout = 15 * time.Second

// Options of a Client. The zero value is usable.
type Options struct {
	Prefix ndn.Name   // of management; nil: /localhost/nfd
	Signer ndn.Signer // of commands; nil: DigestSha256
	// Certificates are given to the forwarder when it asks for them, to verify
	// the commands. They must not change.
	Certificates []*ndn.Data
}

// Client is one connection to a forwarder. Its methods may be called from
// several goroutines; one exchange runs at a time.
type Client struct {
	prefix  ndn.Name
	signer  ndn.Signer
	certs   []*ndn.Data
	stamper mgmt.Stamper
	start   time.Time

	turn sync.Mutex // held by the exchange that runs

	sendMu sync.Mutex // guards link and out
	link   *lp.Link
	out    face.Frames
	tr     face.Server

	incoming chan packet
	closed   chan struct{}
	why      error // set before closed is closed
}

// packet is a received Data, or the Interest of a Nack, in memory of its own.
type packet struct {
	kind   ndn.Kind
	wire   []byte
	reason ndn.NackReason
}

// New makes a client of an open transport, which it owns. Close ends it.
func New(tr face.Server, o Options) *Client {
	c := &Client{
		prefix: o.Prefix, signer: o.Signer, certs: o.Certificates, start: time.Now(), tr: tr,
		link: lp.New(lp.Config{
			MTU: tr.MTU(), Fragment: !tr.Info().Stream, Application: true,
			FirstSequence: rand.Uint64(), Marking: lp.Marking{Off: true},
		}),
		incoming: make(chan packet, 64), closed: make(chan struct{}),
	}
	if c.prefix == nil {
		c.prefix = mgmt.Localhost()
	}
	go func() {
		// The reason comes through receiver.Closed.
		_ = tr.Serve(&receiver{c: c})
	}()
	return c
}

// Close ends the connection and returns when nothing of it runs any more.
func (c *Client) Close() {
	_ = c.tr.Close()
	<-c.closed
}

func (c *Client) now() ndn.Time { return ndn.Time(time.Since(c.start)) + 1 }

// receiver is the face.Receiver of a client.
type receiver struct {
	c *Client
	p ndn.Packet
}

func (r *receiver) Receive(frames [][]byte) {
	c := r.c
	for _, f := range frames {
		c.sendMu.Lock()
		ok, err := c.link.Receive(c.now(), f, &r.p)
		var p packet
		switch {
		case !ok || err != nil:
		case r.p.Kind == ndn.KindInterest:
			c.certify(&r.p)
		default:
			p = packet{r.p.Kind, bytes.Clone(r.p.Wire()), r.p.NackReason}
		}
		c.sendMu.Unlock()
		if p.wire == nil {
			continue
		}
		select {
		case c.incoming <- p:
		default: // nobody waits for it any more
		}
	}
}

// certify answers an Interest for a certificate of ours; c.sendMu is held.
func (c *Client) certify(p *ndn.Packet) {
	i := &p.Interest
	for _, d := range c.certs {
		if d.Name.Equal(i.Name) || i.CanBePrefix && d.Name.HasPrefix(i.Name) {
			c.out.Reset()
			if c.link.Send(c.now(), d.Wire, &ndn.LpFields{PitToken: p.PitToken}, &c.out) == nil {
				c.tr.Send(&c.out)
			}
			return
		}
	}
}

func (r *receiver) Flush() {}

func (r *receiver) Closed(err error) {
	r.c.why = err
	close(r.c.closed)
}

func (c *Client) send(wire []byte) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	c.out.Reset()
	if err := c.link.Send(c.now(), wire, nil, &c.out); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	// What the transport's queue drops is asked for again after a while.
	c.tr.Send(&c.out)
	return nil
}

// exchange lets on take packets until it reports that it is done, calling tick
// when the time that tick last returned has come.
func (c *Client) exchange(ctx context.Context, tick func(now ndn.Time) (next ndn.Time, done bool, err error), on func(p *packet)) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	// What came too late for the exchange before.
	for len(c.incoming) > 0 {
		<-c.incoming
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, done, err := tick(c.now())
		if done || err != nil {
			return err
		}
		wait := time.Hour
		if next != ndn.Never {
			wait = max(next.Sub(c.now()), 0)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.closed:
			return fmt.Errorf("%w: %w", ErrClosed, c.why)
		case p := <-c.incoming:
			on(&p)
		case <-timer.C:
		}
	}
}

// Command sends a command and returns the answer, whatever its code.
// mgmt.ErrTimeout and mgmt.ErrNack say that there was none.
func (c *Client) Command(ctx context.Context, module, verb string, p *mgmt.ControlParameters) (mgmt.ControlResponse, error) {
	var resp mgmt.ControlResponse
	var name ndn.Name
	var failed error
	answered := false
	until := c.now().Add(commandTimeout)
	err := c.exchange(ctx, func(now ndn.Time) (ndn.Time, bool, error) {
		switch {
		case failed != nil:
			return 0, true, failed
		case answered:
			return 0, true, nil
		case now >= until:
			return 0, true, fmt.Errorf("%w to %s/%s within %v", mgmt.ErrTimeout, module, verb, commandTimeout)
		}
		if name == nil {
			wire, err := mgmt.AppendSignedCommand(nil, c.prefix, module, verb, p, c.stamper.Stamp(time.Now(), rand.Uint64()), c.signer)
			if err != nil {
				return 0, true, err
			}
			var i ndn.Interest
			if err := i.Parse(wire); err != nil {
				return 0, true, err
			}
			name = i.Name.Clone()
			until = now.Add(commandTimeout)
			return until, false, c.send(wire)
		}
		return until, false, nil
	}, func(p *packet) {
		switch p.kind {
		case ndn.KindData:
			var d ndn.Data
			if d.Parse(p.wire) == nil && d.Name.Equal(name) {
				resp, failed = mgmt.ParseResponse(&d)
				answered = true
			}
		case ndn.KindNack:
			var i ndn.Interest
			if i.Parse(p.wire) == nil && i.Name.Equal(name) {
				failed = fmt.Errorf("%w (nack %s)", mgmt.ErrNack, p.reason)
			}
		}
	})
	return resp, err
}

// Dataset fetches the dataset module/verb and returns its content; filter is
// the value of the component after it, nil for none.
func (c *Client) Dataset(ctx context.Context, module, verb string, filter []byte) ([]byte, error) {
	name := c.prefix.Clone().AppendGeneric(module).AppendGeneric(verb)
	if filter != nil {
		name = ndn.AppendTLV(name, ndn.TypeGeneric, filter)
	}
	f := mgmt.NewFetch(name, Limit)
	err := c.exchange(ctx, func(now ndn.Time) (ndn.Time, bool, error) {
		f.Tick(now)
		for wire := f.Next(now, rand.Uint32()); wire != nil; wire = f.Next(now, rand.Uint32()) {
			if err := c.send(wire); err != nil {
				return 0, true, err
			}
		}
		return f.Deadline(), f.Done(), nil
	}, func(p *packet) {
		switch p.kind {
		case ndn.KindData:
			var d ndn.Data
			if d.Parse(p.wire) == nil {
				f.Receive(&d)
			}
		case ndn.KindNack:
			var i ndn.Interest
			if i.Parse(p.wire) == nil {
				f.Nack(i.Name, p.reason)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return f.Content()
}
