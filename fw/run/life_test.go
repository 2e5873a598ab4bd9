package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/mem"
	"ndnpop/ndn"
)

func TestFaceClosedInMidTraffic(t *testing.T) {
	f := start(t, Options{})
	ev := observe(f)
	path := listenUnix(t, f)
	var served atomic.Int64
	make := echo(t, 1000)
	producer := newApp(t, dialUnix(t, path), func(p *ndn.Packet, reply func([]byte, *ndn.LpFields)) {
		served.Add(1)
		make(p, reply)
	})
	var id ndn.FaceID
	eventually(t, "producer's face", func() bool { i, ok := byScheme(f, "fd"); id = i.ID; return ok })
	addRoute(t, f, "/a", id)
	c, _ := memApp(t, f, nil)
	for i := range 500 {
		c.interest(fmt.Sprintf("/a/%d", i), uint32(i+1))
	}
	eventually(t, "some traffic", func() bool { return served.Load() > 10 })
	producer.close()
	eventually(t, "the face to go", func() bool { return ev.has(fmt.Sprintf("face destroyed %d", id)) })
	eventually(t, "its route to go", func() bool { return ev.has(fmt.Sprintf("route removed /a %d", id)) })
	if len(f.Routes()) != 0 {
		t.Fatalf("routes left: %v", f.Routes())
	}
	if err := f.AddRoute(Route{Prefix: ndn.MustName("/a"), Face: id}); !errors.Is(err, ErrNoFace) {
		t.Fatalf("route to a gone face: %v", err)
	}
	for len(c.in) > 0 {
		<-c.in
	}
	c.interest("/a/after", 1)
	eventually(t, "a Nack", func() bool {
		select {
		case p := <-c.in:
			return p.kind == ndn.KindNack && p.name.Equal(ndn.MustName("/a/after"))
		default:
			return false
		}
	})
}

func TestDestroyAndUpdateFace(t *testing.T) {
	f := start(t, Options{})
	_, id := memApp(t, f, nil)
	if err := f.DestroyFace(InternalFace); !errors.Is(err, ErrReservedFace) {
		t.Fatal(err)
	}
	on, mtu := true, 1400
	i, err := f.UpdateFace(id, FaceUpdate{LocalFields: &on, MTU: &mtu})
	if err != nil || !i.LocalFields || i.MTU != 1400 {
		t.Fatalf("%+v, %v", i, err)
	}
	if mtu = 0; true {
		if i, err = f.UpdateFace(id, FaceUpdate{MTU: &mtu}); err != nil || i.MTU != ndn.MaxPacketSize {
			t.Fatalf("%+v, %v", i, err)
		}
	}
	if mtu = 10; true {
		if _, err = f.UpdateFace(id, FaceUpdate{MTU: &mtu}); !errors.Is(err, ErrMTU) {
			t.Fatal(err)
		}
	}
	od := face.PersistencyOnDemand
	if _, err = f.UpdateFace(id, FaceUpdate{Persistency: &od}); !errors.Is(err, ErrPersistency) {
		t.Fatal(err)
	}
	if err := f.DestroyFace(id); err != nil {
		t.Fatal(err)
	}
	if err := f.DestroyFace(id); !errors.Is(err, ErrNoFace) {
		t.Fatal(err)
	}
}

