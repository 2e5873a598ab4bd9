package run

import (
	"time"

	"ndnpop/ndn"
)

// clock is the only source of time: monotonic, never 0.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() ndn.Time { return ndn.Time(time.Since(c.start)) + 1 }
