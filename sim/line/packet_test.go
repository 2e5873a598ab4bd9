package line

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"ndnpop/ndn"

	"pgregory.net/rapid"
)

// superPacket builds what the kernel gives: virtio header, IP, TCP or UDP with
// only the pseudo header summed, and payload to cut into segments of size.
func superPacket(v6, udp bool, payload []byte, size int) []byte {
	ipLen, l4Len, proto := 20, 32, byte(6) // TCP with 12 bytes of options
	if v6 {
		ipLen = 40
	}
	if udp {
		l4Len, proto = 8, 17
	}
	b := make([]byte, VnetHeader+ipLen+l4Len, VnetHeader+ipLen+l4Len+len(payload))
	b[0] = 1 // needs checksum
	switch {
	case udp:
		b[1] = gsoUDP
	case v6:
		b[1] = gsoTCP6 | gsoECN
	default:
		b[1] = gsoTCP4
	}
	binary.NativeEndian.PutUint16(b[4:], uint16(size))
	binary.NativeEndian.PutUint16(b[6:], uint16(ipLen))
	b = append(b, payload...)
	ip, l4 := b[VnetHeader:], b[VnetHeader+ipLen:]
	if v6 {
		ip[0], ip[6] = 0x60, proto
		binary.BigEndian.PutUint16(ip[4:], uint16(len(l4)))
		copy(ip[8:], "source-of-packetdest-of-packets.")
	} else {
		ip[0], ip[9] = 0x45, proto
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], 0xfffe)
		copy(ip[12:], "srcadstb")
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip[:20])))
	}
	if udp {
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
		binary.BigEndian.PutUint16(l4[6:], fold(pseudo(ip, len(l4))))
	} else {
		binary.BigEndian.PutUint32(l4[4:], 0xffff_ff00)
		l4[12], l4[13] = 8<<4, 0x10|0x80|0x09 // ACK CWR PSH FIN
		binary.BigEndian.PutUint16(l4[16:], fold(pseudo(ip, len(l4))))
	}
	return b
}

func sum(b []byte) (s uint32) {
	for i := 0; i < len(b); i += 2 {
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
		s += uint32(b[i]) << 8
	}
	return s
}

func pseudo(ip []byte, l4len int) uint32 {
	if ip[0]>>4 == 6 {
		return sum(ip[8:40]) + uint32(ip[6]) + uint32(l4len)
	}
	return sum(ip[12:20]) + uint32(ip[9]) + uint32(l4len)
}

// TestSuperPacketSplitsLikeTheKernelWould sends super-packets through a link
// with random losses, rates and changes of rate, and compares what comes out,
// segment by segment, with the payload that must be in it.
func TestSuperPacketSplitsLikeTheKernelWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v6, udp := rapid.Bool().Draw(t, "v6"), rapid.Bool().Draw(t, "udp")
		size := rapid.IntRange(100, 1448).Draw(t, "size")
		payload := make([]byte, rapid.IntRange(1, 40*size).Draw(t, "payload"))
		for i := range payload {
			payload[i] = byte(i * 7 >> 3)
		}
		p := Params{Loss: rapid.SampledFrom([]float64{0, .1, .9}).Draw(t, "loss"), Rate: rapid.SampledFrom([]int64{0, 1e6, 40e6, 1e9}).Draw(t, "rate"), Queue: 100_000}
		b := superPacket(v6, udp, payload, size)
		n := (len(payload) + size - 1) / size
		pool := new(Pool)
		seed := rapid.Uint64().Draw(t, "seed")
		l, _ := New(p, pool, seed, 1)
		plain, _ := New(p, pool, seed, 1)
		want := map[int]bool{} // the segments that the same line would let pass one by one
		for i := range n {
			plain.Push(1, numbered(pool, i, 8))
		}
		for _, a := range runUntil(plain, ndn.Never-1) {
			want[a.id] = true
		}
		plain.Reset(0, 0)
		l.Push(1, pool.Packet(b, true))
		next, bytesOut := 0, int64(0)
		for step := 0; l.Deadline() != ndn.Never; step++ {
			if step == 1 {
				p.Rate = rapid.SampledFrom([]int64{0, 1e6, 80e6}).Draw(t, "rate2")
				if err := l.SetParams(l.Deadline()-1, p); err != nil {
					t.Fatal(err)
				}
			}
			now := l.Deadline()
			for o, ok := l.Deliver(now); ok; o, ok = l.Deliver(now) {
				for !want[next] {
					next++
				}
				k := checkPiece(t, o, b, payload, size, next)
				for range k {
					if !want[next] {
						t.Fatalf("segment %d should be lost", next)
					}
					delete(want, next)
					next++
				}
				bytesOut += int64(len(o)-VnetHeader) + int64(k-1)*int64(len(b)-VnetHeader-len(payload))
			}
		}
		if len(want) != 0 || pool.out != 0 {
			t.Fatalf("segments %v missing, %d packets leaked", want, pool.out)
		}
		if c := l.Counters(); c.InPackets != int64(n) || c.OutPackets+c.LossDrops != int64(n) || c.OutBytes != bytesOut {
			t.Fatalf("%d segments, %d bytes out, %+v", n, bytesOut, c)
		}
	})
}

