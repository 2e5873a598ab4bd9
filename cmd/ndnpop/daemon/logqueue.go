package daemon

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// What of a log may wait for who reads it, in bytes, and for how long the end of
// the process waits.
const (
	logWaiting = 1 << 20
	logDrain   = time.Second
)

// logQueue writes the lines of a log on a goroutine of its own: whoever has
// something to say holds locks, and must not wait for a pipe that nobody reads or
// a disk that hangs. What does not fit or cannot be written is lost.
type logQueue struct {
	w    io.Writer
	told func(lost int) // says that lines are lost, once some can be written again
	wake chan struct{}  // one token: there is something to do
	done chan struct{}  // closed when the goroutine has ended

	mu     sync.Mutex
	lines  []byte
	lost   int
	closed bool
}

func newLogQueue(w io.Writer) *logQueue {
	return &logQueue{w: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Write implements io.Writer; b is whole lines.
func (q *logQueue) Write(b []byte) (int, error) {
	q.mu.Lock()
	if len(q.lines)+len(b) > logWaiting {
		q.lost += bytes.Count(b, newline)
	} else {
		q.lines = append(q.lines, b...)
	}
	q.mu.Unlock()
	q.signal()
	return len(b), nil
}

var newline = []byte{'\n'}

func (q *logQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run writes what comes until the queue is closed and empty.
func (q *logQueue) run() {
	defer close(q.done)
	var lines []byte
	for {
		q.mu.Lock()
		lines, q.lines = q.lines, lines[:0]
		closed := q.closed
		q.mu.Unlock()
		if len(lines) == 0 {
			if closed {
				return
			}
			<-q.wake
			continue
		}
		_, err := q.w.Write(lines)
		q.mu.Lock()
		lost := q.lost
		if err != nil {
			q.lost += bytes.Count(lines, newline)
		} else {
			q.lost = 0
		}
		q.mu.Unlock()
		if err == nil && lost > 0 {
			q.told(lost)
		}
	}
}

// close waits until all is written, for a while.
func (q *logQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	t := time.NewTimer(logDrain)
	defer t.Stop()
	select {
	case <-q.done:
	case <-t.C:
	}
}
