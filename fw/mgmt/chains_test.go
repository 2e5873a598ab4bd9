package mgmt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/security"
	"github.com/named-data/ndnd/std/security/signer"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// certify makes a certificate of a key by another.
func certify(t *testing.T, k, by testKey, from, to time.Time) []byte {
	t.Helper()
	data, err := signer.MarshalSecretToData(k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := security.SignCert(security.SignCertArgs{
		Signer: by.Signer, Data: data, IssuerId: enc.NewGenericComponent("CA"), NotBefore: from, NotAfter: to,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cert.Join()
}

// world is what the forwarder would find: certificates.
type world struct {
	*bench
	certs  [][]byte
	there  [][]byte // what the face has that commands
	silent bool     // nobody answers, nor is there a Nack
	asked  int
}

// arrive passes a packet to the server and lets everything happen that happens
// without time. It returns what else than questions for certificates was sent.
func (w *world) arrive(in ndn.FaceID, wire []byte) []sentPacket {
	w.t.Helper()
	var p ndn.Packet
	if err := p.Parse(wire, &ndn.LpFields{PitToken: []byte{1, 2, 3, 4}, IncomingFace: in}); err != nil {
		w.t.Fatal(err)
	}
	w.s.Handle(w.f.now, &p)
	return w.settle()
}

func (w *world) settle() (others []sentPacket) {
	for {
		synctest.Wait()
		sent := w.f.take()
		if len(sent) == 0 {
			return others
		}
		for _, s := range sent {
			var i ndn.Interest
			if i.Parse(s.wire) != nil {
				others = append(others, s)
				continue
			}
			w.asked++
			if !w.silent {
				w.answer(&i, s.wire, s.fields.NextHopFace)
			}
		}
	}
}

func (w *world) answer(i *ndn.Interest, wire []byte, via ndn.FaceID) {
	var p ndn.Packet
	certs := w.certs
	if via != 0 {
		certs = w.there
	}
	for _, c := range certs {
		if err := p.Parse(c, &ndn.LpFields{}); err != nil {
			w.t.Fatal(err)
		}
		if p.Data.Name.HasPrefix(i.Name) {
			w.s.Handle(w.f.now, &p)
			return
		}
	}
	if err := p.Parse(wire, &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}); err != nil {
		w.t.Fatal(err)
	}
	w.s.Handle(w.f.now, &p)
}

func (w *world) stop() {
	for _, k := range w.s.keys {
		k.close()
	}
	w.s.pending.Wait()
}

// TestTrustAnchors: a command is allowed whose key is certified, by others
// perhaps, by an anchor, and for nobody else.
func TestTrustAnchors(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	year := wall.AddDate(1, 0, 0)
	long := wall.AddDate(-1, 0, 0)
	root := newKey(t, "ecdsa", "/org", year)
	other := newKey(t, "ecdsa", "/org", year)
	site := newKey(t, "rsa", "/org/site", year)
	alice := newKey(t, "ed25519", "/org/site/alice", year)
	late := newKey(t, "ecdsa", "/org/site/late", year)
	early := newKey(t, "ecdsa", "/org/site/early", year)
	stray := newKey(t, "ecdsa", "/elsewhere", year)
	alien := newKey(t, "ecdsa", "/org/site/alien", year)
	alone := newKey(t, "ecdsa", "/org/site/alone", year)
	nowhere := newKey(t, "ecdsa", "/org/site/nowhere", year)
	holder := newKey(t, "ecdsa", "/org/site/holder", year)
	files := map[string][]byte{"root": root.cert}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Localhop: true, Authorize: []Authorization{
			{Modules: []string{"cs"}, AnySignature: true},
			{Modules: []string{"rib"}, Faces: "any", TrustAnchors: []string{"root"}},
		}}, files)
		w := &world{bench: b, certs: [][]byte{
			certify(t, site, root, long, year), certify(t, alice, site, long, year),
			certify(t, late, site, long, wall.Add(-time.Hour)), certify(t, early, site, wall.Add(time.Hour), year),
			certify(t, stray, site, long, year), certify(t, alien, other, long, year), alone.cert,
		}, there: [][]byte{certify(t, holder, site, long, year)}}
		defer w.stop()
		for _, tc := range []struct {
			name  string
			s     testKey
			in    ndn.FaceID
			code  uint64
			want  string
			asked int // certificates
		}{
			{"the anchor itself", root, localFace, 200, "", 0},
			{"certified by it", site, localFace, 200, "", 1},
			{"chain of two, of which one is known", alice, localFace, 200, "", 1},
			{"again", alice, remoteFace, 200, "", 0},
			{"expired", late, localFace, 403, "expired on", 1},
			{"expired, and remembered", late, localFace, 403, "expired on", 0},
			{"not valid yet", early, localFace, 403, "not valid before", 1},
			{"certified by one who may not", stray, localFace, 403, "for names below /org/site", 1},
			{"certified by another key of the anchor's name", alien, localFace, 403, "no route to it", 3},
			{"self-signed", alone, localFace, 403, "self-signed", 1},
			{"not to be had", nowhere, localFace, 403, "no route to it", 2},
			{"who has the certificate itself", holder, localFace, 200, "", 2},
			{"without a key", testKey{}, localFace, 403, "not one that is allowed", 0},
			{"impostor", testKey{Signer: renamed{alien.Signer, alice.KeyName()}}, localFace, 403, "signature is wrong", 0},
		} {
			w.asked = 0
			prefix := proto.Localhost()
			if tc.in == remoteFace {
				prefix = proto.Localhop()
			}
			routes := len(w.f.routes)
			r := w.response(w.arrive(tc.in, w.signed(tc.s.Signer, prefix, "rib", "register")))
			if r.Code != tc.code || !strings.Contains(r.Text, tc.want) {
				t.Errorf("%s: %d %q, want %d %q", tc.name, r.Code, r.Text, tc.code, tc.want)
			}
			if w.asked != tc.asked {
				t.Errorf("%s: asked for %d certificates, want %d", tc.name, w.asked, tc.asked)
			}
			if tc.code != 200 && len(w.f.routes) != routes {
				t.Errorf("%s: there is a route", tc.name)
			}
		}
		// A replay is one for keys that were fetched, too.
		wire := w.signed(alice.Signer, proto.Localhost(), "rib", "register")
		if r := w.response(w.arrive(localFace, wire)); r.Code != 200 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
		if r := w.response(w.arrive(localFace, wire)); r.Code != 403 || !strings.Contains(r.Text, "replay") {
			t.Errorf("replay: %d %s", r.Code, r.Text)
		}
		if c := w.s.Counters(); c.KeysFound != 3 || c.KeysMissing != 6 || int(c.Refused) != len(w.refused) {
			t.Errorf("%+v", c)
		}
	})
}

