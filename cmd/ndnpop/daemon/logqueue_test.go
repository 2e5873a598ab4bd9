package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// reader is who reads a log: not before it is let, and with an error as long as
// there is one.
type reader struct {
	writing chan struct{} // one token for each call of Write
	let     chan struct{}

	mu  sync.Mutex
	err error
	got bytes.Buffer
}

func (r *reader) Write(b []byte) (int, error) {
	r.writing <- struct{}{}
	<-r.let
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	return r.got.Write(b)
}

// TestLogThatNobodyReads keeps nobody waiting, and takes bounded memory; what is
// lost is said when somebody reads again.
func TestLogThatNobodyReads(t *testing.T) {
	r := &reader{writing: make(chan struct{}, 1000), let: make(chan struct{})}
	l := NewQueuedLog(r, "json")
	say := func(n int) {
		for i := range n {
			l.Logger().Info().Str("text", strings.Repeat("x", 1000)).Int("n", i).Msg("line")
		}
	}
	say(1)
	<-r.writing
	const more = 2 * logWaiting / 1000
	say(more)
	l.queue.mu.Lock()
	waiting, lost := len(l.queue.lines), l.queue.lost
	l.queue.mu.Unlock()
	if waiting > logWaiting || waiting < logWaiting/2 || lost == 0 {
		t.Errorf("%d bytes wait, %d lines are lost", waiting, lost)
	}
	close(r.let)
	l.Close()
	got := r.got.String()
	if n := strings.Count(got, `"line"`); n != 1+more-lost {
		t.Errorf("%d lines of %d, and %d lost", n, 1+more, lost)
	}
	if !strings.Contains(got, fmt.Sprintf(`"lines":%d`, lost)) {
		t.Errorf("nothing says that %d lines are lost: …%s", lost, got[max(0, len(got)-200):])
	}
}

// TestLogOnAFullDisk: what could not be written is said when there is room again.
func TestLogOnAFullDisk(t *testing.T) {
	r := &reader{writing: make(chan struct{}, 1000), let: make(chan struct{}), err: errors.New("no space left on device")}
	close(r.let)
	l := NewQueuedLog(r, "json")
	l.Logger().Info().Msg("first")
	<-r.writing
	r.mu.Lock()
	r.err = nil
	r.mu.Unlock()
	l.Logger().Info().Msg("second")
	l.Close()
	if got := r.got.String(); strings.Contains(got, "first") != !strings.Contains(got, `"lines":1`) || !strings.Contains(got, "second") {
		t.Error(got)
	}
}
