package tree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"ndnpop/consumer"
	"ndnpop/consumer/output"
	"ndnpop/ndn"
)

// errBefore ends the fetch of a file that is there already.
var errBefore = errors.New("it is there already")

// item is the output.Target of one task. It turns out with the metadata
// whether that is a file or a directory.
type item struct {
	w *walk
	task
	listing bool
	buf     []byte // the listing
	file    *output.File
	at      string // where the file is while unfinished
	version string // the object's name with its version
	what    string // the path of a complete file
	before  bool
}

// IsListing reports whether the name of an object, with its version or
// without, is that of a directory's listing.
func IsListing(n ndn.Name) bool {
	c, ok := n.At(-1)
	if ok && c.Type == ndn.TypeVersion {
		c, ok = n.At(-2)
	}
	return ok && c.Type == ndn.TypeKeyword && string(c.Value) == "ls"
}

// Open implements output.Target.
func (t *item) Open(o *consumer.Object) (consumer.Resume, error) {
	if t.listing = IsListing(o.Name); t.listing {
		if o.HasSize && o.Size > maxListing {
			return consumer.Resume{}, fmt.Errorf("%w of %s: %d bytes are too many", ErrListing, t.name, o.Size)
		}
		return consumer.Resume{}, nil
	}
	if t.path == "." { // a file alone
		last, _ := t.name.At(-1)
		if err := checkName(string(last.Value)); err != nil || last.Type != ndn.TypeGeneric {
			return consumer.Resume{}, fmt.Errorf("%s cannot be the name of a file; write to one with -o FILE", last)
		}
		t.path = string(last.Value)
	}
	t.version = o.Name.String()
	if t.w.state.done(t.version) {
		if fi, err := t.w.root.Lstat(t.path); err == nil && fi.Mode().IsRegular() {
			t.before, t.what = true, t.path
			return consumer.Resume{}, errBefore
		}
	}
	sum := sha256.Sum256([]byte(t.path))
	t.at = hex.EncodeToString(sum[:16])
	if t.w.Resume {
		res, err := t.resume(o)
		if err == nil || !errors.Is(err, output.ErrNothingToResume) && !errors.Is(err, output.ErrOtherObject) && !errors.Is(err, output.ErrJournal) {
			return res, err
		}
	}
	var err error
	if t.file, err = output.CreateFile(t.partAt(), t.holds()); err != nil {
		return consumer.Resume{}, err
	}
	return t.file.Open(o)
}

func (t *item) partAt() string { return filepath.Join(t.w.Dir, stateDir, t.at) }
func (t *item) holds() string  { return "all" + t.w.Check }

// resume opens the part file of an earlier fetch. A file that cannot be gone
// on with is begun anew.
func (t *item) resume(o *consumer.Object) (consumer.Resume, error) {
	f, err := output.ResumeFile(context.Background(), t.partAt(), t.holds(), nil)
	if err != nil {
		return consumer.Resume{}, err
	}
	res, err := f.Open(o)
	if err != nil {
		return res, errors.Join(err, f.Abort(err))
	}
	t.file = f
	return res, nil
}

// Write implements output.Target.
func (t *item) Write(p []byte, then consumer.Resume) error {
	if t.file != nil {
		return t.file.Write(p, then)
	}
	if len(t.buf)+len(p) > maxListing {
		return fmt.Errorf("%w of %s: it is longer than %d bytes", ErrListing, t.name, maxListing)
	}
	t.buf = append(t.buf, p...)
	return nil
}

// Commit implements output.Target.
func (t *item) Commit() error {
	if t.listing {
		return nil
	}
	if err := t.file.Commit(); err != nil {
		return err
	}
	if dir := path.Dir(t.path); dir != "." {
		if err := t.w.mkdir(dir); err != nil {
			return err
		}
	}
	if err := t.w.root.Rename(path.Join(stateDir, t.at), t.path); err != nil {
		return fmt.Errorf("%s cannot be put in its place: %w", t.path, err)
	}
	t.what = t.path
	return t.w.state.add(t.version)
}

// Abort implements output.Target.
func (t *item) Abort(cause error) error {
	if t.file == nil {
		return nil
	}
	return t.file.Abort(cause)
}

var _ output.Target = (*item)(nil)