// TestForgedCertificate: who claims to have another's key and hands over a
// forged certificate keeps the other from nothing.
func TestForgedCertificate(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	year, long := wall.AddDate(1, 0, 0), wall.AddDate(-1, 0, 0)
	root, alice := newKey(t, "ecdsa", "/org", year), newKey(t, "ecdsa", "/org/alice", year)
	mallory := newKey(t, "ecdsa", "/org", year) // not the anchor, though it says so
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, Config{Authorize: []Authorization{{TrustAnchors: []string{"root"}}}}, map[string][]byte{"root": root.cert})}
		defer w.stop()
		const other ndn.FaceID = 400
		f := *w.f.faces[localFace]
		f.ID = other
		w.f.faces[other] = &f
		forged := certify(t, alice, testKey{Signer: renamed{mallory.Signer, root.KeyName()}}, long, year)
		w.there = [][]byte{forged}
		liar := renamed{mallory.Signer, alice.KeyName()}
		if r := w.response(w.arrive(other, w.signed(liar, proto.Localhost(), "rib", "register"))); r.Code != 403 || !strings.Contains(r.Text, "signature is wrong") {
			t.Errorf("%d %s", r.Code, r.Text)
		}
		var d ndn.Data
		if err := d.Parse(forged); err != nil {
			t.Fatal(err)
		}
		if len(w.f.erased) != 1 || !w.f.erased[0].Equal(d.Name) {
			t.Errorf("erased %v, not the forged certificate", w.f.erased)
		}
		w.there = [][]byte{certify(t, alice, root, long, year)}
		if r := w.response(w.arrive(localFace, w.signed(alice.Signer, proto.Localhost(), "rib", "register"))); r.Code != 200 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
		if r := w.response(w.arrive(other, w.signed(liar, proto.Localhost(), "rib", "register"))); r.Code != 403 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
	})
}

