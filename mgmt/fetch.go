package mgmt

import (
	"errors"
	"fmt"
	"time"

	"ndnpop/ndn"
)

// Errors of an exchange with a forwarder.
var (
	// ErrTimeout: the forwarder did not answer.
	ErrTimeout = errors.New("no answer")
	// ErrNack: the Interest came back; there is no management behind it.
	ErrNack = errors.New("the forwarder does not manage itself here")
	// ErrTooLarge: a dataset is larger than its reader allows.
	ErrTooLarge = errors.New("the dataset is too large")
)

// Bounds of a fetch.
const (
	fetchWindow  = 16
	fetchTries   = 4
	fetchTimeout = time.Second // of the first try; each further one gets this more
	maxSegments  = 1 << 20
)

// Fetch fetches one dataset: it discovers the newest version and collects its
// segments. It is a state machine without I/O. Its driver sends what Next
// returns until there is no more, passes on what comes, and calls Tick when
// Deadline is due, until Done.
type Fetch struct {
	name     ndn.Name // without version and segment
	limit    int
	base     ndn.Name // with the version, once it is known
	last     uint64
	lastSeen bool // last is known
	next     uint64
	flying   []flight
	resend   []flight
	parts    map[uint64][]byte
	bytes    int
	begun    bool
	done     bool
	err      error
}

type flight struct {
	seg      uint64
	discover bool
	tries    int
	until    ndn.Time
}

// NewFetch returns the fetch of the dataset that name, with its filter but
// without version and segment, is the prefix of. Its content may have at most
// limit bytes.
func NewFetch(name ndn.Name, limit int) *Fetch {
	return &Fetch{name: name.Clone(), limit: limit, parts: map[uint64][]byte{}}
}

// Done reports whether the fetch has ended.
func (f *Fetch) Done() bool { return f.done }

// Content returns the content of a fetch that is Done, or why there is none: a
// *StatusError if the forwarder refused, ErrTimeout, ErrNack, ErrTooLarge or
// ErrMalformed.
func (f *Fetch) Content() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	out := make([]byte, 0, f.bytes)
	for seg := range uint64(len(f.parts)) {
		out = append(out, f.parts[seg]...)
	}
	return out, nil
}

func (f *Fetch) fail(err error) {
	if !f.done {
		f.done, f.err = true, err
	}
}

// Next returns the next Interest to send, nil when there is none for now.
func (f *Fetch) Next(now ndn.Time, nonce uint32) []byte {
	if f.done || len(f.flying) >= fetchWindow {
		return nil
	}
	var fl flight
	for len(f.resend) > 0 && f.answered(f.resend[0]) {
		f.resend = f.resend[1:]
	}
	switch {
	case len(f.resend) > 0:
		fl = f.resend[0]
		f.resend = f.resend[1:]
	case !f.begun:
		f.begun = true
		fl = flight{discover: true}
	case f.base != nil && f.wanted():
		fl = flight{seg: f.next}
		f.next++
	default:
		return nil
	}
	fl.tries++
	wait := fetchTimeout * time.Duration(fl.tries)
	fl.until = now.Add(wait)
	f.flying = append(f.flying, fl)
	i := ndn.InterestFields{Name: f.name, CanBePrefix: true, MustBeFresh: true, Nonce: nonce, Lifetime: wait}
	if !fl.discover {
		i.Name = append(ndn.Name(nil), f.base...).AppendNumber(ndn.TypeSegment, fl.seg)
		i.CanBePrefix, i.MustBeFresh = false, false
	}
	return ndn.AppendInterest(nil, &i)
}

// answered reports whether an answer came after it was given up.
func (f *Fetch) answered(fl flight) bool {
	if fl.discover {
		return f.base != nil
	}
	_, have := f.parts[fl.seg]
	return have
}

// wanted reports whether segment next is to be asked for. As long as the last
// one is unknown, segments are asked for one by one.
func (f *Fetch) wanted() bool {
	if _, have := f.parts[f.next]; have {
		f.next++
	}
	if f.lastSeen {
		return f.next <= f.last
	}
	return len(f.flying) == 0
}

