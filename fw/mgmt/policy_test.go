package mgmt

import (
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	ndnd "github.com/named-data/ndnd/std/ndn"
	"github.com/named-data/ndnd/std/ndn/mgmt_2022"
	"github.com/named-data/ndnd/std/ndn/spec_2022"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/signer"
	"github.com/named-data/ndnd/std/types/optional"

	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/producer/sign"
)

// testKey is a signer with its self-signed certificate.
type testKey struct {
	ndnd.Signer
	cert []byte
}

func newKey(t *testing.T, kind, identity string, notAfter time.Time) testKey {
	t.Helper()
	id, err := enc.NameFromStr(identity)
	if err != nil {
		t.Fatal(err)
	}
	name := security.MakeKeyName(id)
	var s ndnd.Signer
	switch kind {
	case "ecdsa":
		s, err = signer.KeygenEcc(name, elliptic.P256())
	case "rsa":
		s, err = signer.KeygenRsa(name, 2048)
	case "ed25519":
		s, err = signer.KeygenEd25519(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	cert, err := security.SelfSign(security.SignCertArgs{
		Signer: s, NotBefore: time.UnixMilli(0), NotAfter: notAfter,
	})
	if err != nil {
		t.Fatal(err)
	}
	return testKey{s, cert.Join()}
}

// own wraps a signer of ndnd's.
func own(s ndnd.Signer) ndn.Signer {
	switch {
	case s == nil:
		return nil
	case s.KeyLocator() == nil:
		return hmac{s}
	}
	return sign.NewKey(s, ndn.FromNdnd(s.KeyLocator()))
}

// hmac is ndnd's signer with a shared key, which names none.
type hmac struct{ s ndnd.Signer }

func (hmac) AppendSigInfo(b []byte) []byte { return append(b, 0x16, 3, 0x1b, 1, byte(ndn.SigHmac)) }

func (h hmac) AppendSignature(b, signed []byte) ([]byte, error) {
	v, err := h.s.Sign(enc.Wire{signed})
	return append(b, v...), err
}

// signed makes a rib/register by the given signer; nil signs with a digest.
func (b *bench) signed(s ndnd.Signer, prefix ndn.Name, module, verb string) []byte {
	b.t.Helper()
	b.random++
	p := &proto.ControlParameters{Name: name("/a")} // all that the commands here need
	wire, err := proto.AppendSignedCommand(nil, prefix, module, verb, p, b.stamper.Stamp(b.wall, b.random), own(s))
	if err != nil {
		b.t.Fatal(err)
	}
	return wire
}

func TestDefaultPolicy(t *testing.T) {
	b := newBench(t, Config{}, nil)
	for _, tc := range []struct {
		name string
		s    ndnd.Signer
	}{
		{"digest", nil},
		{"unknown ecdsa key", newKey(t, "ecdsa", "/op", b.wall.Add(time.Hour))},
		{"unknown hmac key", signer.NewHmacSigner([]byte("x"))},
	} {
		if r := b.response(b.deliver(localFace, b.signed(tc.s, proto.Localhost(), "rib", "register"))); r.Code != 200 {
			t.Errorf("%s: %d %s", tc.name, r.Code, r.Text)
		}
	}
	// A remote face gets nothing under /localhost: the forwarder would not
	// even deliver it.
	if sent := b.deliver(remoteFace, b.signed(nil, proto.Localhost(), "rib", "register")); len(sent) != 0 {
		t.Error("a remote face was answered")
	}
	// /localhop is off.
	if sent := b.deliver(remoteFace, b.signed(nil, proto.Localhop(), "rib", "register")); len(sent) != 0 {
		t.Error("/localhop was answered")
	}
}

func TestRefusals(t *testing.T) {
	b := newBench(t, Config{}, nil)
	good := b.signed(nil, proto.Localhost(), "rib", "register")
	var i ndn.Interest
	if err := i.Parse(good); err != nil {
		t.Fatal(err)
	}
	mutate := func(f func(w []byte)) []byte {
		w := append([]byte(nil), good...)
		f(w)
		return w
	}
	resign := func(st proto.Stamp) []byte {
		return proto.AppendCommand(nil, proto.Localhost(), "rib", "register", proto.Register(ndn.MustName("/a"), 0, 0), st)
	}
	unsigned := ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: ndn.AppendTLV(dataset4("rib", "register"), ndn.TypeGeneric, proto.Register(ndn.MustName("/a"), 0, 0).AppendTo(nil)),
	})
	for _, tc := range []struct {
		name, want string
		wire       []byte
	}{
		{"unsigned", "not signed", unsigned},
		{"last byte of the signature changed", "parameters digest", mutate(func(w []byte) { w[len(w)-1] ^= 1 })},
		{"signature changed, name's digest right", "digest signature is wrong", badDigest(t, b)},
		{"time too old", "too old", resign(proto.Stamp{Time: b.wall.Add(-3 * time.Minute), SigNonce: 5})},
		{"time ahead", "ahead", resign(proto.Stamp{Time: b.wall.Add(3 * time.Minute), SigNonce: 5})},
		{"without time and nonce", "no time or no nonce", withoutTime(t)},
	} {
		r := b.response(b.deliver(localFace, tc.wire))
		if r.Code != 403 || !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s: %d %q, want 403 %q", tc.name, r.Code, r.Text, tc.want)
		}
	}
	if n := len(b.refused); n != 6 || b.s.Counters().Refused != 6 {
		t.Errorf("%d refusals reported, %d counted", n, b.s.Counters().Refused)
	}
	if len(b.f.routes) != 0 {
		t.Errorf("a refused command made a route")
	}
	// The same bytes twice.
	if r := b.response(b.deliver(localFace, good)); r.Code != 200 {
		t.Fatalf("%d %s", r.Code, r.Text)
	}
	if r := b.response(b.deliver(localFace, good)); r.Code != 403 || !strings.Contains(r.Text, "replay") {
		t.Errorf("replay: %d %s", r.Code, r.Text)
	}
}

