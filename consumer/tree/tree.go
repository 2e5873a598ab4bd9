// Package tree fetches a directory tree, as "ndnpop put" and ndn6-file-server
// publish it, into a directory: several files at a time, each through a part
// file, so that an interrupted fetch can be gone on with.
//
// What is unfinished lies in DIR/.ndnpop-cat, with a list of what is done; the
// final names appear one by one, each when its file is complete and verified.
// All writing goes through an os.Root, so that neither names in listings nor
// symbolic links lead out of the directory.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"ndnpop/consumer"
	"ndnpop/consumer/output"
	"ndnpop/ndn"
)

// Errors of Fetch, beside those of the fetches.
var (
	// ErrListing: a listing cannot be followed.
	ErrListing = errors.New("bad directory listing")
	// ErrMissing: files that listings name do not exist.
	ErrMissing = errors.New("files are missing at the producer")
)

// Bounds of what listings can cause.
const (
	maxListing = 32 << 20 // bytes of one listing
	maxEntries = 1 << 20  // files and directories in all
	maxDepth   = 64
)

// stateDir holds what is unfinished.
const stateDir = ".ndnpop-cat"

// Options of Fetch.
type Options struct {
	// Name of the tree, or of a file, which then is put into Dir.
	Name ndn.Name
	Dir  string // made if missing
	// Resume goes on with an earlier fetch; without it what that left is
	// thrown away, and files that exist are fetched again.
	Resume bool
	// Check is part of what a resumed file must have been begun with.
	Check string
	// Parallel is the number of files that are fetched at once.
	Parallel int
	// Fetch fetches one object into a target. It is called from several
	// goroutines.
	Fetch func(ctx context.Context, name ndn.Name, to output.Target) error
	// Done, if not nil, is told the path below Dir of each file that is
	// complete, and whether it was there before. It is called by one goroutine
	// at a time.
	Done func(path string, before bool)
}

// Result counts.
type Result struct {
	Files  int // fetched
	Before int // there already
	Dirs   int
}

// task is one file or directory to fetch.
type task struct {
	name ndn.Name
	path string // below the root, "." at the top
}

// walk is a fetch in progress.
type walk struct {
	Options
	root  *os.Root
	state *state

	mu      sync.Mutex
	wake    sync.Cond
	tasks   []task // the last is next
	working int
	entries int
	err     error
	missing []error
	res     Result
}

// mkdir makes a directory of the tree, where there may be something else.
func (w *walk) mkdir(at string) error {
	err := w.root.MkdirAll(at, 0o777)
	if err == nil {
		return nil
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s cannot be a directory: %w; if a file or link is there, move it away", filepath.Join(w.Dir, at), err)
}

// Fetch fetches a tree. The result is valid in each case.
func Fetch(ctx context.Context, o Options) (Result, error) {
	_, err := os.Stat(o.Dir)
	isNew := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return Result{}, err
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return Result{}, err
	}
	defer root.Close()
	st, err := openState(root, filepath.Join(o.Dir, stateDir), o.Resume)
	if err != nil {
		return Result{}, err
	}
	w := &walk{Options: o, root: root, state: st, tasks: []task{{o.Name, "."}}}
	w.wake.L = &w.mu
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range max(1, o.Parallel) {
		wg.Go(func() { w.work(ctx, cancel) })
	}
	wg.Wait()
	err = w.err
	if err == nil && len(w.missing) > 0 {
		err = fmt.Errorf("%w, %d of %d; the first: %w", ErrMissing, len(w.missing), w.entries, w.missing[0])
	}
	if e := st.close(err == nil); e != nil {
		err = errors.Join(err, e)
	}
	if isNew && err != nil {
		// It stays if anything is in it.
		_ = os.Remove(o.Dir)
	}
	return w.res, err
}

// work takes tasks until there are no more, or anything failed.
func (w *walk) work(ctx context.Context, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.tasks) == 0 && w.working > 0 && w.err == nil {
			w.wake.Wait()
		}
		if w.err != nil || len(w.tasks) == 0 {
			w.wake.Broadcast()
			return
		}
		t := w.tasks[len(w.tasks)-1]
		w.tasks = w.tasks[:len(w.tasks)-1]
		w.working++
		w.mu.Unlock()
		it := &item{w: w, task: t}
		err := w.Fetch(ctx, t.name, it)
		w.mu.Lock()
		w.working--
		switch {
		case errors.Is(err, errBefore):
			err = nil
		case errors.Is(err, consumer.ErrNoContent) && t.path != ".":
			w.missing = append(w.missing, err)
			err = nil
		case err == nil && it.listing:
			err = w.follow(t, it.buf)
		}
		if err == nil && it.what != "" {
			w.finished(it)
		}
		if err != nil && w.err == nil {
			w.err = err
			stop()
		}
		w.wake.Broadcast()
	}
}

func (w *walk) finished(it *item) {
	if it.before {
		w.res.Before++
	} else {
		w.res.Files++
	}
	if w.Done != nil {
		w.Done(it.what, it.before)
	}
}

// follow makes a directory and tasks of what its listing names: entries that
// end with a zero byte each, those of directories with a slash before it
// (ndn6-file-server).
func (w *walk) follow(t task, listing []byte) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w of %s: %s", ErrListing, t.name, fmt.Sprintf(format, args...))
	}
	if t.path != "." {
		if err := w.mkdir(t.path); err != nil {
			return err
		}
		w.res.Dirs++
	}
	if strings.Count(t.path, "/") >= maxDepth {
		return bad("it is more than %d directories deep", maxDepth)
	}
	var found []task
	for rest := string(listing); rest != ""; {
		e, after, ok := strings.Cut(rest, "\x00")
		if !ok {
			return bad("it ends in the middle")
		}
		rest = after
		e = strings.TrimSuffix(e, "/")
		if err := checkName(e); err != nil {
			return bad("%q %v", e, err)
		}
		if t.path == "." && e == stateDir {
			return bad("%q is a name that is needed for what is unfinished", e)
		}
		if w.entries++; w.entries > maxEntries {
			return bad("there are more than %d files and directories", maxEntries)
		}
		found = append(found, task{t.name.Clone().AppendGeneric(e), path.Join(t.path, e)})
	}
	for i := len(found) - 1; i >= 0; i-- {
		w.tasks = append(w.tasks, found[i])
	}
	return nil
}

// checkName refuses what is no name of a file in a directory.
func checkName(s string) error {
	switch {
	case s == "" || s == "." || s == "..":
		return errors.New("is no name of a file")
	case strings.ContainsAny(s, "/\x00") || strings.ContainsRune(s, filepath.Separator) || filepath.VolumeName(s) != "":
		return errors.New("leads elsewhere")
	}
	return nil
}
