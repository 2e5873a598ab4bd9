package ping

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
	"ndnpop/producer"
)

// ServerOptions of a Server.
type ServerOptions struct {
	Prefix    ndn.Name
	Freshness time.Duration
	Size      int    // bytes of content in each answer
	Limit     uint64 // pings to answer; 0 means no end
}

// Server answers pings.
type Server struct {
	opts     ServerOptions
	base     ndn.Name
	out      Sender
	report   func(name ndn.Name)
	answered uint64
	payload  []byte
	buf      []byte
}

// ErrSize says that the content does not fit into a packet.
var ErrSize = errors.New("ping: bad payload size")

// NewServer returns a server. report, if not nil, hears the name of each
// ping, a view that is valid during the call.
func NewServer(o ServerOptions, out Sender, report func(ndn.Name)) (*Server, error) {
	most, err := producer.MaxSegmentSize(Name(o.Prefix), ndn.DigestSigner{})
	if err != nil {
		return nil, err
	}
	if o.Size < 0 || o.Size > most {
		return nil, fmt.Errorf("%w: %d bytes, it should be 0 to %d", ErrSize, o.Size, most)
	}
	if report == nil {
		report = func(ndn.Name) {}
	}
	return &Server{
		opts: o, base: Name(o.Prefix), out: out, report: report,
		payload: bytes.Repeat([]byte{'a'}, o.Size),
	}, nil
}

// Answered is the number of pings answered.
func (s *Server) Answered() uint64 { return s.answered }

// Done reports that the limit is reached.
func (s *Server) Done() bool { return s.opts.Limit > 0 && s.answered >= s.opts.Limit }

// Receive answers an Interest under /<prefix>/ping.
func (s *Server) Receive(_ ndn.Time, p *ndn.Packet) error {
	if p.Kind != ndn.KindInterest || s.Done() {
		return nil
	}
	name := p.Interest.Name
	if _, n, ok := p.Interest.ImplicitDigest(); ok {
		name = n
	}
	if !name.HasPrefix(s.base) {
		return nil
	}
	b, err := ndn.AppendData(s.buf[:0], &ndn.DataFields{
		Name: name, Freshness: s.opts.Freshness, Content: s.payload,
	}, ndn.DigestSigner{})
	if err != nil {
		return err
	}
	s.buf = b
	s.report(name)
	s.answered++
	s.out.Send(b, &ndn.LpFields{PitToken: p.PitToken})
	return nil
}

// Deadline is never: a server does nothing of itself.
func (s *Server) Deadline() ndn.Time { return ndn.Never }

// Tick does nothing.
func (s *Server) Tick(ndn.Time) {}