// badDigest is a command whose signature is wrong and whose parameters digest
// is right.
func badDigest(t *testing.T, b *bench) []byte {
	tail := ndn.AppendTL(nil, ndn.TypeAppParameters, 0)
	info := []byte{0x1b, 1, 0, 0x26, 4, 1, 2, 3, 4}
	info = ndn.AppendNatTLV(info, 0x28, uint64(b.wall.UnixMilli()))
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigInfo, info)
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigVal, make([]byte, 32))
	return withDigest(t, tail)
}

// withoutTime is a command with a right signature that has no time.
func withoutTime(t *testing.T) []byte {
	tail := ndn.AppendTL(nil, ndn.TypeAppParameters, 0)
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigInfo, []byte{0x1b, 1, 0})
	name := commandNameForTest()
	sum := sha256.Sum256(append(append([]byte(nil), name...), tail...))
	tail = ndn.AppendTLV(tail, ndn.TypeInterestSigVal, sum[:])
	return withDigest(t, tail)
}

func commandNameForTest() ndn.Name {
	return ndn.AppendTLV(dataset4("rib", "register"), ndn.TypeGeneric, proto.Register(ndn.MustName("/a"), 0, 0).AppendTo(nil))
}

func withDigest(t *testing.T, tail []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(tail)
	return ndn.AppendInterest(nil, &ndn.InterestFields{
		Name: ndn.AppendTLV(commandNameForTest(), ndn.TypeParamsDigest, sum[:]), Params: tail,
	})
}

