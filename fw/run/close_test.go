package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

func TestCloseDrains(t *testing.T) {
	f := start(t, Options{})
	path := listenUnix(t, f)
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const n = 300
	for i := range n {
		if _, err := conn.Write(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	var i FaceInfo
	eventually(t, "all Data on their way", func() bool {
		i, _ = byScheme(f, "fd")
		return i.Counters.OutData == n
	})
	closed := make(chan struct{})
	go func() { f.Close(context.Background()); close(closed) }()
	got := 0
	buf := make([]byte, 1<<16)
	for {
		k, err := conn.Read(buf)
		got += k
		if err != nil {
			break
		}
	}
	<-closed
	if want := int(i.Counters.OutBytes); got != want {
		t.Errorf("%d bytes of %d arrived", got, want)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket file left: %v", err)
	}
	if _, err := f.CreateFace(FaceSpec{URI: "udp4://127.0.0.1:6363"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCloseGivesUpOnDeafPeers(t *testing.T) {
	f := start(t, Options{DrainTime: time.Hour}) // it gives up by itself
	path := listenUnix(t, f)
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range 1000 {
		if _, err := conn.Write(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	f.Close(context.Background())
}

// TestCloseWithFullPIT: what is pending is nobody's concern when the forwarder
// ends, and must not hold it up.
func TestCloseWithFullPIT(t *testing.T) {
	const each = 4000
	f := start(t, Options{})
	path := listenUnix(t, f)
	for range 4 {
		s, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		i, err := f.CreateFace(FaceSpec{URI: "udp4://" + s.LocalAddr().String(), Persistency: face.PersistencyPermanent})
		if err != nil {
			t.Fatal(err)
		}
		addRoute(t, f, "/full", i.ID)
	}
	for k := range 5 {
		consumer := newApp(t, dialUnix(t, path), nil)
		for i := range each {
			consumer.queue(ndn.AppendInterest(nil, &ndn.InterestFields{
				Name: ndn.MustName(fmt.Sprintf("/full/%d/%d", k, i)), Nonce: uint32(k*each + i), Lifetime: time.Minute,
			}), nil)
			if i%200 == 199 {
				consumer.Flush()
				eventually(t, "the Interests are pending", func() bool { return f.Counters().PitEntries == k*each+i+1 })
			}
		}
	}
	before := f.Counters()
	f.Close(context.Background())
	// Nothing was sent once more because faces went.
	if after := f.Counters(); after.OutInterests != before.OutInterests || after.PitEntries != before.PitEntries {
		t.Errorf("Interests sent %d, then %d; pending %d, then %d", before.OutInterests, after.OutInterests, before.PitEntries, after.PitEntries)
	}
}
