package table

import (
	"errors"
	"fmt"
	"strings"
)

// CSConfig configures a content store.
type CSConfig struct {
	// Capacity is the memory in bytes that the store may occupy, its own
	// records included. Zero or less turns the store off.
	Capacity int64
	// MaxPackets bounds the number of Data; zero is no bound.
	MaxPackets int
	// Policy names the eviction policy, one of CSPolicies; empty is the first.
	Policy string
	// Pages supplies the memory; nil takes it from the Go heap.
	Pages PageSource
	// NoAdmit keeps new Data out; NoServe answers nothing.
	NoAdmit, NoServe bool
}

// CSPolicies lists the names of the eviction policies.
func CSPolicies() []string { return []string{"lru", "fifo"} }

// ErrPolicy says that a policy's name is unknown.
var ErrPolicy = errors.New("unknown content store policy")

func newPolicy(name string) (csPolicy, error) {
	switch name {
	case "", "lru":
		return &lruPolicy{}, nil
	case "fifo":
		return &fifoPolicy{}, nil
	}
	return nil, fmt.Errorf("%w %q: the choices are %s", ErrPolicy, name, strings.Join(CSPolicies(), ", "))
}

// CSInfo is the state of a content store.
type CSInfo struct {
	Config  CSConfig
	Packets int
	Bytes   int64 // of the packets held
	Memory  int64 // occupied, with all overhead
	Hits    uint64
	Misses  uint64
	Inserts uint64
	Evicted uint64
	Refused uint64 // Data larger than the store, or of too many components
}
