package mgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// nameSigned makes a rib/register of /a in the form that has the signature in
// the name.
func (b *bench) nameSigned(s ndn.Signer, at time.Time, prefix ndn.Name) []byte {
	b.t.Helper()
	b.random++
	n := prefix.Clone().AppendGeneric("rib").AppendGeneric("register")
	n = ndn.AppendTLV(n, ndn.TypeGeneric, proto.Register(ndn.MustName("/a"), 0, 0).AppendTo(nil))
	n = ndn.AppendTLV(n, ndn.TypeGeneric, binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())))
	n = ndn.AppendTLV(n, ndn.TypeGeneric, binary.BigEndian.AppendUint64(nil, b.random))
	n = ndn.AppendTLV(n, ndn.TypeGeneric, s.AppendSigInfo(nil))
	v, err := s.AppendSignature(nil, n)
	if err != nil {
		b.t.Fatal(err)
	}
	n = ndn.AppendTLV(n, ndn.TypeGeneric, ndn.AppendTLV(nil, ndn.TypeSigValue, v))
	return ndn.AppendInterest(nil, &ndn.InterestFields{Name: n, Nonce: uint32(b.random)})
}

// pythonCommand is what NDNApp.register of python-ndn's first API sends.
const pythonCommand = "0582077608096c6f63616c686f737408036e666408037269620808726567697374657208166814071208076578616d706c65" +
	"0807746573744170700808000001a22de6a6ad0808a17d79c816cd6fd4080516031b010008221720" +
	"a4bc12a5e436af2900f94b718d07d0e9de3788015473925f7458ae6beb0556500a04010203040c0203e8"

func TestPythonCommand(t *testing.T) {
	raw, err := hex.DecodeString(pythonCommand)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Config{}, nil)
	var i ndn.Interest
	if err := i.Parse(raw); err != nil {
		t.Fatal(err)
	}
	s, _, err := commandSignature(&i)
	if err != nil {
		t.Fatal(err)
	}
	b.wall = *s.SigTime()
	r := b.response(b.deliver(localFace, raw))
	if r.Code != 200 || r.Body.FaceID.GetOr(0) != uint64(localFace) || !r.Body.Name.GetOr(nil).Equal(ndn.MustName("/example/testApp")) {
		t.Errorf("%d %s %+v", r.Code, r.Text, r.Body)
	}
	if r := b.response(b.deliver(localFace, raw)); r.Code != 403 || !strings.Contains(r.Text, "replay") {
		t.Errorf("a second time: %d %s", r.Code, r.Text)
	}
}

