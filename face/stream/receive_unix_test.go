//go:build unix

package stream

import (
	"testing"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/ndn"
)

// TestWaitingHoldsNoBuffer: a connection that has nothing to read keeps at most
// the beginning of a frame, however much it has received before.
func TestWaitingHoldsNoBuffer(t *testing.T) {
	c, s := pair(t)
	defer c.Close()
	tr, err := New(s, face.Info{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var f face.Frames
	for i := range 40 {
		facetest.Frame(&f, uint64(i), ndn.MaxPacketSize)
	}
	var got collect
	step := func() {
		t.Helper()
		if err := tr.read(); err != nil {
			t.Fatal(err)
		}
		if err := tr.in.deliver(&got); err != nil {
			t.Fatal(err)
		}
	}
	wait := func() {
		t.Helper()
		if err := tr.raw.Control(func(fd uintptr) {
			if tr.readNow(fd) {
				t.Error("there was something to read")
			}
		}); err != nil {
			t.Fatal(err)
		}
		if tr.in.buf != nil {
			t.Error("it waits with a whole buffer")
		}
	}
	cut := len(f.Buf) - 3000 // in the last frame
	go func() { _, _ = c.Write(f.Buf[:cut]) }()
	for total := 0; total < cut; {
		step()
		total = len(got.frames)*ndn.MaxPacketSize + tr.in.have
	}
	wait()
	if tr.in.rest == nil || tr.in.have == 0 {
		t.Fatal("the beginning of the last frame is lost")
	}
	if _, err := c.Write(f.Buf[cut:]); err != nil {
		t.Fatal(err)
	}
	for len(got.frames) < 40 {
		step()
	}
	wait()
	if tr.in.rest != nil {
		t.Error("it waits with a part of a frame")
	}
	from := 0
	for i, e := range f.Ends {
		if string(got.frames[i]) != string(f.Buf[from:e]) {
			t.Fatalf("frame %d is another", i)
		}
		from = e
	}
}