// TestCertificateAwaited: while a certificate is fetched others are served, a
// command that is sent again is executed once, and a policy that has changed
// meanwhile counts.
func TestCertificateAwaited(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	root := newKey(t, "ecdsa", "/org", wall.AddDate(1, 0, 0))
	alice := newKey(t, "ecdsa", "/org/alice", wall.AddDate(1, 0, 0))
	bob := newKey(t, "ecdsa", "/org/bob", wall.AddDate(1, 0, 0))
	cfg := Config{Authorize: []Authorization{{Modules: []string{"rib"}, TrustAnchors: []string{"root"}}, {Modules: []string{"cs"}, AnySignature: true}}}
	read := func(string) ([]byte, error) { return root.cert, nil }
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, cfg, map[string][]byte{"root": root.cert}), silent: true, certs: [][]byte{
			certify(t, alice, root, wall.AddDate(-1, 0, 0), wall.AddDate(1, 0, 0)), certify(t, bob, root, wall.AddDate(-1, 0, 0), wall.AddDate(1, 0, 0)),
		}}
		defer w.stop()
		wire := w.signed(alice.Signer, proto.Localhost(), "rib", "register")
		if sent := w.arrive(localFace, wire); len(sent) != 0 {
			t.Fatal("answered without the certificate")
		}
		if r := w.response(w.arrive(localFace, w.signed(nil, proto.Localhost(), "cs", "erase"))); r.Code != 200 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
		if sent := w.arrive(localFace, wire); len(sent) != 0 {
			t.Fatal("answered without the certificate")
		}
		w.silent = false
		time.Sleep(certLifetime) // virtual: it is asked for again
		if r := w.response(w.settle()); r.Code != 200 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
		if len(w.refused) != 0 || w.s.Counters().Commands != 2 {
			t.Errorf("%+v, %+v", w.refused, w.s.Counters())
		}

		w.silent = true
		if sent := w.arrive(localFace, w.signed(bob.Signer, proto.Localhost(), "rib", "register")); len(sent) != 0 {
			t.Fatal("answered without the certificate")
		}
		p, err := LoadPolicy(cfg, read)
		if err == nil {
			err = w.s.SetPolicy(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.silent = false
		time.Sleep(certLifetime)
		if r := w.response(w.settle()); r.Code != 403 || !strings.Contains(r.Text, "policy has changed") {
			t.Errorf("%d %s", r.Code, r.Text)
		}
	})
}

