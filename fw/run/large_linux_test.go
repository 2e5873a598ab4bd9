package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/table"
)

// available is the memory that the system can give, in bytes.
func available(tb testing.TB) int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		tb.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				tb.Skip(err)
			}
			return kb << 10
		}
	}
	tb.Skip("no MemAvailable in /proc/meminfo")
	return 0
}

func processor(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Skip(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// pauses is the histogram of the collector's pauses so far.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: append([]uint64(nil), h.Counts...), Buckets: h.Buckets}
}

// longest is the upper bound of the longest pause since before, in seconds.
func longest(before, after *metrics.Float64Histogram) float64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] {
			if up := after.Buckets[i+1]; !math.IsInf(up, 1) {
				return up
			}
			return after.Buckets[i]
		}
	}
	return 0
}

// BenchmarkStoreSize fills content stores of several sizes with Data of 8 KB,
// and tells what an insertion (with the eviction that it needs) and a hit cost
// then in processor time, the resident memory for each byte of the capacity, and
// the longest pause of the garbage collector while it runs all the time.
func BenchmarkStoreSize(b *testing.B) {
	for _, gb := range []int64{1, 2, 4, 8} {
		for _, where := range []string{"mapped", "heap"} {
			b.Run(fmt.Sprintf("%dGB/%s", gb, where), func(b *testing.B) {
				if have := available(b); have < gb<<30*5/4 {
					b.Skipf("%d MB are available", have>>20)
				}
				storeSize(b, gb<<30, where == "mapped")
			})
		}
	}
}

func storeSize(b *testing.B, capacity int64, mapped bool) {
	base := resident(b)
	cfg := table.CSConfig{Capacity: capacity, Policy: "fifo"} // hits keep nothing longer
	if mapped {
		cfg.Pages = newPages()
	}
	hasher := ndn.NewHasher(1)
	cs, err := table.NewCS(hasher, cfg)
	if err != nil {
		b.Fatal(err)
	}
	f := newFiller(b)
	next := uint32(0)
	for ; cs.Info().Evicted == 0; next++ {
		f.insert(cs, next)
	}
	held := uint32(cs.Info().Packets)
	interest := ndn.Interest{}
	q := table.Query{Interest: &interest}
	hit := func(i uint32) {
		f.set(i)
		interest.Name = f.d.Name
		q.Hash, q.Hashes = f.hashes[len(f.hashes)-1], f.hashes
		if _, ok := cs.Find(1, &q); !ok {
			b.Fatal("a miss")
		}
	}
	before := pauses()
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				runtime.GC()
				n++
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	// With the collector at work, for the pauses; without, for the cost.
	work := func(n int) {
		for range n {
			f.insert(cs, next)
			next++
		}
	}
	work(200_000)
	close(stop)
	collections := <-stopped
	worst := longest(before, pauses())
	rng := rand.New(rand.NewPCG(1, 1))
	var inserting, hitting time.Duration
	n := 0
	for b.Loop() {
		const each = 20_000
		t0 := processor(b)
		work(each)
		t1 := processor(b)
		for range each {
			hit(next - 1 - uint32(rng.IntN(int(held-10))))
		}
		inserting, hitting = inserting+t1-t0, hitting+processor(b)-t1
		n += each
	}
	b.ReportMetric(float64(inserting.Nanoseconds())/float64(n), "ns/insert")
	b.ReportMetric(float64(hitting.Nanoseconds())/float64(n), "ns/hit")
	b.ReportMetric(float64(resident(b)-base)/float64(capacity), "rss/capacity")
	b.ReportMetric(worst*1e6, "µs/longest-pause")
	b.ReportMetric(float64(collections), "collections")
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(cs)
	cs = nil
	for deadline := time.Now().Add(10 * time.Second); int64(resident(b)-base) > capacity/2 && time.Now().Before(deadline); {
		runtime.GC() // for whoever comes next
	}
}
