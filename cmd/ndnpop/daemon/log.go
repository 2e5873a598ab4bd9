package daemon

import (
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// Log is a logger whose level can change while it is used.
type Log struct {
	logger zerolog.Logger
	level  atomic.Int32
	queue  *logQueue // nil: none
}

// NewLog makes a logger that writes to w, in the format "console" or "json".
// Colours are for terminals only.
func NewLog(w io.Writer, format string) *Log { return newLog(w, format, false) }

// NewQueuedLog is NewLog for a w that may not always take what is written: nobody
// who logs waits for it. It is to be closed.
func NewQueuedLog(w io.Writer, format string) *Log {
	q := newLogQueue(w)
	f, ok := w.(*os.File)
	l := newLog(q, format, ok && term.IsTerminal(int(f.Fd())))
	l.queue = q
	q.told = func(lost int) {
		l.logger.Warn().Int("lines", lost).Msg("lines of the log are lost: it could not be written")
	}
	go q.run()
	return l
}

func newLog(w io.Writer, format string, terminal bool) *Log {
	l := &Log{}
	if format == "console" {
		colour := terminal && os.Getenv("NO_COLOR") == ""
		w = zerolog.ConsoleWriter{Out: w, NoColor: !colour, FormatTimestamp: clockOf}
	}
	l.logger = zerolog.New(w).Hook(l)
	return l
}

// Close waits until what was logged is written, a second at most.
func (l *Log) Close() {
	if l.queue != nil {
		l.queue.close()
	}
}

// Logger is the logger.
func (l *Log) Logger() *zerolog.Logger { return &l.logger }

// SetLevel changes what is written: debug, info, warn or error.
func (l *Log) SetLevel(level string) {
	if v, err := zerolog.ParseLevel(level); err == nil {
		l.level.Store(int32(v))
	}
}

// linesPerSecond is how many lines are logged in a second of what somebody can cause
// at will: nobody must fill the disk.
const linesPerSecond = 10

// fewLines is a zerolog.Sampler of linesPerSecond. Zerolog's own would be silent
// for as long as the clock has been set back.
type fewLines struct {
	mu    sync.Mutex
	since time.Time // with the monotonic clock
	lines int
}

// Sample implements zerolog.Sampler.
func (f *fewLines) Sample(zerolog.Level) bool {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= time.Second {
		f.since, f.lines = now, 0
	}
	f.lines++
	return f.lines <= linesPerSecond
}

// timeFormat has milliseconds. zerolog's own has none, and can be changed for
// the whole process only.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// clockOf is the time of day of a timestamp, for people.
func clockOf(v any) string {
	s, _ := v.(string)
	if _, clock, ok := strings.Cut(s, "T"); ok && len(clock) >= len("15:04:05.000") {
		return clock[:len("15:04:05.000")]
	}
	return s
}

// Run implements zerolog.Hook: it drops what is below the level.
func (l *Log) Run(e *zerolog.Event, level zerolog.Level, _ string) {
	if int32(level) < l.level.Load() {
		e.Discard()
		return
	}
	e.Str(zerolog.TimestampFieldName, time.Now().Format(timeFormat))
}