// TestKeyAbuse: a minute of commands by keys that nobody has ever heard of
// occupies no more than it may, and keeps nobody from commanding who is known.
func TestKeyAbuse(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	root := newKey(t, "ecdsa", "/org", wall.AddDate(1, 0, 0))
	alice := newKey(t, "ecdsa", "/org/alice", wall.AddDate(1, 0, 0))
	evil := newKey(t, "ecdsa", "/evil", wall.AddDate(1, 0, 0))
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, Config{Localhop: true, Authorize: []Authorization{
			{Faces: "any", TrustAnchors: []string{"root"}},
		}}, map[string][]byte{"root": root.cert}), silent: true, certs: [][]byte{
			certify(t, alice, root, wall.AddDate(-1, 0, 0), wall.AddDate(1, 0, 0)),
		}}
		defer w.stop()
		answers, sent := 0, 0
		bogus := func(in ndn.FaceID, prefix ndn.Name) {
			sent++
			n, err := enc.NameFromStr(fmt.Sprintf("/evil/%d/KEY/k", sent))
			if err != nil {
				t.Fatal(err)
			}
			answers += len(w.arrive(in, w.signed(renamed{evil.Signer, n}, prefix, "rib", "register")))
		}
		for second := range 60 {
			for k := range 40 {
				// From one local face and from many remote ones.
				if k%4 == 0 {
					bogus(localFace, proto.Localhost())
				} else {
					bogus(ndn.FaceID(1000+k), proto.Localhop())
				}
			}
			for _, c := range w.s.keys {
				c.mu.Lock()
				if len(c.jobs) > maxKeys || len(c.asked) > maxKeys || len(c.peers) > maxKeys || c.failed.Len() > maxFailed {
					t.Errorf("second %d: %d jobs, %d asked, %d faces, %d failed", second,
						len(c.jobs), len(c.asked), len(c.peers), c.failed.Len())
				}
				if c == w.s.keys[here] && len(c.jobs) > maxPeerKeys {
					t.Errorf("one face occupies %d", len(c.jobs))
				}
				c.mu.Unlock()
			}
			if r := w.response(w.arrive(localFace, w.signed(root.Signer, proto.Localhost(), "rib", "register"))); r.Code != 200 {
				t.Errorf("a known key: %d %s", r.Code, r.Text)
			}
			time.Sleep(time.Second)
			answers += len(w.settle())
			w.wall = w.wall.Add(time.Second)
		}
		// Those on this host who are not the offender get their turn.
		w.silent = false
		const another ndn.FaceID = 400
		f := *w.f.faces[localFace]
		f.ID = another
		w.f.faces[another] = &f
		got := w.arrive(another, w.signed(alice.Signer, proto.Localhost(), "rib", "register"))
		for range 30 {
			time.Sleep(time.Second)
			got = append(got, w.settle()...)
		}
		allowed := 0
		for _, s := range got {
			if w.response([]sentPacket{s}).Code == 200 {
				allowed++
			}
		}
		if allowed != 1 {
			t.Errorf("%d commands of the right key were executed; the last refused was %+v", allowed, w.refused[len(w.refused)-1])
		}
		if answers+len(got)-allowed != sent || len(w.refused) != sent {
			t.Errorf("%d of %d bogus commands answered, %d refused", answers+len(got)-allowed, sent, len(w.refused))
		}
		for _, c := range w.s.keys {
			c.mu.Lock()
			if len(c.jobs)+len(c.peers)+len(c.asked) != 0 {
				t.Errorf("left behind: %d jobs, %d faces, %d asked", len(c.jobs), len(c.peers), len(c.asked))
			}
			c.mu.Unlock()
		}
	})
}

// TestKeysDoNotQueue: keys whose certificates nobody answers for hold up no other,
// and whoever commands is answered before the command expires.
func TestKeysDoNotQueue(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	root := newKey(t, "ecdsa", "/org", wall.AddDate(1, 0, 0))
	evil := newKey(t, "ecdsa", "/evil", wall.AddDate(1, 0, 0))
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, Config{Localhop: true, Authorize: []Authorization{
			{Faces: "any", TrustAnchors: []string{"root"}},
		}}, map[string][]byte{"root": root.cert}), silent: true}
		defer w.stop()
		for k := range maxKeys {
			n, err := enc.NameFromStr(fmt.Sprintf("/evil/%d/KEY/k", k))
			if err != nil {
				t.Fatal(err)
			}
			if got := w.arrive(ndn.FaceID(1000+k), w.signed(renamed{evil.Signer, n}, proto.Localhop(), "rib", "register")); len(got) != 0 {
				t.Fatalf("key %d is answered at once", k)
			}
		}
		if w.asked != maxKeys {
			t.Errorf("%d of %d certificates are asked for", w.asked, maxKeys)
		}
		time.Sleep(proto.Lifetime)
		if got := w.settle(); len(got) != maxKeys {
			t.Errorf("%d of %d commands are answered in their lifetime", len(got), maxKeys)
		}
	})
}

