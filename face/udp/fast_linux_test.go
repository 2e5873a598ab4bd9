package udp

import (
	"testing"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/ndn"
)

// Every frame is in exactly one message, and no message breaks the kernel's
// rules.
func TestMessagesCoverTheBatch(t *testing.T) {
	s := &fast{connected: true}
	s.gso.Store(true)
	tx := &sender{s: s}
	rapid.Check(t, func(t *rapid.T) {
		var b face.Frames
		for _, run := range rapid.SliceOfN(rapid.IntRange(1, 8800), 0, 12).Draw(t, "sizes") {
			for range rapid.IntRange(1, 90).Draw(t, "times") {
				b.Buf = append(b.Buf, make([]byte, run)...)
				b.End()
			}
		}
		at, bytes := 0, 0
		for at < b.Len() {
			tx.prepare(&endpoint{}, &b, at)
			if tx.n == 0 || tx.n > txMessages {
				t.Fatalf("%d messages", tx.n)
			}
			for m := range tx.n {
				n, total := tx.ends[m]-at, int(tx.iovs[m].Len)
				if &b.Buf[bytes] != tx.iovs[m].Base {
					t.Fatal("a gap")
				}
				size := len(b.Frame(at))
				sum := 0
				for i := at; i < tx.ends[m]; i++ {
					l := len(b.Frame(i))
					if l > size || l < size && i != tx.ends[m]-1 {
						t.Fatalf("frame of %d bytes in a run of %d", l, size)
					}
					sum += l
				}
				if sum != total || n > gsoSegments || n > 1 && total > gsoBytes || n < 1 {
					t.Fatalf("%d frames, %d bytes of %d", n, total, sum)
				}
				if (tx.hdrs[m].hdr.Controllen > 0) != (n > 1) || n > 1 && int(tx.ctls[m].seg) != size {
					t.Fatal("wrong segment size")
				}
				at, bytes = tx.ends[m], bytes+total
			}
		}
	})
}

// Without GSO (an old kernel, a device that cannot do it) the same frames
// arrive.
func TestWithoutGSO(t *testing.T) {
	l, err := Listen("[::1]:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := Dial(l.local.String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.(*connected).sock.(*fast).gso.Store(false)
	var b face.Frames
	for i := range 200 {
		b.Buf = append(b.Buf, byte(ndn.TypeData), 3, byte(i), 0, 0)
		b.End()
	}
	if n := d.Send(&b); n != 0 {
		t.Fatalf("%d dropped", n)
	}
	receive := receiver(t, l.sock)
	for n := 0; n < b.Len(); {
		in := receive()
		for i := range in.datagrams {
			for _, f := range in.datagrams[i].frames(nil) {
				if len(f) != 5 || int(f[2]) != n {
					t.Fatalf("frame %d is %x", n, f)
				}
				n++
			}
		}
	}
}
