package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"ndnpop/consumer"
)

// ErrNoReader: the reader of the output closed it.
var ErrNoReader = errors.New("the reader of the output is gone")

// Stream is a Target without memory: a pipe, a terminal, a device.
type Stream struct {
	w    io.Writer
	name string
}

// NewStream writes to w, which messages call name.
func NewStream(w io.Writer, name string) *Stream { return &Stream{w, name} }

// Open implements Target.
func (*Stream) Open(*consumer.Object) (consumer.Resume, error) { return consumer.Resume{}, nil }

// Write implements Target.
func (s *Stream) Write(p []byte, _ consumer.Resume) error {
	if len(p) == 0 {
		return nil
	}
	switch _, err := s.w.Write(p); {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("write %s: %w", s.name, ErrNoReader)
	default:
		// The file's own name for itself says less.
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("write %s: %w", s.name, err)
	}
}

// Commit implements Target.
func (*Stream) Commit() error { return nil }

// Abort implements Target.
func (*Stream) Abort(error) error { return nil }
