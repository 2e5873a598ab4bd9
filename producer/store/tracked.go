package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"ndnpop/producer"
)

// info identifies a state of a file. Times are in nanoseconds since 1970;
// zero is unknown.
type info struct {
	size                       int64
	mode                       uint32 // st_mode
	dev, ino                   uint64
	atime, btime, ctime, mtime int64
}

// same reports whether a path still leads to this state of this file.
func (i *info) same(o *info) bool {
	return i.size == o.size && i.mtime == o.mtime && i.ctime == o.ctime && i.dev == o.dev && i.ino == o.ino
}

// source is where the file of one path comes from.
type source interface {
	open() (*os.File, error)
	stat() (fs.FileInfo, error)
}

// maxOld is how many former versions of a file stay readable, as long as the
// file that was replaced is itself unchanged.
const maxOld = 2

// tracked follows the file of one path through its versions.
type tracked struct {
	src     source
	opts    *Options
	segment int // payload of a segment
	// list returns the listing of a directory; nil when directories are not
	// served.
	list    func(*os.File) ([]byte, error)
	current *object
	old     []*object // newest first
}

// object is one version of a file or of a listing.
type object struct {
	number  uint64
	segment int
	info    info
	file    *os.File
	fd      int    // of file, where reads check by descriptor
	listing []byte // instead of file
	gone    bool

	next    uint64 // where a reader in order goes on
	ahead   []byte // what was read of the file at aheadAt
	aheadAt uint64
}

// readAhead is how much of a file that is read in order is read at once, so
// that its look at the file's state is worth more than one segment.
const readAhead = 64 << 10

// Version implements producer.Object.
func (o *object) Version() uint64 { return o.number }

// SegmentSize implements producer.Object.
func (o *object) SegmentSize() int { return o.segment }

// Size implements producer.Object.
func (o *object) Size() (uint64, bool) {
	if o.file == nil {
		return uint64(len(o.listing)), true
	}
	return uint64(o.info.size), true
}

// Attributes implements producer.Object.
func (o *object) Attributes() producer.Attributes {
	return producer.Attributes{
		Listing: o.file == nil, Mode: o.info.mode,
		Atime: unsigned(o.info.atime), Btime: unsigned(o.info.btime),
		Ctime: unsigned(o.info.ctime), Mtime: unsigned(o.info.mtime),
	}
}

func unsigned(ns int64) uint64 { return uint64(max(ns, 0)) }

// ReadAt implements producer.Object. It looks at the file after reading, so
// that bytes written since the version began are never taken for its own. What
// was read ahead belongs to the version, whatever became of the file since.
func (o *object) ReadAt(b []byte, off uint64) error {
	switch {
	case o.gone:
		return producer.ErrChanged
	case o.file == nil:
		copy(b, o.listing[off:])
		return nil
	}
	inOrder := off == o.next && off > 0
	o.next = off + uint64(len(b))
	if o.next == uint64(o.info.size) {
		defer func() { o.ahead = nil }() // nothing comes after it
	}
	if from := off - o.aheadAt; off >= o.aheadAt && from+uint64(len(b)) <= uint64(len(o.ahead)) {
		copy(b, o.ahead[from:])
		return nil
	}
	if n := min(readAhead, uint64(o.info.size)-off); inOrder && n > uint64(len(b)) {
		o.ahead, o.aheadAt = slices.Grow(o.ahead[:0], readAhead)[:n], off
		if err := o.vouched(o.ahead, off); err != nil {
			o.ahead = nil
			return err
		}
		copy(b, o.ahead)
		return nil
	}
	return o.vouched(b, off)
}

// vouched reads from the file and makes sure that it has not changed.
func (o *object) vouched(b []byte, off uint64) error {
	if err := o.read(b, int64(off)); err != nil {
		if errors.Is(err, io.EOF) {
			o.gone = true
			return producer.ErrChanged
		}
		return err
	}
	ok, err := o.unchanged()
	if err == nil && !ok {
		o.gone = true
		err = producer.ErrChanged
	}
	return err
}

func (o *object) close() {
	if o.file != nil {
		o.file.Close()
	}
	o.gone, o.ahead = true, nil
}

// latest returns the newest version, after a look at the file system.
func (t *tracked) latest() (*object, error) {
	fi, err := t.src.stat()
	if err != nil {
		return nil, asNotFound(err)
	}
	if c := t.current; c != nil && !c.gone {
		if now := infoOf(fi); c.info.same(&now) {
			return c, nil
		}
	}
	if !fi.Mode().IsRegular() && !fi.IsDir() {
		return nil, producer.ErrNotFound // opening a device may do things
	}
	o, err := t.openObject()
	if err != nil {
		return nil, err
	}
	t.succeed(o)
	return o, nil
}

func (t *tracked) openObject() (*object, error) {
	f, err := t.src.open()
	if err != nil {
		return nil, asNotFound(err)
	}
	o := &object{segment: t.segment, file: f, fd: descriptor(f)}
	var mode fs.FileMode
	if o.info, mode, err = fileInfo(f); err == nil {
		switch {
		case mode.IsDir() && t.list != nil:
			o.listing, err = t.list(f)
			f.Close()
			o.file = nil
		case !mode.IsRegular():
			err = producer.ErrNotFound
		}
	}
	if err != nil {
		f.Close()
		return nil, asNotFound(err)
	}
	return o, nil
}

// asNotFound turns what the file system says of a path that leads nowhere
// into producer.ErrNotFound. Errors that may pass stay what they are.
func asNotFound(err error) error {
	for _, e := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, e) {
			return err
		}
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%w: %w", producer.ErrNotFound, err)
	}
	return err
}

// succeed makes o the current version and numbers it.
func (t *tracked) succeed(o *object) {
	own, step := t.opts.Version, uint64(1)
	if own == 0 {
		own, step = version(o.info.mtime, o.segment), versionStep
	}
	o.number = own
	if c := t.current; c != nil {
		o.number = successor(c.number, own, step)
		t.old = append([]*object{c}, t.old...)
		if len(t.old) > maxOld {
			t.old[maxOld].close()
			t.old = t.old[:maxOld]
		}
	}
	t.current = o
}

// at returns version v.
func (t *tracked) at(v uint64) (*object, error) {
	if t.current == nil {
		if _, err := t.latest(); err != nil {
			return nil, err
		}
	}
	if c := t.current; c.number == v {
		return c.present()
	}
	for _, o := range t.old {
		if o.number == v {
			return o.present()
		}
	}
	// A consumer may know a version that this producer has not looked for yet.
	if t.current.number < v {
		if o, err := t.latest(); err != nil || o.number == v {
			return o, err
		}
	}
	return nil, producer.ErrNotFound
}

func (o *object) present() (*object, error) {
	if o.gone {
		return nil, producer.ErrChanged
	}
	return o, nil
}

func (t *tracked) close() {
	if t.current != nil {
		t.current.close()
	}
	for _, o := range t.old {
		o.close()
	}
}
