package lp

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

const ms = ndn.Time(time.Millisecond)

// element makes a TLV element of exactly size bytes.
func element(typ uint32, size int) []byte {
	for l := size; l >= 0; l-- {
		if ndn.TLVSize(typ, l) == size {
			return append(ndn.AppendTL(nil, typ, l), make([]byte, l)...)
		}
	}
	return nil
}

// data makes a Data of exactly size bytes, numbered n. The size is at least
// 60.
func data(tb testing.TB, n byte, size int) []byte {
	tb.Helper()
	name := []byte{0x07, 0x03, 0x08, 0x01, n}
	sig := []byte{0x16, 0x03, 0x1b, 0x01, 0x00, 0x17, 0x01, 0x00}
	for l := size; l >= 0; l-- {
		body := len(name) + ndn.TLVSize(ndn.TypeContent, l) + len(sig)
		if ndn.TLVSize(ndn.TypeData, body) != size {
			continue
		}
		b := append(ndn.AppendTL(nil, ndn.TypeData, body), name...)
		b = ndn.AppendTL(b, ndn.TypeContent, l)
		for i := range l {
			b = append(b, byte(i)*31+n)
		}
		return append(b, sig...)
	}
	// Lengths of 253 and 254 cannot be had at two places at once.
	return data(tb, n, size+1)
}

func interest(n byte) []byte {
	return []byte{0x05, 0x0b, 0x07, 0x03, 0x08, 0x01, n, 0x0a, 0x04, 1, 2, 3, n}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// send is Send of a packet that must pass, and returns the frames.
func send(tb testing.TB, l *Link, now ndn.Time, wire []byte, f *ndn.LpFields) *face.Frames {
	tb.Helper()
	out := new(face.Frames)
	if err := l.Send(now, wire, f, out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// receive is Receive of all frames; each may complete a packet, whose wires
// are returned.
func receive(tb testing.TB, l *Link, now ndn.Time, frames *face.Frames) (wires [][]byte) {
	tb.Helper()
	var p ndn.Packet
	for i := range frames.Len() {
		ok, err := l.Receive(now, frames.Frame(i), &p)
		if err != nil {
			tb.Fatal(err)
		}
		if ok {
			wires = append(wires, bytes.Clone(p.Wire()))
		}
	}
	return wires
}
