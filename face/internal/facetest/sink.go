// Package facetest is the conformance suite of the transports: what
// face.Transport, face.Server and face.Listener promise, tested the same way
// on each of them.
package facetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/ndn"
)

// patience bounds every wait. No test waits that long unless it fails.
const patience = 20 * time.Second

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for wait := 10 * time.Microsecond; !ok(); wait = min(2*wait, 5*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(wait)
	}
}

// Frame appends frame number n of a batch: a Data-like element of size bytes
// that holds n and bytes that follow from it. The size is at least 16; 255 and
// 256, which no element has, become 254.
func Frame(b *face.Frames, n uint64, size int) {
	if size == 255 || size == 256 {
		size = 254
	}
	start := len(b.Buf)
	l := size - 4
	if l < 253 {
		l = size - 2
	}
	b.Buf = ndn.AppendTL(b.Buf, ndn.TypeData, l)
	b.Buf = binary.BigEndian.AppendUint64(b.Buf, n)
	i := len(b.Buf) - start
	b.Buf = append(b.Buf, filling(n, i, size)...)
	b.End()
}

// ramp is every byte after the one before it, 255 followed by 0.
var ramp = func() (b [256 + 1<<16]byte) {
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// filling is the bytes from i to size of frame number n. Each is byte(n)+byte(i); to
// make and to compare them singly is what tests would take their time for, with the
// detector of races.
func filling(n uint64, i, size int) []byte {
	first := byte(n) + byte(i)
	return ramp[first:][:size-i]
}

// check returns the number of a frame made by Frame.
func check(f []byte) (uint64, error) {
	_, l, h, err := ndn.ReadTL(f)
	if err != nil || h+l != len(f) || l < 8 || l > 1<<16 {
		return 0, fmt.Errorf("frame of %d bytes is not whole: %v", len(f), err)
	}
	n := binary.BigEndian.Uint64(f[h:])
	if !bytes.Equal(f[h+8:], filling(n, h+8, len(f))) {
		return 0, fmt.Errorf("frame %d of %d bytes is spoilt", n, len(f))
	}
	return n, nil
}

// Sink is a Receiver that checks the contract and the frames.
type Sink struct {
	// Hold, while locked, keeps Receive from returning.
	Hold sync.Mutex
	// Raw takes any frame, and keeps it, instead of those of Frame.
	Raw bool

	mu      sync.Mutex
	numbers []uint64
	kept    [][]byte
	frames  int
	pending bool // frames since the last Flush
	err     error
	closed  bool
	reason  error
}

// Receive implements face.Receiver.
func (s *Sink) Receive(frames [][]byte) {
	s.Hold.Lock()
	defer s.Hold.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.err = fmt.Errorf("received after the end")
	}
	if len(frames) == 0 {
		s.err = fmt.Errorf("received an empty batch")
	}
	s.pending = true
	for _, f := range frames {
		s.frames++
		if s.Raw {
			s.kept = append(s.kept, bytes.Clone(f))
			continue
		}
		n, err := check(f)
		if err != nil {
			s.err = err
		}
		s.numbers = append(s.numbers, n)
	}
}

// Flush implements face.Receiver.
func (s *Sink) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = false
}

// Closed implements face.Receiver.
func (s *Sink) Closed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.err = fmt.Errorf("closed twice")
	}
	if err == nil {
		s.err = fmt.Errorf("closed without a reason")
	}
	s.closed, s.reason = true, err
}

// Count is the number of frames received and flushed.
func (s *Sink) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending {
		return -1
	}
	return s.frames
}

// Reason is why the transport ended, nil while it lives.
func (s *Sink) Reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Numbers returns the numbers of the frames in the order of arrival.
func (s *Sink) Numbers() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]uint64(nil), s.numbers...)
}

// Frames returns the frames kept with Raw.
func (s *Sink) Frames() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.kept...)
}

// Check fails the test if the contract or a frame was broken.
func (s *Sink) Check(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		t.Error(s.err)
	}
}
