//go:build !linux

package dataplane

import "time"

// beat wakes a pacer at even intervals, as well as the runtime can.
type beat struct{ interval time.Duration }

func newBeat(interval time.Duration) (*beat, error) { return &beat{interval}, nil }

func (b *beat) wait() error {
	time.Sleep(b.interval)
	return nil
}

func (b *beat) close() {}
