package mgmt

import (
	"testing"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// FuzzHandle: no Interest, whatever its name and parameters, stops the server;
// what it answers is a Data that satisfies the Interest.
func FuzzHandle(f *testing.F) {
	f.Add([]byte("\x08\x05faces\x08\x04list"), []byte{}, true)
	f.Add([]byte("\x08\x05faces\x08\x06events"), []byte{}, true)
	f.Add([]byte("\x08\x05faces\x08\x05query\x08\x06\x96\x04i\x02\x01\x05"), []byte{}, true)
	f.Add([]byte("\x08\x03rib\x08\x08register\x08\x0bh\x09\x07\x07\x08\x05cathy"), []byte{}, false)
	f.Add([]byte("\x08\x03rib\x08\x08announce"), []byte{6, 0}, false)
	f.Add([]byte("\x08\x03rib\x08\x04list6\x01\x012\x01\x00"), []byte{}, false)
	f.Fuzz(func(t *testing.T, rest, app []byte, plain bool) {
		if _, _, err := ndn.ParseNameValue(rest); err != nil || len(rest)+len(app) > 8000 {
			return
		}
		b := newBench(t, Config{Localhop: true}, nil)
		for _, prefix := range []ndn.Name{proto.Localhost(), proto.Localhop()} {
			n := append(prefix, rest...)
			wire := ndn.AppendInterest(nil, &ndn.InterestFields{Name: n, CanBePrefix: true, MustBeFresh: true})
			if !plain {
				wire = b.signDigest(n, app)
			}
			if len(wire) > ndn.MaxPacketSize {
				return
			}
			var p ndn.Packet
			if err := p.Parse(wire, &ndn.LpFields{IncomingFace: localFace}); err != nil {
				return // a digest component in the middle of a name
			}
			b.s.Handle(b.f.now, &p)
			b.s.pending.Wait()
			for _, s := range b.f.take() {
				var d ndn.Data
				if err := d.Parse(s.wire); err != nil {
					t.Fatal(err)
				}
				if !d.Name.HasPrefix(p.Interest.Name) || len(s.wire) > maxReply {
					t.Fatalf("%s answered with %s, %d bytes", p.Interest.Name, d.Name, len(s.wire))
				}
			}
		}
	})
}

func FuzzAnnouncement(f *testing.F) {
	f.Add([]byte{6, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseAnnouncement(b); err == nil && a.expiration < 0 {
			t.Fatalf("%+v", a)
		}
	})
}

// FuzzSignature: the signature of a command, of either form.
func FuzzSignature(f *testing.F) {
	f.Add([]byte{0x1b, 1, 0, 0x26, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x28, 1, 5}, []byte{1})
	f.Add([]byte{0x16, 3, 0x1b, 1, 0}, []byte{0x17, 1, 9})
	f.Fuzz(func(t *testing.T, info, value []byte) {
		try := func(s signature, err error) {
			if err != nil {
				return
			}
			s.SigTime()
			s.KeyName()
			s.SigType()
		}
		try(parseSignature(info, value))
		n := ndn.AppendNatTLV(commandNameForTest(), ndn.TypeGeneric, 5)
		n = ndn.AppendTLV(n, ndn.TypeGeneric, []byte("nonce"))
		n = ndn.AppendTLV(n, ndn.TypeGeneric, info)
		n = ndn.AppendTLV(n, ndn.TypeGeneric, value)
		s, covered, err := nameSignature(n)
		if err == nil && len(covered) >= len(n) {
			t.Fatalf("a signature covers itself: %s", n)
		}
		try(s, err)
	})
}
