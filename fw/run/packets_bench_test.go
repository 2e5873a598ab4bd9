//go:build unix

package run

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/table"
)

// cpuTime is the processor time of this process, which other work on the
// machine disturbs less than the time that passes.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// far is the far end of a face: a transport that keeps what was sent, for
// answers to turn the Interests in it into their Data.
type far struct {
	nullTransport
	n      *numbered
	sent   face.Frames
	frames [][]byte
}

func (e *far) Send(b *face.Frames) int {
	e.sent.Buf = append(e.sent.Buf, b.Buf...)
	for i := range b.Ends {
		e.sent.Ends = append(e.sent.Ends, len(e.sent.Buf)-len(b.Buf)+b.Ends[i])
	}
	return 0
}

// answers are valid until the next call.
func (e *far) answers() [][]byte {
	var p ndn.LpPacket
	used := 0
	for i := range e.sent.Len() {
		if p.Parse(e.sent.Frame(i)) != nil || p.Fragment == nil {
			continue
		}
		if used == len(e.frames) {
			e.frames = append(e.frames, nil)
		}
		at := len(p.Fragment) - len(e.n.interest) + e.n.interestAt
		copy(e.n.data[e.n.dataAt:], p.Fragment[at:at+8])
		h := ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: p.PitToken}}
		e.frames[used] = ndn.AppendLpPacket(e.frames[used][:0], &h, e.n.data)
		used++
	}
	e.sent.Reset()
	return e.frames[:used]
}

// BenchmarkPackets is what a pair costs between the sockets: link service,
// tables, content store of 8 MB, and what is to be sent, for windows of so many
// Interests and then their Data, in batches as sockets give them. The time of
// the far ends is not counted.
func BenchmarkPackets(b *testing.B) {
	for _, size := range []int{100, 1400, 8192} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := start(b, Options{Shard: fw.Config{Seed: 1, CS: table.CSConfig{Capacity: 8 << 20}}})
			producer := &far{n: newNumbered(b, max(size-80, 1))}
			consumer := &nullTransport{}
			var rx [2]*ingress
			var ids [2]ndn.FaceID
			for i, tr := range []face.Transport{consumer, producer} {
				fc, err := f.addFace(newFace{tr: tr, persistency: face.PersistencyPersistent})
				if err != nil {
					b.Fatal(err)
				}
				rx[i], ids[i] = &ingress{fc: fc, tr: tr}, fc.id
			}
			addRoute(b, f, "/bench", ids[1])
			const window, batch = 1024, 256
			var interests [window][]byte
			for i := range interests {
				interests[i] = append([]byte(nil), producer.n.interest...)
			}
			deliver := func(r *ingress, frames [][]byte) time.Duration {
				begin := cpuTime(b)
				for len(frames) > 0 {
					k := min(batch, len(frames))
					r.Receive(frames[:k])
					r.Flush()
					frames = frames[k:]
				}
				return cpuTime(b) - begin
			}
			seq := uint64(0)
			var asking, answering time.Duration
			round := func() {
				for i := range interests {
					seq++
					binary.BigEndian.PutUint64(interests[i][producer.n.interestAt:], 1<<63|seq)
				}
				asking += deliver(rx[0], interests[:])
				answering += deliver(rx[1], producer.answers())
			}
			for range 20 {
				round()
			}
			asking, answering = 0, 0
			rounds := 0
			for b.Loop() {
				round()
				rounds++
			}
			n := float64(rounds * window)
			b.ReportMetric(float64(asking)/n, "interest-cpu-ns")
			b.ReportMetric(float64(answering)/n, "data-cpu-ns")
			if want := (rounds + 20) * window; consumer.frames != want {
				b.Fatalf("%d Data came back, want %d", consumer.frames, want)
			}
		})
	}
}
