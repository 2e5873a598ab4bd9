package output

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"ndnpop/consumer"
	"ndnpop/ndn"
)

// Errors about resuming.
var (
	// ErrNothingToResume: there is no part file with a journal.
	ErrNothingToResume = errors.New("nothing to resume")
	// ErrOtherObject: the part file holds another version, object or range.
	ErrOtherObject = errors.New("the part file does not fit")
	// ErrBusy: another process writes the part file.
	ErrBusy = errors.New("another fetch is writing the part file")
)

// The journal follows the part file at these distances at the latest,
// whichever comes first: what a kill costs is little more than what was under way.
const (
	journalBytes    = 64 << 20
	journalInterval = 100 * time.Millisecond
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// File is a Target that writes path through path.part, with a journal in
// path.part.journal. The final name appears only when everything has been
// written, verified and is on the disk. Until then an interruption of any
// kind leaves what ResumeFile can go on with: all that was written where the
// process ends, and after a power failure about what had reached the disk.
type File struct {
	path, part string
	f          *os.File
	rng        string
	resume     bool
	isNew      bool // there was no part file before
	named      bool // the whole has its final name already, and the part file is empty

	j       journal // as it would be saved now
	saved   place   // at the last save
	savedAt time.Time
	lost    uint64
	opened  bool
}

// CreateFile opens path.part for a new fetch of a range (as Range.String
// writes it). An older part file is discarded when the object is known, not
// before. It fails early where the final rename would fail.
func CreateFile(path, rng string) (*File, error) { return openPart(path, rng) }

// ResumeFile opens path.part to go on with. It reads what is there, checks it
// against the journal, and adds it to sum, which must be new, unless sum is nil.
// What the journal cannot vouch for is cut off, which is all where a power failure
// has emptied it or the part file is gone. ctx interrupts that.
func ResumeFile(ctx context.Context, path, rng string, sum hash.Hash) (*File, error) {
	part := path + ".part"
	j, err := readJournal(part + ".journal")
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s.journal; run without --resume", ErrNothingToResume, part)
	}
	if errors.Is(err, errEmpty) {
		return beginAnew(path, rng)
	}
	if err != nil {
		return nil, err
	}
	if j.Range != rng {
		return nil, fmt.Errorf("%w: %s holds %q, and %q is wanted; run without --resume", ErrOtherObject, part, j.Range, rng)
	}
	f, err := openPart(path, rng)
	if err != nil {
		return nil, err
	}
	f.resume, f.j = true, j
	if f.named, err = f.hasName(ctx, sum); err == nil && !f.named {
		err = f.check(ctx, sum)
	}
	if err != nil {
		if f.isNew {
			err = errors.Join(err, os.Remove(f.part))
		}
		f.f.Close()
		return nil, err
	}
	return f, nil
}

// beginAnew opens a part file whose journal is empty. It keeps its content until
// the object is known, as that of CreateFile does.
func beginAnew(path, rng string) (*File, error) {
	f, err := openPart(path, rng)
	if err != nil {
		return nil, err
	}
	fi, err := f.f.Stat()
	if err != nil {
		f.f.Close()
		return nil, err
	}
	f.lost = uint64(fi.Size())
	return f, nil
}

func openPart(path, rng string) (*File, error) {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return nil, fmt.Errorf("%s is a directory; -o %s/ fetches a tree into it", path, path)
	}
	part := path + ".part"
	_, err := os.Lstat(part)
	isNew := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := claim(f); err != nil {
		f.Close()
		return nil, err
	}
	return &File{path: path, part: part, f: f, rng: rng, isNew: isNew}, nil
}

// claim locks a part file. Whoever had it may have given it its final name
// since it was opened: that file is nobody's to write any more.
func claim(f *os.File) error {
	err := Lock(f)
	if err == nil {
		var mine, there os.FileInfo
		if mine, err = f.Stat(); err == nil {
			there, err = os.Lstat(f.Name())
		}
		if err == nil && os.SameFile(mine, there) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrBusy, f.Name())
}

func (f *File) journal() string { return f.part + ".journal" }

// Lost is how many bytes ResumeFile cut off that the journal promised: what a
// crash kept from the disk, and what came after it.
func (f *File) Lost() uint64 { return f.lost }

// hasName reports whether the whole has its final name: Commit was interrupted before it
// removed the journal. It adds the content to sum then.
func (f *File) hasName(ctx context.Context, sum hash.Hash) (bool, error) {
	part, err := f.f.Stat()
	if err != nil || part.Size() > 0 || !f.j.whole() {
		return false, err
	}
	whole, err := os.Open(f.path)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer whole.Close()
	if fi, err := whole.Stat(); err != nil || uint64(fi.Size()) != f.j.Done {
		return false, err
	}
	crc := crc32.New(castagnoli)
	w := io.Writer(crc)
	if sum != nil {
		w = io.MultiWriter(crc, sum)
	}
	_, err = io.Copy(w, &ctxReader{ctx, whole})
	ok := err == nil && crc.Sum32() == f.j.CRC32C
	if !ok && sum != nil {
		sum.Reset()
	}
	return ok, err
}