// A signature in the name proves as much as one in elements of its own.
func TestSignatureInName(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	admin, stranger := newKey(t, "ecdsa", "/admin", wall.Add(time.Hour)), newKey(t, "ecdsa", "/stranger", wall.Add(time.Hour))
	local := proto.Localhost()
	closed := newBench(t, Config{Localhop: true, Authorize: []Authorization{
		{Faces: "any", Certificates: []string{"admin"}},
	}}, map[string][]byte{"admin": admin.cert})
	open := newBench(t, Config{}, nil)
	digest := ndn.DigestSigner{}
	// alter changes the first of the bytes that is the last of a pattern.
	alter := func(wire, pattern []byte) []byte {
		wire = slices.Clone(wire)
		at := strings.Index(string(wire), string(pattern))
		if at < 0 {
			t.Fatalf("no % x in % x", pattern, wire)
		}
		wire[at+len(pattern)-1] ^= 1
		return wire
	}
	for _, tc := range []struct {
		name string
		b    *bench
		in   ndn.FaceID
		wire []byte
		code uint64
		want string
	}{
		{"digest", open, localFace, open.nameSigned(digest, wall, local), 200, ""},
		{"unknown key", open, localFace, open.nameSigned(own(stranger), wall, local), 200, ""},
		{"another name", open, localFace, alter(open.nameSigned(digest, wall, local), []byte("\x07\x03\x08\x01a")), 403, "signature is wrong"},
		{"a broken signature", open, localFace, alter(open.nameSigned(digest, wall, local), []byte{0x17, 32}), 403, "not signed"},
		{"too old", open, localFace, open.nameSigned(digest, wall.Add(-3*time.Minute), local), 403, "too old"},
		{"ahead", open, localFace, open.nameSigned(digest, wall.Add(3*time.Minute), local), 403, "ahead"},
		{"the key of a rule", closed, localFace, closed.nameSigned(own(admin), wall, local), 200, ""},
		{"the key of a rule, remote", closed, remoteFace, closed.nameSigned(own(admin), wall, proto.Localhop()), 200, ""},
		{"altered", closed, localFace, alter(closed.nameSigned(own(admin), wall, local), []byte("\x07\x03\x08\x01a")), 403, "signature is wrong"},
		{"a stranger's key", closed, localFace, closed.nameSigned(own(stranger), wall, local), 403, "not one that is allowed"},
		{"a digest where a key is wanted", closed, localFace, closed.nameSigned(digest, wall, local), 403, "not one that is allowed"},
	} {
		r := tc.b.response(tc.b.deliver(tc.in, tc.wire))
		if r.Code != tc.code || !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s: %d %q, want %d %q", tc.name, r.Code, r.Text, tc.code, tc.want)
		}
	}
}

// Nobody who has seen a command can send it once more with a time and nonce of
// his own: of a signed Interest without application parameters the signature
// covers the name alone, and components can be of the types of any elements.
func TestSignatureIsNotMoved(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	admin := newKey(t, "ecdsa", "/admin", wall.Add(time.Hour))
	b := newBench(t, Config{Localhop: true, Authorize: []Authorization{
		{Faces: "any", Certificates: []string{"admin"}},
	}}, map[string][]byte{"admin": admin.cert})
	for _, form := range []struct {
		name string
		wire []byte
	}{
		{"signature in the name", b.nameSigned(own(admin), wall, proto.Localhop())},
		{"signed Interest", b.signed(admin, proto.Localhop(), "rib", "register")},
	} {
		if r := b.response(b.deliver(remoteFace, form.wire)); r.Code != 200 {
			t.Fatalf("%s: %d %s", form.name, r.Code, r.Text)
		}
		var i ndn.Interest
		if err := i.Parse(form.wire); err != nil {
			t.Fatal(err)
		}
		s, covered, err := commandSignature(&i)
		if err != nil {
			t.Fatal(err)
		}
		info := ndn.AppendNatTLV(nil, ndn.TypeSigType, s.typ)
		info = ndn.AppendTLV(info, ndn.TypeKeyLocator, s.key.AppendTLVTo(nil))
		info = ndn.AppendTLV(info, 0x26, []byte(form.name))
		info = ndn.AppendNatTLV(info, 0x28, uint64(b.wall.UnixMilli()))
		tail := ndn.AppendTLV(nil, ndn.TypeInterestSigInfo, info)
		tail = ndn.AppendTLV(tail, ndn.TypeInterestSigVal, s.value)
		for _, params := range [][]byte{nil, ndn.AppendTL(nil, ndn.TypeAppParameters, 0)} {
			digested := append(params, tail...)
			if params == nil {
				digested = nil // what a forwarder takes for the parameters then
			}
			sum := sha256.Sum256(digested)
			name := ndn.AppendTLV(ndn.Name(slices.Clone(covered)), ndn.TypeParamsDigest, sum[:])
			r := b.response(b.deliver(remoteFace, ndn.AppendInterest(nil, &ndn.InterestFields{
				Name: name, Nonce: 5, Params: append(params, tail...),
			})))
			if r.Code != 403 || strings.Contains(r.Text, "digest") {
				t.Errorf("%s, with parameters % x: %d %s", form.name, params, r.Code, r.Text)
			}
		}
	}
}
