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

// benchBatch is how many packets the batches of a benchmark have, at most what
// the daemon locks a shard for.
const benchBatch = 64

// batches drive a shard as the daemon does: some Interests at once, then what
// was sent upstream is answered at once.
type batches struct {
	n        *benchNet
	asks     [benchBatch]ndn.Packet
	answers  [benchBatch]ndn.Packet
	interest [benchBatch][]byte
	data     [benchBatch][]byte
	tokens   [benchBatch][table.TokenLen]byte
	sent     int
}

func newBatches(n *benchNet) *batches {
	s := &batches{n: n}
	n.s.out = s
	return s
}

// Send implements Sender: it notes the tokens of Interests.
func (s *batches) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	if wire[0] == byte(ndn.TypeInterest) {
		copy(s.tokens[s.sent][:], f.PitToken)
		s.sent++
	}
	return s.n.out.Send(to, wire, f)
}

// pairs passes the packets in interest and data, parsing included.
func (s *batches) pairs(tb testing.TB) {
	n := s.n
	n.now += 1000 * benchBatch
	for i := range s.asks {
		if err := s.asks[i].Parse(s.interest[i], &ndn.LpFields{PitToken: n.tokens[:4]}); err != nil {
			tb.Fatal(err)
		}
	}
	s.sent = 0
	n.s.ReceiveBatch(n.now, local1, s.asks[:])
	if s.sent != benchBatch {
		tb.Fatalf("%d Interests were sent", s.sent)
	}
	for i := range s.answers {
		if err := s.answers[i].Parse(s.data[i], &ndn.LpFields{PitToken: s.tokens[i][:]}); err != nil {
			tb.Fatal(err)
		}
	}
	n.s.ReceiveBatch(n.now, remote1, s.answers[:])
	n.s.Tick(n.now)
}

// measure reports the cost of a pair. What grows with the number of pairs, the
// dead nonce list, has its size before, and nothing is left to collect.
func (s *batches) measure(b *testing.B, next func()) {
	const before = 1 << 13
	for range before {
		next()
		s.pairs(b)
	}
	runtime.GC()
	b.ReportAllocs()
	cost := costs(b)
	i := 0
	for b.Loop() {
		next()
		s.pairs(b)
		i += benchBatch
	}
	cost(b, i)
	s.n.check(b, i+before*benchBatch, 0)
}

// TestBatchDoesNotAllocate is the gate of batches in large tables.
func TestBatchDoesNotAllocate(t *testing.T) {
	s := newBatches(newBench(t, 20_000, 64<<20))
	i := uint32(0)
	next := func() {
		for k := range benchBatch {
			s.n.segment(i)
			i++
			s.interest[k] = append(s.interest[k][:0], s.n.interest...)
			s.data[k] = append(s.data[k][:0], s.n.data...)
		}
		s.pairs(t)
	}
	for range 1000 {
		next()
	}
	if a := testing.AllocsPerRun(200, next); a != 0 {
		t.Errorf("%v allocations for a batch", a)
	}
	s.n.check(t, int(i), 0)
}

// BenchmarkPending holds so many Interests pending while pairs pass.
func BenchmarkPending(b *testing.B) {
	for _, pending := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(pending), func(b *testing.B) {
			n := newBench(b, 1000, 0)
			n.s.cfg.MaxLifetime = time.Hour
			n.s.pit = table.NewPIT(table.PITConfig{MaxEntries: 2 << 20, MaxEntriesPerFace: 2 << 20}, 0)
			n.s.dead = table.NewDeadNonces(1<<14, time.Second)
			for i := range uint32(pending) {
				n.segment(1<<24 + i)
				n.ask(b)
			}
			s, i := newBatches(n), uint32(0)
			s.measure(b, func() {
				for k := range benchBatch {
					n.segment(i % (1 << 24))
					i++
					s.interest[k] = append(s.interest[k][:0], n.interest...)
					s.data[k] = append(s.data[k][:0], n.data...)
				}
			})
		})
	}
}

// BenchmarkRoutes is a pair whose Interests go to random routes of so many;
// Data of 100 bytes, no content store.
func BenchmarkRoutes(b *testing.B) {
	for _, routes := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(routes), func(b *testing.B) {
			n := newBench(b, routes, 0)
			n.s.dead = table.NewDeadNonces(1<<14, time.Second)
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
			s, i := newBatches(n), 0
			s.measure(b, func() {
				for k := range benchBatch {
					p := &pairs[i%len(pairs)]
					s.interest[k], s.data[k] = p.interest, p.data
					// The Nonce is followed by the lifetime, four bytes.
					binary.BigEndian.PutUint32(p.interest[len(p.interest)-8:], uint32(i))
					i++
				}
			})
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