func TestCreateFace(t *testing.T) {
	f := start(t, Options{})
	peer := start(t, Options{})
	addr := listenTCP(t, peer, "127.0.0.1:0", ListenOptions{})
	uri := "tcp4://" + addr
	i, err := f.CreateFace(FaceSpec{URI: uri, Name: "peer"})
	if err != nil || i.ID < FirstFaceID || !i.Up || i.RemoteURI != uri {
		t.Fatalf("%+v, %v", i, err)
	}
	again, err := f.CreateFace(FaceSpec{URI: "tcp://" + addr})
	if !errors.Is(err, ErrFaceExists) || again.ID != i.ID {
		t.Fatalf("%+v, %v", again, err)
	}
	for _, bad := range []string{"", "tcp4://", "http://x", "udp4://[::1]:6363", "udp6://127.0.0.1:6363",
		"tcp4://127.0.0.1:99999", "unix://relative", "/run/nfd/nfd.sock", "udp4://127.0.0.1:6363/x",
		"udp4://0.0.0.0:6363", "tcp6://[::]:6363", "udp4://127.0.0.1:0", "udp4://user:pw@127.0.0.1:6363", "udp4://127.0.0.1:6363?x"} {
		if _, err := f.CreateFace(FaceSpec{URI: bad}); !errors.Is(err, ErrURI) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := f.CreateFace(FaceSpec{URI: "tcp4://" + freePort(t, "tcp")}); err == nil || errors.Is(err, ErrURI) {
		t.Errorf("nobody there: %v", err)
	}
	if len(f.Faces()) != 2 {
		t.Errorf("faces %v", f.Faces())
	}
}

// TestPermanentFaceReconnects: it is created while nobody is there, comes up
// when somebody is, goes down with the peer and comes up again, and keeps its
// id and routes.
func TestPermanentFaceReconnects(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		t.Run(network, func(t *testing.T) {
			f := start(t, Options{})
			ev := observe(f)
			addr := freePort(t, network)
			i, err := f.CreateFace(FaceSpec{URI: network + "4://" + addr, Persistency: face.PersistencyPermanent})
			if err != nil {
				t.Fatal(err)
			}
			if i.LocalURI == "" {
				t.Error("no local URI, without which NFD's tools reject faces/create and faces/list")
			}
			addRoute(t, f, "/a", i.ID)
			c, _ := memApp(t, f, nil)
			nonce := uint32(0)
			listen := func(f *Forwarder) {
				if network == "tcp" {
					listenTCP(t, f, addr, ListenOptions{})
				} else {
					listenUDP(t, f, addr, ListenOptions{})
				}
			}
			get := func() bool {
				nonce++
				c.interest(fmt.Sprintf("/a/%d", nonce), nonce)
				select {
				case p := <-c.in:
					return p.kind == ndn.KindData
				case <-time.After(50 * time.Millisecond):
					return false
				}
			}
			get() // lets ICMP speak
			for round := range 2 {
				peer, err := New(Options{Strategies: f.opts.Strategies})
				if err != nil {
					t.Fatal(err)
				}
				near, far := mem.Pair()
				p, err := peer.AttachFace(near, "")
				if err != nil {
					t.Fatal(err)
				}
				producer := newApp(t, far, echo(t, 100))
				addRoute(t, peer, "/a", p.ID)
				listen(peer)
				eventually(t, fmt.Sprintf("Data in round %d", round), get)
				if now, ok := f.Face(i.ID); !ok || !now.Up {
					t.Fatalf("face %+v", now)
				}
				producer.close()
				peer.Close(context.Background())
				eventually(t, "face down", func() bool {
					get()
					now, ok := f.Face(i.ID)
					return ok && !now.Up
				})
			}
			if !ev.has(fmt.Sprintf("face down %d", i.ID)) || !ev.has(fmt.Sprintf("face up %d", i.ID)) || len(f.Routes()) != 1 {
				t.Fatalf("events %v, routes %v", ev.list, f.Routes())
			}
		})
	}
}

func TestPersistentFaceGoesWithItsPeer(t *testing.T) {
	f := start(t, Options{})
	peer, err := New(Options{Strategies: f.opts.Strategies})
	if err != nil {
		t.Fatal(err)
	}
	addr := listenTCP(t, peer, "127.0.0.1:0", ListenOptions{})
	i, err := f.CreateFace(FaceSpec{URI: "tcp4://" + addr})
	if err != nil {
		t.Fatal(err)
	}
	peer.Close(context.Background())
	eventually(t, "the face to go", func() bool { _, ok := f.Face(i.ID); return !ok })
}

func TestIdleFaceExpires(t *testing.T) {
	f := start(t, Options{})
	ev := observe(f)
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{IdleTimeout: 50 * time.Millisecond})
	a := newApp(t, dialUDP(t, addr), nil)
	a.send([]byte{0x64, 0}, nil)
	eventually(t, "a face", func() bool { _, ok := byScheme(f, "udp4"); return ok })
	eventually(t, "its end", func() bool { _, ok := byScheme(f, "udp4"); return !ok })
	if !ev.has(fmt.Sprintf("face destroyed %d", FirstFaceID)) {
		t.Fatalf("events %v", ev.list)
	}
	// The peer may come back, and be made to stay.
	a.send([]byte{0x64, 0}, nil)
	p := face.PersistencyPersistent
	eventually(t, "a persistent face", func() bool {
		i, ok := byScheme(f, "udp4")
		if !ok {
			a.send([]byte{0x64, 0}, nil)
			return false
		}
		_, err := f.UpdateFace(i.ID, FaceUpdate{Persistency: &p})
		return err == nil
	})
	if i, ok := byScheme(f, "udp4"); !ok || i.ExpiresIn != 0 {
		t.Fatalf("%+v %v", i, ok)
	}
}
