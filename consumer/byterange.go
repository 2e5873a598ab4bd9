package consumer

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// RangeKind says what a Range counts.
type RangeKind uint8

// Kinds of range.
const (
	RangeAll      RangeKind = iota
	RangeBytes              // bytes From to To
	RangeSuffix             // the last From bytes
	RangeSegments           // whole segments From to To
)

// Range is the wanted part of an object, both ends included. To is
// math.MaxUint64 when open.
type Range struct {
	Kind     RangeKind
	From, To uint64
}

// String writes the range as it is given on the command line.
func (r Range) String() string {
	end := ""
	if r.To != math.MaxUint64 {
		end = strconv.FormatUint(r.To, 10)
	}
	switch r.Kind {
	case RangeBytes:
		return fmt.Sprintf("bytes %d-%s", r.From, end)
	case RangeSuffix:
		return fmt.Sprintf("bytes -%d", r.From)
	case RangeSegments:
		return fmt.Sprintf("segments %d-%s", r.From, end)
	}
	return "all"
}

// ParseByteRange reads A-B, A- or -N, as in HTTP (RFC 9110, section 14.1.2).
func ParseByteRange(s string) (Range, error) {
	a, b, ok := strings.Cut(s, "-")
	if !ok || (a == "" && b == "") {
		return Range{}, fmt.Errorf("%q is not a byte range: want A-B, A- or -N", s)
	}
	if a == "" {
		n, err := strconv.ParseUint(b, 10, 62)
		if err != nil || n == 0 {
			return Range{}, fmt.Errorf("%q is not a byte range: -N needs a number of bytes above 0", s)
		}
		return Range{RangeSuffix, n, math.MaxUint64}, nil
	}
	return parseEnds(s, a, b, RangeBytes)
}

// ParseSegmentRange reads A-B, A- or A.
func ParseSegmentRange(s string) (Range, error) {
	a, b, ok := strings.Cut(s, "-")
	if !ok {
		b = a
	}
	return parseEnds(s, a, b, RangeSegments)
}

// notAnEnd says what is wrong with an end of the range s.
func notAnEnd(s, end string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is not a range: %s is too large", s, end)
	}
	return fmt.Errorf("%q is not a range: %q is not a number", s, end)
}

func parseEnds(s, a, b string, kind RangeKind) (Range, error) {
	r := Range{Kind: kind, To: math.MaxUint64}
	var err error
	if r.From, err = strconv.ParseUint(a, 10, 62); err != nil {
		return Range{}, notAnEnd(s, a, err)
	}
	if b != "" {
		if r.To, err = strconv.ParseUint(b, 10, 62); err != nil {
			return Range{}, notAnEnd(s, b, err)
		}
		if r.To < r.From {
			return Range{}, fmt.Errorf("%q is not a range: it ends before it begins", s)
		}
	}
	return r, nil
}

// plan is which segments hold the wanted part, and what to cut off them.
type plan struct {
	first uint64
	last  uint64 // valid if ends
	ends  bool   // the last segment is known from the range alone
	skip  uint64 // bytes to drop at the start
	limit uint64 // bytes wanted after them, noLimit when to the end
}

const noLimit = math.MaxUint64

// window resolves r to the bytes from..to of an object (to is
// math.MaxUint64 when the size is unknown and the range is open). size is
// valid if hasSize.
func (r Range) window(size uint64, hasSize bool) (from, to uint64, err error) {
	from, to = 0, math.MaxUint64
	switch r.Kind {
	case RangeBytes:
		from, to = r.From, r.To
	case RangeSuffix:
		// The size is known here.
		if r.From < size {
			from = size - r.From
		}
	}
	if hasSize && r.Kind != RangeAll {
		if from >= size {
			return 0, 0, fmt.Errorf("%w: %s of an object of %d bytes", ErrRange, r, size)
		}
		to = min(to, size-1)
	}
	return from, to, nil
}

// planBytes finds the segments of the bytes from..to. With an unknown segment
// size everything before is fetched and dropped; callers avoid that where it
// matters.
func planBytes(from, to, segmentSize uint64) plan {
	p := plan{skip: from, limit: noLimit}
	if to != math.MaxUint64 {
		p.limit = to - from + 1
	}
	if segmentSize > 0 {
		p.first, p.skip = from/segmentSize, from%segmentSize
		if to != math.MaxUint64 {
			p.last, p.ends = to/segmentSize, true
		}
	}
	return p
}
