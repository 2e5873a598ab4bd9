package mgmt

import (
	"crypto/sha256"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/ndn/mgmt_2022"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/ndn"
	"ndnpop/producer/sign"
)

// A command is what ndnd's library takes for a signed Interest with a correct
// digest, signature, time and nonce.
func TestCommandReadByNdnd(t *testing.T) {
	at := time.UnixMilli(1795000000123)
	prefix := ndn.MustName("/cdn/a")
	for _, tc := range []struct {
		name   string
		signer ndn.Signer
		typ    ndnd.SigType
	}{
		{"digest", nil, ndnd.SignatureDigestSha256},
		{"hmac", sign.NewHmac([]byte("secret")), ndnd.SignatureHmacWithSha256},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wire, err := AppendSignedCommand(nil, Localhost(), "rib", "register",
				Register(prefix, OriginClient, 7), Stamp{at, 0x0102030405060708, 42}, tc.signer)
			if err != nil {
				t.Fatal(err)
			}
			var own ndn.Interest
			if err := own.Parse(wire); err != nil {
				t.Fatal(err)
			}
			i, covered, err := spec_2022.Spec{}.ReadInterest(enc.NewBufferView(wire))
			if err != nil {
				t.Fatal(err)
			}
			sig := i.Signature()
			if sig.SigType() != tc.typ {
				t.Errorf("signature type %v", sig.SigType())
			}
			if d := sig.SigTime(); d == nil || !d.Equal(at) {
				t.Errorf("signature time %v", d)
			}
			if tc.signer == nil {
				sum := sha256.Sum256(covered.Join())
				if string(sum[:]) != string(sig.SigValue()) {
					t.Error("digest differs from ndnd's")
				}
			} else if !signer.ValidateHmac(covered, sig, []byte("secret")) {
				t.Error("ndnd refuses the signature")
			}
			params, err := mgmt_2022.ParseControlParameters(enc.NewBufferView(i.Name()[4].Val), false)
			if err != nil {
				t.Fatal(err)
			}
			v := params.Val
			if v.Name.String() != "/cdn/a" || v.Origin.GetOr(0) != 65 || v.Cost.GetOr(0) != 7 || v.Flags.GetOr(0) != 1 {
				t.Errorf("ndnd reads %+v", v)
			}
		})
	}
}

func TestStamperGrows(t *testing.T) {
	var s Stamper
	now := time.UnixMilli(1000)
	a := s.Stamp(now, 1)
	b := s.Stamp(now, 2)
	c := s.Stamp(now.Add(-time.Hour), 3)
	if !b.Time.After(a.Time) || !c.Time.After(b.Time) {
		t.Errorf("%v %v %v do not grow", a.Time, b.Time, c.Time)
	}
	if a.Nonce == b.Nonce {
		t.Error("equal nonces")
	}
}
