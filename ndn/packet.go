package ndn

// Kind is the kind of a network packet.
type Kind uint8

// Kinds of network packets.
const (
	KindInterest Kind = iota + 1
	KindData
	KindNack
)

// Packet is one whole network packet as it came off a link: a view of an
// Interest, Data or Nack, with the link header fields that travel with it.
type Packet struct {
	LpFields
	Kind     Kind
	Interest Interest // for KindInterest, and the Interest that a Nack returns
	Data     Data
}

// Parse makes p a view of the network packet net, that came with the link
// header fields f. It copies f.
func (p *Packet) Parse(net []byte, f *LpFields) error {
	p.LpFields = *f
	t, _, _, err := ReadTL(net)
	if err != nil {
		return err
	}
	switch t {
	case TypeInterest:
		p.Kind = KindInterest
		if f.IsNack {
			p.Kind = KindNack
		}
		return p.Interest.Parse(net)
	case TypeData:
		if f.IsNack {
			return ErrType
		}
		p.Kind = KindData
		return p.Data.Parse(net)
	}
	return ErrType
}

// Wire is the network packet's own bytes.
func (p *Packet) Wire() []byte {
	if p.Kind == KindData {
		return p.Data.Wire
	}
	return p.Interest.Wire
}