// Commands that ndnd's own library makes and signs.
func TestNdndCommand(t *testing.T) {
	b := newBench(t, Config{}, nil)
	at := b.wall.Sub(time.UnixMilli(0))
	cfg := mgmt_2022.NewConfig(true, signer.NewSha256Signer(), spec_2022.Spec{})
	name, err := enc.NameFromStr("/ndnd/app")
	if err != nil {
		t.Fatal(err)
	}
	i, err := cfg.MakeCmd("rib", "register", &mgmt_2022.ControlArgs{
		Name: name, Cost: optional.Some(uint64(3)), Origin: optional.Some(uint64(65)),
	}, &ndnd.InterestConfig{
		MustBeFresh: true, Lifetime: optional.Some(time.Second), Nonce: optional.Some(uint32(77)),
		SigNonce: []byte{1, 2, 3, 4, 5, 6, 7, 8}, SigTime: optional.Some(at),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := b.data(b.deliver(localFace, i.Wire.Join()))
	v, err := mgmt_2022.ParseControlResponse(enc.NewBufferView(d.Content), false)
	if err != nil {
		t.Fatal(err)
	}
	if p := v.Val.Params; v.Val.StatusCode != 200 || p.FaceId.GetOr(0) != uint64(localFace) ||
		p.Origin.GetOr(0) != 65 || p.Cost.GetOr(0) != 3 || p.Flags.GetOr(9) != 1 || p.Name.String() != "/ndnd/app" {
		t.Errorf("%d %s %+v", v.Val.StatusCode, v.Val.StatusText, p)
	}
}

func TestCertificates(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	keys := map[string]testKey{}
	files := map[string][]byte{"secret": []byte("s3cret\n")}
	for _, kind := range []string{"ecdsa", "rsa", "ed25519"} {
		k := newKey(t, kind, "/admin/"+kind, wall.Add(time.Hour))
		keys[kind] = k
		pem, err := security.PemEncode(k.cert)
		if err != nil {
			t.Fatal(err)
		}
		files[kind] = pem
	}
	files["rsa"] = []byte(base64.StdEncoding.EncodeToString(keys["rsa"].cert)) // as ndnsec cert-dump
	expired := newKey(t, "ecdsa", "/admin/old", wall.Add(-time.Hour))
	files["expired"] = expired.cert
	b := newBench(t, Config{
		Localhop: true,
		Authorize: []Authorization{
			{Modules: []string{"rib"}, Faces: "any", Certificates: []string{"ecdsa", "rsa", "ed25519", "expired"}, HMACKeys: []string{"secret"}},
			{Modules: []string{"cs"}, AnySignature: true},
		},
	}, files)

	stranger := newKey(t, "ecdsa", "/stranger", wall.Add(time.Hour))
	// An impostor has another key under the name of one that is allowed.
	for _, tc := range []struct {
		name   string
		s      ndnd.Signer
		in     ndn.FaceID
		prefix ndn.Name
		module string
		verb   string
		code   uint64
		want   string
	}{
		{"ecdsa", keys["ecdsa"], localFace, proto.Localhost(), "rib", "register", 200, ""},
		{"rsa", keys["rsa"], localFace, proto.Localhost(), "rib", "register", 200, ""},
		{"ed25519", keys["ed25519"], localFace, proto.Localhost(), "rib", "register", 200, ""},
		{"hmac", signer.NewHmacSigner([]byte("s3cret\n")), localFace, proto.Localhost(), "rib", "register", 200, ""},
		{"wrong hmac", signer.NewHmacSigner([]byte("other")), localFace, proto.Localhost(), "rib", "register", 403, "hmac is wrong"},
		{"stranger", stranger, localFace, proto.Localhost(), "rib", "register", 403, "not one that is allowed"},
		{"digest", nil, localFace, proto.Localhost(), "rib", "register", 403, "not one that is allowed"},
		{"impostor", renamed{stranger.Signer, keys["ecdsa"].KeyName()}, localFace, proto.Localhost(), "rib", "register", 403, "signature is wrong"},
		{"expired", expired, localFace, proto.Localhost(), "rib", "register", 403, "not valid now"},
		{"another module", keys["ecdsa"], localFace, proto.Localhost(), "fib", "add-nexthop", 403, "no rule allows module fib"},
		{"any for cs", nil, localFace, proto.Localhost(), "cs", "erase", 200, ""},
		{"localhop with key", keys["ecdsa"], remoteFace, proto.Localhop(), "rib", "register", 200, ""},
		{"localhop with digest", nil, remoteFace, proto.Localhop(), "rib", "register", 403, "not one that is allowed"},
	} {
		r := b.response(b.deliver(tc.in, b.signed(tc.s, tc.prefix, tc.module, tc.verb)))
		if r.Code != tc.code || !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s: %d %q, want %d %q", tc.name, r.Code, r.Text, tc.code, tc.want)
		}
	}
	// A remote host speaks for its own face only, and of routes only.
	b.random++
	p := proto.Register(ndn.MustName("/a"), 0, 0)
	p.FaceID = optional.Some(uint64(localFace))
	wire, err := proto.AppendSignedCommand(nil, proto.Localhop(), "rib", "register", p, b.stamper.Stamp(b.wall, b.random), own(keys["ecdsa"]))
	if err != nil {
		t.Fatal(err)
	}
	if r := b.response(b.deliver(remoteFace, wire)); r.Code != 403 {
		t.Errorf("another's face: %d %s", r.Code, r.Text)
	}
	if r := b.response(b.deliver(remoteFace, b.signed(keys["ecdsa"], proto.Localhop(), "cs", "erase"))); r.Code != 501 {
		t.Errorf("cs at /localhop: %d %s", r.Code, r.Text)
	}
}

// A remote host cannot take away from others what is of this host: a longer
// prefix would hide where commands, or a local application's Interests, go.
func TestRemoteHostsLeaveThisOneAlone(t *testing.T) {
	b := newBench(t, Config{Localhop: true, Authorize: []Authorization{{Faces: "any", AnySignature: true}}}, nil)
	hour := ndn.AppendNatTLV(nil, 0x6d, 3600_000)
	for prefix, code := range map[string]uint64{
		"/localhost": 403, "/localhost/app/rpc": 403, "/localhop/nfd": 403, "/localhop/nfd/rib": 403,
		"/localhop": 200, "/localhop/nfds": 200, "/localhosts": 200, "/": 200, "/a": 200,
	} {
		n := ndn.MustName(prefix)
		b.random++
		p := proto.Register(n, 0, 0)
		p.Flags.Set(proto.RouteCapture)
		wire := proto.AppendCommand(nil, proto.Localhop(), "rib", "register", p, b.stamper.Stamp(b.wall, b.random))
		if r := b.response(b.deliver(remoteFace, wire)); r.Code != code {
			t.Errorf("register %s: %d %s, want %d", prefix, r.Code, r.Text, code)
		}
		if n.Len() > 0 {
			wire = b.signDigest(proto.Localhop().AppendGeneric("rib").AppendGeneric("announce"), announcementWire(t, prefix, hour))
			if r := b.response(b.deliver(remoteFace, wire)); r.Code != code {
				t.Errorf("announce %s: %d %s, want %d", prefix, r.Code, r.Text, code)
			}
		}
		// Who is on this host says so himself: ndn-autoconfig has a route to the
		// commands of a hub.
		wire = proto.AppendCommand(nil, proto.Localhost(), "rib", "register",
			&proto.ControlParameters{Name: optional.Some(n), FaceID: nat(uint64(remoteFace))}, b.stamper.Stamp(b.wall, b.random))
		if r := b.response(b.deliver(localFace, wire)); r.Code != 200 {
			t.Errorf("register %s from here: %d %s", prefix, r.Code, r.Text)
		}
	}
}

// renamed signs with one key and says that it was another.
type renamed struct {
	ndnd.Signer
	name enc.Name
}

func (r renamed) KeyName() enc.Name    { return r.name }
func (r renamed) KeyLocator() enc.Name { return r.name }

func TestLoadPolicyErrors(t *testing.T) {
	read := func(string) ([]byte, error) { return []byte("no certificate"), nil }
	for _, tc := range []struct {
		rule Authorization
		want error
	}{
		{Authorization{Modules: []string{"face"}, AnySignature: true}, ErrUnknownModule},
		{Authorization{Faces: "remote", AnySignature: true}, ErrUnknownFaces},
		{Authorization{}, ErrNoSigner},
		{Authorization{Certificates: []string{"x"}}, ErrCertificate},
	} {
		_, err := LoadPolicy(Config{Authorize: []Authorization{tc.rule}}, read)
		if !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.rule, err, tc.want)
		}
	}
}

