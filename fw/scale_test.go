//go:build unix

package fw

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// costs begins to measure processor time, which other work on the machine
// disturbs less than the time that passes; its result reports that of n
// operations.
func costs(b *testing.B) func(b *testing.B, n int) {
	now := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begin := now()
	return func(b *testing.B, n int) {
		b.ReportMetric(float64((now()-begin).Nanoseconds())/float64(n), "cpu-ns/op")
	}
}

// BenchmarkPending holds so many Interests pending while pairs pass.
func BenchmarkPending(b *testing.B) {
	for _, pending := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			n := newBench(b, 1000, 0)
			n.s.cfg.MaxLifetime = time.Hour
			n.s.pit = table.NewPIT(table.PITConfig{MaxEntries: 2 << 20, MaxEntriesPerFace: 2 << 20}, 0)
			for i := range uint32(pending) {
				n.segment(1<<24 + i)
				n.ask(b)
			}
			b.ReportAllocs()
			cost := costs(b)
			i := uint32(0)
			for b.Loop() {
				n.pair(b, i)
				i++
			}
			cost(b, int(i))
			n.check(b, int(i), 0)
		})
	}
}

// BenchmarkRoutes is a pair whose Interests go to random routes of so many;
// Data of 100 bytes, no content store.
func BenchmarkRoutes(b *testing.B) {
	for _, routes := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(routes), func(b *testing.B) {
			n := newBench(b, routes, 0)
			rng := rand.New(rand.NewPCG(1, 2))
			type pair struct{ interest, data []byte }
			pairs := make([]pair, 1<<15)
			for i := range pairs {
				k := rng.IntN(routes)
				name := ndn.Name(nil).AppendGeneric(fmt.Sprintf("site%d", k%1000)).AppendGeneric(fmt.Sprintf("obj%d", k)).
					AppendNumber(ndn.TypeSegment, uint64(i))
				p := &pairs[i]
				p.interest = ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: uint32(i), Lifetime: 4 * time.Second})
				var err error
				if p.data, err = ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: make([]byte, 40)}, ndn.DigestSigner{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			cost := costs(b)
			i := 0
			for b.Loop() {
				p := &pairs[i%len(pairs)]
				n.interest, n.data = p.interest, p.data
				// The Nonce is followed by the lifetime, four bytes.
				binary.BigEndian.PutUint32(n.interest[len(n.interest)-8:], uint32(i))
				n.now += 1000
				n.ask(b)
				n.answer(b)
				n.s.Tick(n.now)
				i++
			}
			cost(b, i)
			n.check(b, i, 0)
		})
	}
}

// BenchmarkShards is what more shards could gain where nothing else is the
// limit: two goroutines with pairs for objects of their own, in batches of 32,
// through one shard whose lock they take for each batch, and through one each.
// No packet is read, copied or written.
func BenchmarkShards(b *testing.B) {
	for _, c := range []struct {
		name               string
		goroutines, shards int
	}{{"1 goroutine, 1 shard", 1, 1}, {"2 goroutines, 1 shard", 2, 1}, {"2 goroutines, 2 shards", 2, 2}} {
		b.Run(c.name, func(b *testing.B) {
			const batch = 32
			var locks [2]struct {
				sync.Mutex
				_ [120]byte // a cache line each
			}
			var shards [2]*benchNet
			var left atomic.Int64 // batches
			for i := range c.shards {
				shards[i] = newBench(b, 1000, 0)
			}
			work := make([]func(), c.goroutines)
			for g := range work {
				s, mu := shards[g%c.shards], &locks[g%c.shards]
				mine := newBench(b, 0, 0) // for its packets
				next := uint32(g) << 23
				var asks, answers [batch]ndn.Packet
				var wires [batch][2][]byte
				work[g] = func() {
					for left.Add(-1) >= 0 {
						for i := range batch {
							mine.segment(next)
							next++
							w := &wires[i]
							w[0], w[1] = append(w[0][:0], mine.interest...), append(w[1][:0], mine.data...)
							if asks[i].Parse(w[0], &ndn.LpFields{}) != nil || answers[i].Parse(w[1], &ndn.LpFields{}) != nil {
								b.Error("a packet does not parse")
							}
						}
						mu.Lock()
						s.now += 1000
						for i := range asks {
							s.s.Receive(s.now, local1, &asks[i])
						}
						mu.Unlock()
						mu.Lock()
						for i := range answers {
							s.s.Receive(s.now, remote1, &answers[i])
						}
						s.s.Tick(s.now)
						mu.Unlock()
					}
				}
			}
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, w := range work {
				wg.Go(w)
			}
			wg.Wait()
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "pairs/s")
			runtime.KeepAlive(shards)
		})
	}
}
