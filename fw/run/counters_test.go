package run

import (
	"fmt"
	"sync"
	"testing"

	"ndnpop/face"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/table"
)

// meter counts what really crosses a transport.
type meter struct {
	face.Server
	mu              sync.Mutex
	inFrames, inB   uint64
	outFrames, outB uint64
}

func (m *meter) Send(b *face.Frames) int {
	m.mu.Lock()
	m.outFrames += uint64(b.Len())
	m.outB += uint64(len(b.Buf))
	m.mu.Unlock()
	return m.Server.Send(b)
}

func (m *meter) Serve(r face.Receiver) error { return m.Server.Serve(&metered{r, m}) }

type metered struct {
	face.Receiver
	m *meter
}

func (r *metered) Receive(frames [][]byte) {
	r.m.mu.Lock()
	for _, f := range frames {
		r.m.inFrames++
		r.m.inB += uint64(len(f))
	}
	r.m.mu.Unlock()
	r.Receiver.Receive(frames)
}

// TestCountersAreTrue compares a face's counters with what its peer saw: frames
// and bytes on the wire, fragments included, and packets by kind; and what was
// dropped with what was not answered.
func TestCountersAreTrue(t *testing.T) {
	f := start(t, Options{Shard: fw.Config{CS: table.CSConfig{Capacity: 1 << 20}}})
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{MTU: 1400})
	_, id := memApp(t, f, echo(t, 5000))
	addRoute(t, f, "/a", id)
	m := &meter{Server: dialUDP(t, addr)}
	c := newApp(t, m, nil)
	const data, nacks, bad = 50, 20, 7
	for i := range data {
		name := fmt.Sprintf("/a/%d", i%40) // some from the content store
		c.interest(name, uint32(i+1))
		c.expect(ndn.KindData, name)
	}
	for i := range nacks {
		name := fmt.Sprintf("/nowhere/%d", i)
		c.interest(name, uint32(i+1000))
		c.expect(ndn.KindNack, name)
	}
	for range bad {
		junk := face.Frames{Buf: []byte{0x05, 3, 1, 2, 3}, Ends: []int{5}}
		m.Send(&junk)
	}
	var i FaceInfo
	eventually(t, "all frames to arrive", func() bool {
		i, _ = byScheme(f, "udp4")
		m.mu.Lock()
		defer m.mu.Unlock()
		return i.Counters.InFrames == m.outFrames && i.Counters.OutFrames == m.inFrames
	})
	k := i.Counters
	if k.InInterests != data+nacks || k.OutData != data || k.OutNacks != nacks || k.InData+k.InNacks+k.OutInterests != 0 {
		t.Errorf("packets %+v", k)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.InBytes != m.outB || k.OutBytes != m.inB {
		t.Errorf("in %d bytes of %d, out %d of %d", k.InBytes, m.outB, k.OutBytes, m.inB)
	}
	if k.OutFrames < 4*data {
		t.Errorf("only %d frames for %d Data of 5000 bytes in frames of 1400", k.OutFrames, data)
	}
	if want := (FaceDrops{InMalformed: bad}); k.Drops != want {
		t.Errorf("drops %+v, want %+v", k.Drops, want)
	}
	// The same as a total when the face is gone.
	if err := f.DestroyFace(i.ID); err != nil {
		t.Fatal(err)
	}
	if _, retired := f.FacesAndRetired(); retired["udp4"].OutBytes != k.OutBytes || retired["udp4"].InInterests != k.InInterests {
		t.Errorf("retired %+v", retired["udp4"])
	}
}