// stamped is a signature's time and nonce.
func stamped(n int, at time.Time) *signature {
	return &signature{nonce: []byte{byte(n), byte(n >> 8), byte(n >> 16)}, time: uint64(at.UnixMilli()), hasTime: true}
}

// The memory for replays is bounded, and bounding it lets none through of those
// who prove who they are.
func TestReplaysBounded(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	for _, id := range []identity{{}, {configured, "k"}, {certifiedKey, "k"}} {
		r := newReplays(wall)
		first := stamped(0, wall)
		for n := range 3 * replayEach {
			at := wall.Add(time.Duration(n) * time.Millisecond)
			if why := r.admit(id, stamped(n, at), at); why != "" {
				t.Fatalf("%+v: command %d: %s", id, n, why)
			}
		}
		l := r.log(id)
		if n := len(l.seen); n > replayEach {
			t.Errorf("%+v: %d commands remembered", id, n)
		}
		if n := cap(l.order); n > 8*replayEach {
			t.Errorf("%+v: room for %d commands", id, n)
		}
		if why := r.admit(id, first, wall.Add(time.Second)); why == "" && id.kind != anybody {
			t.Errorf("%+v: a forgotten command was admitted again", id)
		}
		// After the grace all is forgotten.
		late := wall.Add(10 * time.Minute)
		if why := r.admit(id, stamped(1, late), late); why != "" {
			t.Errorf("%+v: %s", id, why)
		}
		if n := len(l.seen); n != 1 {
			t.Errorf("%+v: %d commands remembered after ten minutes", id, n)
		}
		// Another identity may use the same nonce and time.
		if why := r.admit(identity{configured, "other"}, stamped(1, late), late); why != "" {
			t.Error(why)
		}
	}
}

