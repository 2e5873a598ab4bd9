// Package store holds what a producer publishes: one file, a directory tree,
// or a stream that is spooled to a temporary file as it comes. Nothing is
// opened before it is asked for, and nothing is held in memory but the
// listings of directories.
package store

import (
	"errors"
	"fmt"
	"math"

	"ndnpop/producer"
)

// Options of every store.
type Options struct {
	// SegmentSize is the payload of a segment in bytes.
	SegmentSize int
	// Room is the largest payload under the served prefix
	// (producer.MaxSegmentSize); every byte of a path below it takes one. Files
	// whose path leaves too little get smaller segments.
	Room int
	// Version, when not zero, is the version that content has when it is first
	// seen. A change adds one.
	Version uint64
	// LeftOut, if not nil, is told what a listing leaves out, by its path in the
	// tree, and why. It is called by whoever asks the store.
	LeftOut func(path string, why error)
}

// ErrSegmentSize says that segments of the chosen size cannot be made.
var ErrSegmentSize = errors.New("bad segment size")

// Check reports whether segments can be made so.
func (o *Options) Check() error {
	switch {
	case o.SegmentSize < 1:
		return fmt.Errorf("%w: %d bytes; the smallest is 1", ErrSegmentSize, o.SegmentSize)
	case o.Room < 1:
		return fmt.Errorf("%w: the name leaves no room for content in a packet", ErrSegmentSize)
	case o.SegmentSize > o.Room:
		return fmt.Errorf("%w: %d bytes do not fit into a packet with this name and signature; the largest is %d",
			ErrSegmentSize, o.SegmentSize, o.Room)
	}
	return nil
}

// versionStep is the distance of two versions derived from times. The room in
// between tells the segment size: the same file cut otherwise is another
// version, or caches would mix the two.
const versionStep = 10000

// version of content last modified at mtime (nanoseconds since 1970): the
// time in microseconds, the last four digits replaced by the segment size. So
// the same file has the same version after a restart and on every replica
// that keeps modification times, as with the entity tags of web servers. It
// stays below 2^53, for those who read numbers as floating point.
func version(mtime int64, segmentSize int) uint64 {
	us := min(max(mtime/1000, 0), 1<<53-1-2*versionStep)
	return uint64(us)/versionStep*versionStep + uint64(segmentSize)
}

// successor is the version after v of content whose own is own.
func successor(v, own, step uint64) uint64 {
	if own > v || v > math.MaxUint64-step {
		return own
	}
	return v + step
}

var _ = []producer.Store{(*File)(nil), (*Dir)(nil), (*Spool)(nil)}
