// Package share bounds what waits in the queues of all peers of a listener
// together, so that thousands of connections that nobody reads from cost no
// gigabytes.
package share

import "sync/atomic"

// Least is what each queue may hold in any case, in bytes.
const Least = 64 << 10

// Memory is what several queues have in common. A nil one sets no bound.
type Memory struct {
	max  int64
	used atomic.Int64
}

// New makes a Memory of max bytes.
func New(max int64) *Memory { return &Memory{max: max} }

// Limit is how long a queue may be, in bytes, that is bounded by own: as long
// as what is left for all (Choudhury and Hahne, "Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches", 1998), so that while few peers
// are slow they have the whole of theirs.
func (m *Memory) Limit(own int) int {
	if m == nil {
		return own
	}
	return min(own, int(max(Least, m.max-m.used.Load())))
}

// Add notes that a queue has grown by n bytes, or shrunk.
func (m *Memory) Add(n int64) {
	if m != nil {
		m.used.Add(n)
	}
}

// Used is the length of all queues, in bytes.
func (m *Memory) Used() int64 { return m.used.Load() }
