package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// journal says what a part file holds: of which object, how much, and where
// to go on. The checksums cover the part file up to each place, so that pages
// that a crash kept from the disk are noticed; Check covers the rest, since a
// place that is not where the part file ends would put wrong bytes after it.
//
// Nothing waits for the disk, so that after a power failure the journal may say
// more than the part file holds. Earlier places are for that. They are the denser
// the later: of what had reached the disk, less than twice is fetched again of what
// had not.
type journal struct {
	Format      int    `json:"journal"` // journalFormat
	Name        string `json:"name"`    // with the version
	SegmentSize uint64 `json:"segment_size"`
	Range       string `json:"range"`
	place
	Final    uint64  `json:"final"`
	HasFinal bool    `json:"has_final"`
	Earlier  []place `json:"earlier"` // in their order
	Check    uint32  `json:"check"`   // of the other fields
}

// place is where the part file ended when the journal was saved.
type place struct {
	Save    uint64 `json:"save"`    // counts, from 1
	Segment uint64 `json:"segment"` // go on here
	Skip    uint64 `json:"skip"`
	Done    uint64 `json:"done"`   // bytes in the part file
	CRC32C  uint32 `json:"crc32c"` // of these
}

const (
	journalFormat  = 3
	maxJournalSize = 64 << 10
	maxDone        = 1 << 62
)

// ErrJournal is wrapped by the errors of a journal that cannot be used.
var ErrJournal = errors.New("unusable resume journal")

// errEmpty: a power failure has kept the content of the journal from the disk.
var errEmpty = errors.New("it is empty")

// parseJournal reads a journal strictly: unknown fields, trailing bytes and
// values that cannot be are refused.
func parseJournal(b []byte) (journal, error) {
	var j journal
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return journal{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return journal{}, fmt.Errorf("%w: it goes on after its end", ErrJournal)
	}
	switch {
	case j.Format != journalFormat:
		return journal{}, fmt.Errorf("%w: format %d, not %d", ErrJournal, j.Format, journalFormat)
	case j.Check != j.checksum():
		return journal{}, fmt.Errorf("%w: it is damaged", ErrJournal)
	case j.place.tooLarge() || slices.ContainsFunc(j.Earlier, place.tooLarge) || j.Final > maxDone ||
		j.SegmentSize > ndn.MaxPacketSize:
		return journal{}, fmt.Errorf("%w: a number in it is too large", ErrJournal)
	}
	if _, err := ndn.ParseName(j.Name); err != nil {
		return journal{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return j, nil
}

func (p place) tooLarge() bool {
	return p.Save > maxDone || p.Done > maxDone || p.Segment > maxDone || p.Skip > maxDone
}

// checksum is the CRC32C of all fields but Check.
func (j *journal) checksum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %q %d %q %d %d %t %d", j.Format, j.Name, j.SegmentSize, j.Range,
		j.place, j.Final, j.HasFinal, j.Earlier), castagnoli)
}

// resume is where to go on from a place; its beginning is that of the fetch.
func (j *journal) resume() consumer.Resume {
	if j.Done == 0 {
		return consumer.Resume{}
	}
	return consumer.Resume{
		Segment: j.Segment, Skip: j.Skip, Done: j.Done, Final: j.Final, HasFinal: j.HasFinal,
	}
}

// whole reports whether nothing is missing of the object; of a range nothing says so.
func (j *journal) whole() bool { return j.HasFinal && j.Segment > j.Final }

func (j *journal) set(r consumer.Resume) {
	j.Segment, j.Skip, j.Done, j.Final, j.HasFinal = r.Segment, r.Skip, r.Done, r.Final, r.HasFinal
}

// follow makes a new place after the last, which was saved, and forgets some of
// the earlier ones: of a save whose number is an odd multiple of a power of two,
// the place is kept for twice that power.
func (j *journal) follow(last place) {
	j.Save = last.Save + 1
	j.Earlier = slices.DeleteFunc(append(j.Earlier, last), func(p place) bool {
		return j.Save-p.Save >= 2*(p.Save&-p.Save)
	})
}

func readJournal(path string) (journal, error) {
	f, err := os.Open(path)
	if err != nil {
		return journal{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxJournalSize+1))
	if err != nil {
		return journal{}, err
	}
	if len(b) > maxJournalSize {
		return journal{}, fmt.Errorf("%w: it is too large", ErrJournal)
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return journal{}, errEmpty
	}
	j, err := parseJournal(b)
	if err != nil {
		return journal{}, fmt.Errorf("%s: %w; run without --resume", path, err)
	}
	return j, nil
}

// save replaces the journal at path at once: a crash leaves the old or the
// new one.
func (j *journal) save(path string) error {
	j.Check = j.checksum()
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o666); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(tmp)))
	}
	return os.Rename(tmp, path)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