// check compares the part file with its journal and cuts it to the last place
// up to which the journal vouches for it.
func (f *File) check(ctx context.Context, sum hash.Hash) error {
	crc := crc32.New(castagnoli)
	w := io.Writer(crc)
	if sum != nil {
		w = io.MultiWriter(crc, sum)
	}
	places := append(f.j.Earlier, f.j.place)
	good := 0
	for at := uint64(0); good < len(places); good++ {
		p := places[good]
		n, err := io.Copy(w, &ctxReader{ctx, io.LimitReader(f.f, int64(p.Done-at))})
		if err != nil {
			return fmt.Errorf("read %s: %w", f.part, err)
		}
		if at += uint64(n); at != p.Done || crc.Sum32() != p.CRC32C {
			break
		}
	}
	if good < len(places) {
		promised := f.j.Done
		f.j.place, f.j.Earlier = place{}, nil
		if good > 0 {
			f.j.place, f.j.Earlier = places[good-1], places[:good-1]
		}
		f.lost = promised - f.j.Done
		if sum != nil {
			sum.Reset()
			if _, err := io.Copy(sum, &ctxReader{ctx, io.NewSectionReader(f.f, 0, int64(f.j.Done))}); err != nil {
				return fmt.Errorf("read %s: %w", f.part, err)
			}
		}
	}
	f.saved, f.savedAt = f.j.place, time.Now()
	return f.f.Truncate(int64(f.j.Done))
}

// ctxReader stops a long copy when its context ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Open implements Target.
func (f *File) Open(o *consumer.Object) (consumer.Resume, error) {
	name := o.Name.String()
	if !f.resume {
		if err := f.f.Truncate(0); err != nil {
			return consumer.Resume{}, err
		}
		f.opened = true
		f.j = journal{Format: journalFormat, Name: name, SegmentSize: o.SegmentSize, Range: f.rng}
		f.savedAt = time.Now()
		return consumer.Resume{}, f.save()
	}
	had, err := ndn.ParseName(f.j.Name)
	switch {
	case err != nil:
		return consumer.Resume{}, fmt.Errorf("%w: %w", ErrJournal, err)
	case !had.Equal(o.Name):
		return consumer.Resume{}, fmt.Errorf("%w: %s holds %s, and the object is now %s; run without --resume",
			ErrOtherObject, f.part, f.j.Name, name)
	case !o.HasVersion && f.j.Done > 0:
		return consumer.Resume{}, fmt.Errorf("%w: %s has no version, so whether it changed cannot be known; run without --resume",
			ErrOtherObject, name)
	case o.SegmentSize != 0 && f.j.SegmentSize != 0 && o.SegmentSize != f.j.SegmentSize:
		return consumer.Resume{}, fmt.Errorf("%w: segments of %s had %d bytes and have %d now; run without --resume",
			ErrOtherObject, name, f.j.SegmentSize, o.SegmentSize)
	}
	f.opened = true
	if f.named {
		return f.j.resume(), nil
	}
	if _, err := f.f.Seek(int64(f.j.Done), io.SeekStart); err != nil {
		return consumer.Resume{}, err
	}
	return f.j.resume(), nil
}

// Write implements Target.
func (f *File) Write(p []byte, then consumer.Resume) error {
	if f.named && len(p) > 0 {
		return fmt.Errorf("%w: %s was whole, and the object goes on after it; run without --resume", ErrOtherObject, f.path)
	}
	if _, err := f.f.Write(p); err != nil {
		// The journal does not know of what was written of p.
		return fmt.Errorf("%w; what is there can be gone on with by --resume", err)
	}
	f.j.CRC32C = crc32.Update(f.j.CRC32C, castagnoli, p)
	f.j.set(then)
	if f.j.Done-f.saved.Done >= journalBytes || time.Since(f.savedAt) >= journalInterval {
		return f.save()
	}
	return nil
}

func (f *File) save() error {
	f.j.follow(f.saved)
	f.saved, f.savedAt = f.j.place, time.Now()
	if err := f.j.save(f.journal()); err != nil {
		return fmt.Errorf("write %s: %w", f.journal(), err)
	}
	return nil
}

// Commit implements Target: the content is made durable before it gets its
// name, so that not even a power failure leaves wrong bytes there.
func (f *File) Commit() error {
	if f.named {
		return errors.Join(ignoreMissing(os.Remove(f.journal())), os.Remove(f.part), f.f.Close())
	}
	if err := f.name(); err != nil {
		return err
	}
	if err := ignoreMissing(os.Remove(f.journal())); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// name gives the content its final name. The journal tells of the whole then, so that
// who is interrupted before it is removed has nothing to fetch again.
func (f *File) name() error {
	if err := f.f.Sync(); err != nil {
		return errors.Join(err, f.f.Close())
	}
	// A disk that has no room for that is no reason to fail.
	_ = f.save()
	return publish(f.f, f.path)
}

// Abort implements Target.
func (f *File) Abort(cause error) error {
	var err error
	switch {
	case f.named:
		err = os.Remove(f.part)
	case errors.Is(cause, ErrVerify) && !f.verifiedPrefix(cause):
		err = f.discard()
	case f.opened && f.j.Done > 0:
		// On a disk that is full, what was written of a block in vain has the room
		// that the journal needs.
		err = errors.Join(f.f.Truncate(int64(f.j.Done)), f.save())
	case f.opened && !f.resume:
		// Nothing arrived: leave nothing behind.
		err = f.discard()
	case !f.opened && f.isNew:
		err = os.Remove(f.part) // a journal was there before
	}
	if e := f.f.Close(); err == nil {
		err = e
	}
	return err
}

// verifiedPrefix reports whether what was written before a failed
// verification is good: it is when a packet was refused, not when the whole
// was.
func (f *File) verifiedPrefix(cause error) bool {
	var p *PacketError
	return errors.As(cause, &p) && f.j.Done > 0
}

func (f *File) discard() error {
	return errors.Join(ignoreMissing(os.Remove(f.part)), ignoreMissing(os.Remove(f.journal())))
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
