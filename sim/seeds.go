package sim

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// RunSeeds calls fn once for each seed, on all processors, and returns the
// results in the order of the seeds. fn builds and runs a Network of its own.
// The errors are joined, each with its seed.
func RunSeeds[T any](seeds []uint64, fn func(seed uint64) (T, error)) ([]T, error) {
	results := make([]T, len(seeds))
	errs := make([]error, len(seeds))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(seeds)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(seeds) {
					return
				}
				r, err := fn(seeds[i])
				if err != nil {
					err = fmt.Errorf("seed %d: %w", seeds[i], err)
				}
				results[i], errs[i] = r, err
			}
		}()
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// Seeds returns the seeds 1 to n.
func Seeds(n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = uint64(i) + 1
	}
	return s
}
