//go:build linux

package cdn

import (
	"context"
	"slices"
	"time"

	"ndnpop/cdnbench"
)

// Kind is one way of moving objects over a Topology, not yet started.
type Kind struct {
	// Name says what it is, with everything that matters, as results show it:
	// "ndnpop failover, cubic".
	Name string
	// HTTP is set for what NDN is compared with, Peer for other NDN software.
	HTTP, Peer bool
	// Missing says why this machine cannot run it; nil if nothing is known to be
	// missing. The results list what was left out.
	Missing func() error
	// Prepare installs or builds the programs that it needs, nil if none.
	Prepare func(ctx context.Context, o cdnbench.Options) error
	// Start starts the programs at the nodes and returns when all of them
	// answer: caches are empty, and every object of the topology is served by
	// both origins. It stops what it started when it fails. Files that it needs
	// go below Topology.Scratch.
	Start func(ctx context.Context, t *Topology) (Arm, error)
}

// Arm is a Kind that runs. Its methods are for one goroutine, but that Kill and
// Steer are called while a Fetch is under way, and Held of several nodes at the
// same time.
type Arm interface {
	// Fetch fetches an object at the client and checks its bytes. What a program
	// did not manage is Fetched.Err; an error is a failure of the experiment.
	Fetch(ctx context.Context, f Fetch) (Fetched, error)
	// Held is how many bytes of content the cache of a node holds now.
	Held(ctx context.Context, n Node) (int64, error)
	// Forget empties the cache of a node.
	Forget(ctx context.Context, n Node) error
	// Steer makes the edge ask this intermediate first from now on, as an
	// operator would: without a restart that empties caches.
	Steer(ctx context.Context, mid Node) error
	// Kill ends all programs of the node with SIGKILL.
	Kill(n Node) error
	// Stop ends all programs. The arm is of no use afterwards.
	Stop() error
}

// Fetch says what to fetch, and how.
type Fetch struct {
	Object Object
	// The bytes [Offset, Offset+Length); a Length of 0 means to the end.
	Offset, Length int64
	// Kept asks for a connection that an earlier request has opened, where there
	// are connections: the time counts from the second request.
	Kept bool
	// Resume continues a broken transfer where it broke, as a good client does,
	// until the context ends.
	Resume bool
	// Progress, if set, is called as content arrives, from one goroutine.
	Progress func(Point)
}

// Point is how much content had arrived at a time.
type Point struct {
	At    time.Duration // since the program sent its first packet, or was told to
	Bytes int64         // of content, each byte counted once
}

// Fetched is what became of a Fetch.
type Fetched struct {
	Points []Point // as content arrived in order; a thousand per second at most
	// Packets is when each packet with content arrived, in order or not, for
	// arms that know; otherwise nil.
	Packets []time.Duration
	// First is the time to the first byte of content, with all that had to be
	// asked before: connections, discovery of a version. Elapsed is that to the
	// last byte, or to giving up.
	First, Elapsed time.Duration
	Bytes          int64 // of content that arrived, each byte counted once
	Twice          int64 // bytes that reached the client a second time
	// Again counts requests that the client had to repeat: Interests sent again,
	// ranges asked for after a break.
	Again int64
	// AgainAt is when each of them was sent, for arms that know.
	AgainAt []time.Duration
	Err     error // why it is not complete and correct; nil if it is
}

// Gap is the longest time without content that began between from and to. What
// never came lasts until the fetch was given up.
func (f *Fetched) Gap(from, to time.Duration) time.Duration {
	if f.Packets == nil {
		return f.OrderedGap(from, to)
	}
	return f.longest(slices.Clone(f.Packets), from, to)
}

// OrderedGap is that of content in order, as a reader of the output sees it.
func (f *Fetched) OrderedGap(from, to time.Duration) time.Duration {
	var at []time.Duration
	for _, p := range f.Points {
		at = append(at, p.At)
	}
	return f.longest(at, from, to)
}

func (f *Fetched) longest(at []time.Duration, from, to time.Duration) (gap time.Duration) {
	if f.Err != nil {
		at = append(at, f.Elapsed)
	}
	for i := 1; i < len(at); i++ {
		if at[i-1] >= from && at[i-1] <= to {
			gap = max(gap, at[i]-at[i-1])
		}
	}
	return gap
}