// TestReplaysShutNobodyOut: whoever sends many commands whose times lie ahead of
// the clock, as clients that count their times up do at more than a thousand a
// second, shuts out no other key, and nobody among those who prove nothing.
func TestReplaysShutNobodyOut(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	for _, tc := range []struct{ many, other identity }{
		{identity{}, identity{}},
		{identity{configured, "k"}, identity{configured, "l"}},
		{identity{certifiedKey, "k"}, identity{certifiedKey, "l"}},
	} {
		r := newReplays(wall)
		for n := range 2 * replayEach {
			if why := r.admit(tc.many, stamped(n, wall.Add(time.Minute+time.Duration(n)*time.Millisecond)), wall); why != "" {
				t.Fatalf("%+v: command %d: %s", tc.many, n, why)
			}
		}
		s := stamped(1<<20, wall)
		if why := r.admit(tc.other, s, wall); why != "" {
			t.Errorf("%+v is shut out by %+v: %s", tc.other, tc.many, why)
		}
		if why := r.admit(tc.other, s, wall); why == "" {
			t.Errorf("%+v: a replay was admitted", tc.other)
		}
	}
}

// TestReplaysOfManyKeys: there is no more memory for certified keys than for
// some, and a key that had to be forgotten cannot be replayed.
func TestReplaysOfManyKeys(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	r := newReplays(wall)
	for n := range 3 * replayKeys {
		at := wall.Add(time.Duration(n) * time.Millisecond)
		if why := r.admit(identity{certifiedKey, string(rune('a' + n))}, stamped(n, at), at); why != "" {
			t.Fatalf("key %d: %s", n, why)
		}
	}
	if n := r.certified.Len() + len(r.byID); n > replayKeys {
		t.Errorf("%d keys remembered", n)
	}
	if why := r.admit(identity{certifiedKey, "a"}, stamped(0, wall), wall); why == "" {
		t.Error("the command of a forgotten key was admitted again")
	}
}

