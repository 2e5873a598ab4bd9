package udp

import (
	"fmt"
	"testing"

	"ndnpop/face"
	"ndnpop/ndn"
)

// BenchmarkOneGoroutine is the cost of a frame sent and received, without any
// scheduling.
func BenchmarkOneGoroutine(b *testing.B) {
	for _, plain := range []bool{false, true} {
		for _, size := range []int{1400, 8800} {
			b.Run(fmt.Sprintf("plain=%v/%d", plain, size), func(b *testing.B) {
				l, err := Listen("127.0.0.1:0", Options{Plain: plain})
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				d, err := Dial(l.local.String(), Options{Plain: plain})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				const batch = 64
				var f face.Frames
				frame := make([]byte, size)
				frame[0] = byte(ndn.TypeData)
				for range batch {
					f.Buf = append(f.Buf, frame...)
					f.End()
				}
				receive := receiver(b, l.sock)
				var frames [][]byte
				b.SetBytes(int64(size))
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if n++; n%batch != 0 {
						continue
					}
					if dropped := d.Send(&f); dropped > 0 {
						b.Fatal(dropped)
					}
					for got := 0; got < batch; {
						in := receive()
						frames = frames[:0]
						for i := range in.datagrams {
							frames = in.datagrams[i].frames(frames)
						}
						got += len(frames)
					}
				}
			})
		}
	}
}

// receiver makes a function that receives without a group.
func receiver(t testing.TB, s socket) func() *arrivals {
	in, b := new(arrivals), newMessages()
	return func() *arrivals {
		t.Helper()
		some, err := false, error(nil)
		for !some && err == nil {
			switch s := s.(type) {
			case *fast:
				some, err = s.receive(b, in)
			case *plain:
				some, err = true, s.receive(in)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
}