// TestForgedAddressesKeepNobodyOut: keys that come from ever new addresses do not
// keep out those of hosts that are known to be there at all, and others for a
// few tries only.
func TestForgedAddressesKeepNobodyOut(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	root := newKey(t, "ecdsa", "/org", wall.AddDate(1, 0, 0))
	alice := newKey(t, "ecdsa", "/org/alice", wall.AddDate(1, 0, 0))
	bob := newKey(t, "ecdsa", "/org/bob", wall.AddDate(1, 0, 0))
	evil := newKey(t, "ecdsa", "/evil", wall.AddDate(1, 0, 0))
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, Config{Localhop: true, Authorize: []Authorization{
			{Faces: "any", TrustAnchors: []string{"root"}},
		}}, map[string][]byte{"root": root.cert}), silent: true}
		defer w.stop()
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(1, 2))
		w.s.keys[anywhere].nonce = func() uint32 {
			mu.Lock()
			defer mu.Unlock()
			return rng.Uint32()
		}
		face := func(id ndn.FaceID, host int, proven bool) ndn.FaceID {
			f := *w.f.faces[remoteFace]
			f.ID, f.Proven = id, proven
			f.RemoteURI = fmt.Sprintf("udp4://10.0.%d.%d:6363", host>>8, host&0xff)
			w.f.faces[id] = &f
			return id
		}
		sent := 0
		flood := func() {
			for range 100 {
				sent++
				n, err := enc.NameFromStr(fmt.Sprintf("/evil/%d/KEY/k", sent))
				if err != nil {
					t.Fatal(err)
				}
				w.arrive(face(ndn.FaceID(10000+sent), sent, false), w.signed(renamed{evil.Signer, n}, proto.Localhop(), "rib", "register"))
			}
		}
		// try commands, and is answered when others have asked meanwhile.
		try := func(in ndn.FaceID, k testKey) bool {
			got := w.arrive(in, w.signed(k.Signer, proto.Localhop(), "rib", "register"))
			flood()
			var p ndn.Packet
			if err := p.Parse(certify(t, k, root, wall.AddDate(-1, 0, 0), wall.AddDate(1, 0, 0)), &ndn.LpFields{}); err != nil {
				t.Fatal(err)
			}
			w.s.Handle(w.f.now, &p)
			for _, s := range append(got, w.settle()...) {
				if w.response([]sentPacket{s}).Code == 200 {
					return true
				}
			}
			return false
		}
		flood()
		if !try(face(500, 60000, true), alice) {
			t.Error("a host that is known to be there is kept out")
		}
		tries := 1
		for stranger := face(501, 60001, false); !try(stranger, bob); tries++ {
			if tries == 50 {
				t.Fatal("a stranger is kept out")
			}
		}
		t.Logf("a stranger got through at try %d", tries)
		strangers := w.s.keys[anywhere]
		strangers.mu.Lock()
		if n := len(strangers.jobs); n > maxKeys || len(strangers.list) != n {
			t.Errorf("%d keys at a time", n)
		}
		strangers.mu.Unlock()
		time.Sleep(strangerTime)
		w.settle()
		for _, c := range w.s.keys {
			c.mu.Lock()
			if len(c.jobs)+len(c.peers)+len(c.asked)+len(c.list) != 0 {
				t.Errorf("left behind: %d jobs, %d peers, %d asked", len(c.jobs), len(c.peers), len(c.asked))
			}
			c.mu.Unlock()
		}
	})
}

// TestCrowdingIsFair: who brought many keys loses its places before those who
// brought one, and what lost its place is not fetched any more.
func TestCrowdingIsFair(t *testing.T) {
	const runs = 50
	left := 0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newChains(keyRules[anywhere], func([]byte, ndn.FaceID) {}, rng.Uint32, func(ndn.Name) {}, func(func()) {})
		trust := []*verify.Verifier{{}}
		keys, stopped := 0, 0
		bring := func(host string) {
			keys++
			locator := ndn.MustName("/k").AppendNumber(ndn.TypeSegment, uint64(keys))
			if err := c.await(asker{1, host}, locator, trust, waitingFor{}); err != nil {
				t.Fatal(err)
			}
			j := c.list[len(c.list)-1]
			stop := j.stop
			j.stop = func() { stop(); stopped++ }
		}
		for range maxPeerKeys {
			bring("greedy")
		}
		for i := range maxKeys {
			bring(fmt.Sprint(i))
		}
		if len(c.list) != maxKeys || stopped != keys-maxKeys {
			t.Fatalf("%d keys have a place, %d of %d others were stopped", len(c.list), stopped, keys-maxKeys)
		}
		left += c.peers["greedy"]
		c.close()
	}
	// By chance alone seven would be left.
	if n := float64(left) / runs; n > 6.2 {
		t.Errorf("%.1f of %d places are left", n, maxPeerKeys)
	}
}