// TestReplayAfterStart: what was recorded before the forwarder started again has
// no effect, except of those who prove nothing.
func TestReplayAfterStart(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	before := wall.Add(-time.Second)
	for _, id := range []identity{{configured, "k"}, {certifiedKey, "k"}, {}} {
		r := newReplays(wall)
		if why := r.admit(id, stamped(1, before), wall); (why == "") != (id.kind == anybody) {
			t.Errorf("%+v: signed before the start: %q", id, why)
		}
		if why := r.admit(id, stamped(2, wall), wall); why != "" {
			t.Errorf("%+v: %s", id, why)
		}
	}
}

// TestClockSetBack: a forwarder that started while its clock was ahead takes
// commands when the clock has been set right, and none of before the start.
func TestClockSetBack(t *testing.T) {
	right := time.UnixMilli(1795000000000)
	for _, id := range []identity{{configured, "k"}, {certifiedKey, "k"}, {}} {
		r := newReplays(right.Add(365 * 24 * time.Hour))
		r.uptime = func(time.Time) time.Duration { return time.Minute }
		if why := r.admit(id, stamped(1, right), right); why != "" {
			t.Errorf("%+v: %s", id, why)
		}
		if why := r.admit(id, stamped(2, right.Add(-61*time.Second)), right); (why == "") != (id.kind == anybody) {
			t.Errorf("%+v: signed before the start: %q", id, why)
		}
	}
}

// TestSetPolicy changes the policy of a server that runs: rules, and whether
// remote hosts may register.
func TestSetPolicy(t *testing.T) {
	b := newBench(t, Config{}, nil)
	key := newKey(t, "ecdsa", "/op", b.wall.Add(time.Hour))
	read := func(string) ([]byte, error) { return key.cert, nil }
	set := func(c Config) {
		t.Helper()
		p, err := LoadPolicy(c, read)
		if err == nil {
			err = b.s.SetPolicy(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	local := func(s ndnd.Signer, want uint64) {
		t.Helper()
		if r := b.response(b.deliver(localFace, b.signed(s, proto.Localhost(), "rib", "register"))); r.Code != want {
			t.Errorf("%d %s, want %d", r.Code, r.Text, want)
		}
	}
	local(nil, 200)
	set(Config{Localhop: true, Authorize: []Authorization{{Faces: "any", Certificates: []string{"op.cert"}}}})
	local(nil, 403)
	local(key, 200)
	if e := b.f.fib[len(b.f.fib)-1]; !e.Prefix.Equal(proto.Localhop()) || e.NextHops[0].Face != 1 {
		t.Errorf("routed %s", e.Prefix)
	}
	if r := b.response(b.deliver(remoteFace, b.signed(key, proto.Localhop(), "rib", "register"))); r.Code != 200 {
		t.Errorf("remote: %d %s", r.Code, r.Text)
	}
	set(Config{})
	local(nil, 200)
	if sent := b.deliver(remoteFace, b.signed(key, proto.Localhop(), "rib", "register")); len(sent) != 0 {
		t.Error("/localhop was answered after it was turned off")
	}
	for _, e := range b.f.fib {
		if e.Prefix.Equal(proto.Localhop()) {
			t.Error("/localhop is still routed here")
		}
	}
}