// checkPiece checks that o is a well-formed packet with the segments of b from
// first on, and returns how many.
func checkPiece(t *rapid.T, o, b, payload []byte, size, first int) int {
	head := len(b) - len(payload)
	body := o[head:]
	k := (len(body) + size - 1) / size
	if end := min(len(payload), (first+k)*size); !bytes.Equal(body, payload[first*size:end]) {
		t.Fatalf("payload of segments %d to %d is wrong", first, first+k)
	}
	if multi := o[1] != 0; multi != (k > 1) && len(o) != len(b) {
		t.Fatalf("GSO type %d with %d segments", o[1], k)
	}
	ip := o[VnetHeader:]
	l4 := o[VnetHeader+int(binary.NativeEndian.Uint16(o[6:])):]
	if ip[0]>>4 == 4 {
		if int(binary.BigEndian.Uint16(ip[2:])) != len(ip) || fold(sum(ip[:20])) != 0xffff {
			t.Fatal("IPv4 length or checksum is wrong")
		}
		if id := binary.BigEndian.Uint16(ip[4:]); id != 0xfffe+uint16(first) {
			t.Fatalf("IP identification %x in segment %d", id, first)
		}
	} else if int(binary.BigEndian.Uint16(ip[4:])) != len(ip)-40 {
		t.Fatal("IPv6 length is wrong")
	}
	field := l4[6:]
	if ip[6] == 17 || ip[9] == 17 && ip[0]>>4 == 4 {
		if int(binary.BigEndian.Uint16(l4[4:])) != len(l4) {
			t.Fatal("UDP length is wrong")
		}
	} else {
		field = l4[16:]
		if seq := binary.BigEndian.Uint32(l4[4:]); seq != 0xffff_ff00+uint32(first*size) {
			t.Fatalf("sequence number %x in segment %d", seq, first)
		}
		last := first+k == (len(payload)+size-1)/size
		if fin, cwr := l4[13]&0x09 == 0x09, l4[13]&0x80 != 0; fin != last || cwr != (first == 0) {
			t.Fatalf("flags %x, first %v, last %v", l4[13], first == 0, last)
		}
	}
	if binary.BigEndian.Uint16(field) != fold(pseudo(ip, len(l4))) {
		t.Fatal("the partial checksum is not the sum of the pseudo header")
	}
	return k
}

func TestSuperPacketKeepsRateAndSplitsByTime(t *testing.T) {
	l, pool := newLine(t, Params{Rate: 100e6})
	l.Push(ms, pool.Packet(superPacket(false, false, make([]byte, 20*1448), 1448), true))
	wire := 20 * 8 * (1448 + 52)
	var last ndn.Time
	pieces := 0
	for l.Deadline() != ndn.Never {
		last = l.Deadline()
		if b, ok := l.Deliver(last); ok {
			pieces++
			if took := time.Duration(len(b) * 80); took > ChunkTime+ChunkTime/10 {
				t.Errorf("a piece of %v", took)
			}
		}
	}
	if took := last - ms; took != ndn.Time(wire*10) || pieces != 10 {
		t.Errorf("%d pieces in %v, want 10 in %v", pieces, took, wire*10)
	}
}

// FuzzParse checks that no content of a device's packet breaks the segmenting.
func FuzzParse(f *testing.F) {
	f.Add(superPacket(false, false, make([]byte, 3000), 1448))
	f.Add(superPacket(true, true, make([]byte, 3000), 1400))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > MaxPacket {
			return
		}
		pool := new(Pool)
		l, err := New(Params{Rate: 1e6, Loss: .3}, pool, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		l.Push(1, pool.Packet(b, true))
		for l.Deadline() != ndn.Never {
			for _, ok := l.Deliver(l.Deadline()); ok; _, ok = l.Deliver(l.Deadline()) {
			}
		}
		if pool.out != 0 {
			t.Fatal("leaked")
		}
	})
}