// TestAnnouncerAnchors: a prefix announcement is believed when its key is
// certified for the prefix.
func TestAnnouncerAnchors(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	year := wall.AddDate(1, 0, 0)
	root, site := newKey(t, "ecdsa", "/org", year), newKey(t, "ecdsa", "/org/site", year)
	late := newKey(t, "ecdsa", "/org/late", year)
	hour := ndn.AppendNatTLV(nil, 0x6d, 3600_000)
	synctest.Test(t, func(t *testing.T) {
		w := &world{bench: newBench(t, Config{AnnouncerAnchors: []string{"root"}}, map[string][]byte{"root": root.cert}), certs: [][]byte{
			certify(t, site, root, wall.AddDate(-1, 0, 0), year), certify(t, late, root, wall.AddDate(-1, 0, 0), wall.Add(-time.Hour)),
		}}
		defer w.stop()
		for _, tc := range []struct {
			name, prefix string
			s            ndn.Signer
			code         uint64
			want         string
		}{
			{"the anchor", "/any/where", own(root.Signer), 200, ""},
			{"certified", "/org/site/a", own(site.Signer), 200, ""},
			{"certified for less", "/org/b", own(site.Signer), 403, "below /org/site"},
			{"expired", "/org/late/a", own(late.Signer), 403, "expired on"},
			{"digest", "/org/site/a", ndn.DigestSigner{}, 403, "names no key"},
			{"impostor", "/org/site/a", own(renamed{late.Signer, site.KeyName()}), 403, "signature is wrong"},
		} {
			w.f.routes = nil
			wire := signedAnnouncement(t, tc.prefix, hour, tc.s)
			r := w.response(w.arrive(localFace, w.announce(wire)))
			if r.Code != tc.code || !strings.Contains(r.Text, tc.want) || (len(w.f.routes) == 1) != (tc.code == 200) {
				t.Errorf("%s: %d %q, routes %+v", tc.name, r.Code, r.Text, w.f.routes)
			}
			// The same that came with a Data.
			w.f.routes = nil
			w.f.strategies = []run.StrategyChoice{{Prefix: ndn.Name{}, Strategy: ndn.MustName("/localhost/nfd/strategy/self-learning/v=1")}}
			w.s.Observe(run.Event{Kind: run.PrefixAnnounced, Announcement: run.Announcement{
				Face: remoteFace, Data: ndn.MustName(tc.prefix + "/1"), Wire: wire,
			}})
			w.s.work(w.f.now)
			w.settle()
			if (len(w.f.routes) == 1) != (tc.code == 200) {
				t.Errorf("%s: learnt %+v", tc.name, w.f.routes)
			}
		}
		if c := w.s.Counters(); c.Learnt != 2 || c.Disbelieved != 4 || int(c.Refused) != len(w.refused) || c.Refused != 4 {
			t.Errorf("%+v", c)
		}
	})
}

// TestLoadAnchors: files that cannot be used are refused with their names.
func TestLoadAnchors(t *testing.T) {
	read := func(string) ([]byte, error) { return []byte("no certificate"), nil }
	for _, c := range []Config{
		{AnnouncerAnchors: []string{"x.cert"}},
		{Authorize: []Authorization{{TrustAnchors: []string{"x.cert"}}}},
	} {
		if _, err := LoadPolicy(c, read); !errors.Is(err, ErrCertificate) || !strings.Contains(err.Error(), "x.cert") {
			t.Error(err)
		}
	}
}
