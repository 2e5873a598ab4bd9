package mgmt

import (
	"errors"
	"os"
	"testing"
	"time"

	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// Announcements that a strategy wants learnt become routes that expire.
func TestLearn(t *testing.T) {
	hour := ndn.AppendNatTLV(nil, 0x6d, 3600_000)
	second := ndn.AppendNatTLV(nil, 0x6d, 1000)
	for _, tc := range []struct {
		name, prefix, data string
		content            []byte
		left               time.Duration // 0: not learnt
	}{
		{"within the strategy's prefix", "/learn/a", "/learn/a/1", hour, learntFor},
		{"the strategy's prefix itself", "/learn", "/learn/a/1", second, time.Second},
		{"of everything", "/", "/learn/a/1", hour, 0},
		{"of another prefix", "/learn/b", "/learn/a/1", hour, 0},
		{"without expiration", "/learn/a", "/learn/a/1", nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, Config{}, nil)
			b.f.strategies = append(b.f.strategies, run.StrategyChoice{Prefix: ndn.MustName("/learn"), Strategy: ndn.MustName("/localhost/nfd/strategy/self-learning/v=1")})
			b.s.Observe(run.Event{Kind: run.PrefixAnnounced, Announcement: run.Announcement{
				Face: remoteFace, Data: ndn.MustName(tc.data), Wire: announcementWire(t, tc.prefix, tc.content),
			}})
			b.s.work(b.f.now)
			c := b.s.Counters()
			if tc.left == 0 {
				if len(b.f.routes) != 0 || c.Learnt != 0 || c.Disbelieved != 1 {
					t.Errorf("%v, %+v", b.f.routes, c)
				}
				return
			}
			if len(b.f.routes) != 1 || c.Learnt != 1 {
				t.Fatalf("%v, %+v", b.f.routes, c)
			}
			if r := b.f.routes[0]; !r.Prefix.Equal(ndn.MustName(tc.prefix)) || r.Face != remoteFace || r.Origin != proto.OriginPrefixAnn || r.Expires.Sub(b.f.now) != tc.left {
				t.Errorf("%+v", r)
			}
		})
	}
}

// With announcers in the configuration, only theirs are believed.
func TestAnnouncers(t *testing.T) {
	wall := time.UnixMilli(1795000000000)
	known, stranger, old := newKey(t, "ecdsa", "/known", wall.Add(time.Hour)), newKey(t, "ecdsa", "/known", wall.Add(time.Hour)), newKey(t, "ed25519", "/old", wall.Add(-time.Hour))
	files := map[string][]byte{"known": known.cert, "old": old.cert}
	p, err := LoadPolicy(Config{Announcers: []string{"known", "old"}}, func(name string) ([]byte, error) {
		if b, ok := files[name]; ok {
			return b, nil
		}
		return nil, os.ErrNotExist
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		s  ndn.Signer
		ok bool
	}{
		"known": {own(known.Signer), true}, "digest": {ndn.DigestSigner{}, false}, "stranger": {own(stranger.Signer), false},
		"impostor": {own(renamed{stranger.Signer, known.KeyName()}), false}, "expired": {own(old.Signer), false},
	} {
		var a announcement
		if err := a.data.Parse(signedAnnouncement(t, "/a", nil, tc.s)); err != nil {
			t.Fatal(err)
		}
		err := p.announcers.believe(&a, wall)
		if tc.ok != (err == nil) || err != nil && !errors.Is(err, errAnnouncer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadPolicy(Config{Announcers: []string{"none"}}, func(string) ([]byte, error) { return nil, os.ErrNotExist }); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestAnnouncementsPushOutNothing: however many announcements come, few wait, and
// what happens to faces is told all the same.
func TestAnnouncementsPushOutNothing(t *testing.T) {
	var q eventQueue
	q.init()
	for range 2 * maxQueued {
		q.put(run.Event{Kind: run.PrefixAnnounced})
	}
	q.put(run.Event{Kind: run.FaceCreated})
	es := q.take()
	if n := len(es); n != maxClaims+1 || es[n-1].Kind != run.FaceCreated {
		t.Errorf("%d events wait", n)
	}
	if n := q.lostEvents(); n != 2*maxQueued-maxClaims {
		t.Errorf("%d lost", n)
	}
	q.put(run.Event{Kind: run.PrefixAnnounced})
	if es := q.take(); len(es) != 1 {
		t.Errorf("%d events wait later", len(es))
	}
}
