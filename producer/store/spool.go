package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"ndnpop/producer"
)

// Spool is a store of one stream of unknown length. Fill copies it to a
// temporary file without a name, and what has been copied is served at once.
// Fill runs on a goroutine of its own; the other methods belong to the
// responder's.
type Spool struct {
	number  uint64
	segment int
	mtime   uint64
	file    *os.File

	mu    sync.Mutex
	size  uint64
	final bool
	sum   [32]byte
}

// NewSpool returns the store of a stream that begins at the given time, which
// becomes its version unless the options name one. The temporary file lies in
// dir; empty stands for the system's place.
func NewSpool(dir string, began time.Time, opts Options) (*Spool, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "ndnpop-put-")
	if err != nil {
		return nil, fmt.Errorf("no temporary file to spool the input to: %w; set TMPDIR to a directory with room for it", err)
	}
	// Nobody else needs the name, and without it nothing is left behind.
	os.Remove(f.Name())
	s := &Spool{number: opts.Version, segment: opts.SegmentSize, mtime: uint64(began.UnixNano()), file: f}
	if s.number == 0 {
		s.number = version(began.UnixNano(), opts.SegmentSize)
	}
	return s, nil
}

// ErrSpool says that the input could not be kept.
var ErrSpool = errors.New("cannot spool the input")

// Fill copies r to its end and calls grown after every step. It returns nil
// at the end of the stream, the error of r, or one that Is ErrSpool.
func (s *Spool) Fill(r io.Reader, grown func()) error {
	buf := make([]byte, 256<<10)
	hash := sha256.New()
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := s.file.WriteAt(buf[:n], int64(s.size)); werr != nil {
				return fmt.Errorf("%w: %w; set TMPDIR to a directory with room for it", ErrSpool, werr)
			}
			hash.Write(buf[:n])
			s.mu.Lock()
			s.size += uint64(n)
			s.mu.Unlock()
			grown()
		}
		if err == io.EOF {
			s.mu.Lock()
			hash.Sum(s.sum[:0])
			s.final = true
			s.mu.Unlock()
			grown()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Close discards the temporary file. Fill must have returned.
func (s *Spool) Close() error { return s.file.Close() }

// Latest implements producer.Store.
func (s *Spool) Latest(p producer.Path) (producer.Object, error) {
	if len(p.Name) > 0 || p.Listing {
		return nil, producer.ErrNotFound
	}
	return s, nil
}

// At implements producer.Store.
func (s *Spool) At(p producer.Path, v uint64) (producer.Object, error) {
	if v != s.number {
		return nil, producer.ErrNotFound
	}
	return s.Latest(p)
}

// Version implements producer.Object.
func (s *Spool) Version() uint64 { return s.number }

// SegmentSize implements producer.Object.
func (s *Spool) SegmentSize() int { return s.segment }

// Size implements producer.Object.
func (s *Spool) Size() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.final
}

// Attributes implements producer.Object.
func (s *Spool) Attributes() producer.Attributes {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := producer.Attributes{Growing: true, Mtime: s.mtime}
	if s.final {
		a.SHA256 = &s.sum
	}
	return a
}

// ReadAt implements producer.Object.
func (s *Spool) ReadAt(b []byte, off uint64) error {
	_, err := s.file.ReadAt(b, int64(off))
	return err
}
