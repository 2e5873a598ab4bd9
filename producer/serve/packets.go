package serve

import (
	"ndnpop/ndn"
)

// Sender is how Packets answers; an App is one.
type Sender interface {
	Send(wire []byte, f *ndn.LpFields)
}

// Packets answers Interests with Data that is made already, such as the
// certificates that a consumer of the rest needs, and leaves the others to
// another Handler.
type Packets struct {
	Handler
	out    Sender
	data   []ndn.Data
	least  []int // of each, the components that an Interest has to name
	fields ndn.LpFields
}

// NewPackets returns a Packets in front of h that sends to out.
func NewPackets(h Handler, out Sender) *Packets { return &Packets{Handler: h, out: out} }

// Add takes a Data, which is not copied. Interests with CanBePrefix get it
// when they name at least the prefix of it that has least components.
func (p *Packets) Add(d *ndn.Data, least int) {
	p.data, p.least = append(p.data, *d), append(p.least, least)
}

// Receive implements Handler.
func (p *Packets) Receive(now ndn.Time, pkt *ndn.Packet) error {
	if pkt.Kind == ndn.KindInterest {
		in := &pkt.Interest
		for i := range p.data {
			d := &p.data[i]
			if d.Name.Equal(in.Name) || in.CanBePrefix && d.Name.HasPrefix(in.Name) && in.Name.Len() >= p.least[i] {
				p.fields = ndn.LpFields{PitToken: pkt.PitToken}
				p.out.Send(d.Wire, &p.fields)
				return nil
			}
		}
	}
	return p.Handler.Receive(now, pkt)
}