// Receive takes a Data; it reports whether the Data belonged to the fetch.
func (f *Fetch) Receive(d *ndn.Data) bool {
	if f.done || !d.Name.HasPrefix(f.name) {
		return false
	}
	if d.ContentType == ndn.ContentNack {
		f.fail(Refusal(d))
		return true
	}
	c, _ := d.Name.At(-1)
	seg, segmented := c.NumberAs(ndn.TypeSegment)
	if f.base == nil {
		f.landed(flight{discover: true})
		if !segmented {
			// ndnd answers what it does not know as if it were a command.
			if err := Refusal(d); err != nil {
				f.fail(err)
				return true
			}
			// One packet that is the whole.
			f.base, f.lastSeen = d.Name.Clone(), true
			f.store(0, d)
			return true
		}
		f.base = d.Name.Prefix(-1).Clone()
	} else {
		if !segmented || !d.Name.Prefix(-1).Equal(f.base) {
			return false
		}
		f.landed(flight{seg: seg})
	}
	if last, ok := d.FinalBlockNumber(ndn.TypeSegment); ok && !f.lastSeen {
		if last >= maxSegments {
			f.fail(fmt.Errorf("%w: it has %d segments", ErrTooLarge, last))
			return true
		}
		f.last, f.lastSeen = last, true
	}
	if seg >= maxSegments || (f.lastSeen && seg > f.last) {
		return true
	}
	f.store(seg, d)
	return true
}

// Refusal is the error of a Data that refuses to tell what was asked for: a
// *StatusError if it carries a ControlResponse, ErrMalformed if it is another
// application Nack; nil if it is no refusal.
func Refusal(d *ndn.Data) error {
	r, err := ParseControlResponse(d.Content)
	switch {
	case err == nil && !r.OK():
		return &StatusError{r.Code, r.Text, r.Body}
	case d.ContentType == ndn.ContentNack:
		return fmt.Errorf("%w: application nack for %s", ErrMalformed, d.Name)
	}
	return nil
}

func (f *Fetch) store(seg uint64, d *ndn.Data) {
	if _, have := f.parts[seg]; have {
		return
	}
	f.parts[seg] = append([]byte{}, d.Content...)
	if f.bytes += len(d.Content); f.bytes > f.limit {
		f.fail(fmt.Errorf("%w: over %d bytes", ErrTooLarge, f.limit))
		return
	}
	f.done = f.lastSeen && uint64(len(f.parts)) == f.last+1
}

// landed removes an Interest from those in flight.
func (f *Fetch) landed(what flight) {
	for i, fl := range f.flying {
		if fl.discover == what.discover && fl.seg == what.seg {
			f.flying = append(f.flying[:i], f.flying[i+1:]...)
			return
		}
	}
}

// Nack takes an Interest that came back; it reports whether it was the
// fetch's.
func (f *Fetch) Nack(name ndn.Name, reason ndn.NackReason) bool {
	if f.done || !name.HasPrefix(f.name) {
		return false
	}
	f.fail(fmt.Errorf("%w (nack %s)", ErrNack, reason))
	return true
}

// Deadline is when Tick is to be called next; ndn.Never when nothing waits.
func (f *Fetch) Deadline() ndn.Time {
	at := ndn.Never
	if f.done {
		return at
	}
	for _, fl := range f.flying {
		at = min(at, fl.until)
	}
	return at
}

// Tick takes the time: what was not answered is asked for again, or given up.
func (f *Fetch) Tick(now ndn.Time) {
	if f.done {
		return
	}
	kept := f.flying[:0]
	for _, fl := range f.flying {
		switch {
		case fl.until > now:
			kept = append(kept, fl)
		case fl.tries >= fetchTries:
			f.fail(fmt.Errorf("%w for %s after %d tries", ErrTimeout, f.name, fl.tries))
		default:
			f.resend = append(f.resend, fl)
		}
	}
	f.flying = kept
}
