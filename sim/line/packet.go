package line

import "encoding/binary"

// VnetHeader is the length in bytes of the virtio header in front of each
// packet of a device with IFF_VNET_HDR (struct virtio_net_hdr, linux/virtio_net.h).
const VnetHeader = 10

// Fields of the virtio header, all in native byte order.
const (
	vnetGSOType   = 1 // byte
	vnetGSOSize   = 4 // uint16, payload bytes per segment
	vnetCsumStart = 6 // uint16, where the transport header starts

	gsoTCP4, gsoTCP6, gsoUDP = 1, 4, 5
	gsoECN                   = 0x80 // flag beside the TCP types
)

// Packet is an IP packet, or a super-packet of several segments, as a device
// gave it. It belongs to the Line that it was pushed to.
type Packet struct {
	buf  []byte
	vnet int // bytes of virtio header
	n    int // segments
	size int // payload bytes of every segment but the last
	l4   int // offset of the transport header
	hdr  int // offset of the payload
	udp  bool
	refs int // runs and transits that point here
}

// parse finds the segments. What it does not understand is one segment.
func (p *Packet) parse() {
	b := p.buf
	p.n = 1
	if p.vnet == 0 || len(b) < VnetHeader+20 {
		return
	}
	t := b[vnetGSOType] &^ gsoECN
	size := int(binary.NativeEndian.Uint16(b[vnetGSOSize:]))
	l4 := VnetHeader + int(binary.NativeEndian.Uint16(b[vnetCsumStart:]))
	if size == 0 || l4+20 > len(b) && (t != gsoUDP || l4+8 > len(b)) {
		return
	}
	ip := b[VnetHeader:]
	switch ip[0] >> 4 {
	case 4:
		if h := int(ip[0]&15) * 4; h < 20 || VnetHeader+h != l4 {
			return
		}
	case 6:
		if l4 < VnetHeader+40 {
			return
		}
	default:
		return
	}
	var hdr int
	switch t {
	case gsoTCP4, gsoTCP6:
		hdr = l4 + int(b[l4+12]>>4)*4
		if hdr < l4+20 {
			return
		}
	case gsoUDP:
		hdr = l4 + 8
	default:
		return
	}
	if hdr >= len(b) {
		return
	}
	p.n, p.size, p.l4, p.hdr, p.udp = (len(b)-hdr+size-1)/size, size, l4, hdr, t == gsoUDP
}

// wire is the size in bytes of segment i as an IP packet.
func (p *Packet) wire(i int) int {
	if p.n == 1 {
		return len(p.buf) - p.vnet
	}
	return p.hdr - p.vnet + min(p.size, len(p.buf)-p.hdr-i*p.size)
}

// bytes returns segments [i, j) as a packet of their own: the buffer itself
// when that is all of it, otherwise built in scratch with lengths, IP
// identification, TCP sequence number and flags, and checksums put right.
func (p *Packet) bytes(scratch []byte, i, j int) []byte {
	if i == 0 && j == p.n {
		return p.buf
	}
	b := p.buf
	o := append(scratch[:0], b[:p.hdr]...)
	o = append(o, b[p.hdr+i*p.size:min(len(b), p.hdr+j*p.size)]...)
	if j-i == 1 {
		o[vnetGSOType] = 0
		binary.NativeEndian.PutUint16(o[vnetGSOSize:], 0)
	}
	ip := o[p.vnet:]
	if ip[0]>>4 == 4 {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(i))
		ip[10], ip[11] = 0, 0
		var s uint32
		for k := 0; k < int(ip[0]&15)*4; k += 2 {
			s += uint32(binary.BigEndian.Uint16(ip[k:]))
		}
		binary.BigEndian.PutUint16(ip[10:], ^fold(s))
	} else {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	}
	l4 := o[p.l4:]
	sum := l4[6:]
	if p.udp {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	} else {
		sum = l4[16:]
		binary.BigEndian.PutUint32(l4[4:], binary.BigEndian.Uint32(l4[4:])+uint32(i*p.size))
		if j < p.n {
			l4[13] &^= 0x09 // FIN and PSH belong to the last segment
		}
		if i > 0 {
			l4[13] &^= 0x80 // CWR to the first
		}
	}
	// The field holds the folded sum of the pseudo header, for the receiver or
	// its hardware to complete: only the length in it changes (RFC 1624).
	s := uint32(binary.BigEndian.Uint16(sum)) + uint32(len(l4)) + uint32(^uint16(len(b)-p.l4))
	binary.BigEndian.PutUint16(sum, fold(s))
	return o
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// classes are the capacities of pooled buffers; the largest holds any packet.
var classes = [...]int{256, 1280, 2304, 4864, 9728, MaxPacket}

// MaxPacket is the largest packet in bytes, virtio header included.
const MaxPacket = 72 << 10

// maxPooled bounds the bytes that lie in a pool.
const maxPooled = 32 << 20

// Pool recycles packets. It is shared by the lines of one driver and, like
// them, is not safe for concurrent use.
type Pool struct {
	free   [len(classes)][]*Packet
	pooled int
	out    int // packets that lines hold
}

// Packet copies b, which has a virtio header in front if vnet.
// It is at most MaxPacket long.
func (o *Pool) Packet(b []byte, vnet bool) *Packet {
	p := o.Get(len(b))
	p.buf = append(p.buf, b...)
	if vnet {
		p.vnet = VnetHeader
	}
	p.parse()
	return p
}

// Get returns an empty packet with room for n bytes, at most MaxPacket, to be
// filled by way of Bytes and Fill, and pushed.
func (o *Pool) Get(n int) *Packet {
	c := 0
	for n > classes[c] {
		c++
	}
	var p *Packet
	if f := o.free[c]; len(f) > 0 {
		p = f[len(f)-1]
		o.free[c] = f[:len(f)-1]
		o.pooled -= classes[c]
		*p = Packet{buf: p.buf[:0]}
	} else {
		p = newPacket(c)
	}
	o.out++
	p.n = 1
	return p
}

// newPacket makes one of a class. Small ones lie beside their memory: whoever
// looks at the one has the other at hand.
func newPacket(class int) *Packet {
	switch class {
	case 0:
		m := new(struct {
			Packet
			room [256]byte
		})
		m.buf = m.room[:0]
		return &m.Packet
	case 1:
		m := new(struct {
			Packet
			room [1280]byte
		})
		m.buf = m.room[:0]
		return &m.Packet
	}
	return &Packet{buf: make([]byte, 0, classes[class])}
}

// Put takes back a packet that was not pushed.
func (o *Pool) Put(p *Packet) { o.release(p) }

// Bytes is the packet's memory: empty after Get, to append to.
func (p *Packet) Bytes() []byte { return p.buf }

// Fill makes b, which was appended to Bytes, the packet.
func (p *Packet) Fill(b []byte) { p.buf = b }

// release drops one reference.
func (o *Pool) release(p *Packet) {
	if p.refs--; p.refs > 0 {
		return
	}
	o.out--
	for c, size := range classes {
		if cap(p.buf) == size && o.pooled+size <= maxPooled {
			o.free[c] = append(o.free[c], p)
			o.pooled += size
			return
		}
	}
}
