package store

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"ndnpop/ndn"
	"ndnpop/producer"
)

// Dir is a store of a directory tree: the components of a name are those of a
// path, byte for byte, and a directory's listing is published under 32=ls.
// Symbolic links are followed within the tree and never out of it.
type Dir struct {
	opts   Options
	root   *os.Root
	byName map[string]*list.Element // by the components of the path
	lru    *list.List               // of *dirEntry, the last used first
}

type dirEntry struct {
	tracked
	name string
}

// maxOpen is the largest number of paths that are held open.
const maxOpen = 128

// NewDir returns the store of the directory at path.
func NewDir(path string, opts Options) (*Dir, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{opts: opts, root: root, byName: make(map[string]*list.Element), lru: list.New()}, nil
}

// Latest implements producer.Store.
func (d *Dir) Latest(p producer.Path) (producer.Object, error) {
	t, err := d.entry(p.Name)
	if err != nil {
		return nil, err
	}
	o, err := t.latest()
	if err == nil && p.Listing && o.file != nil {
		err = producer.ErrNotFound
	}
	return asObject(o, err)
}

// At implements producer.Store.
func (d *Dir) At(p producer.Path, v uint64) (producer.Object, error) {
	t, err := d.entry(p.Name)
	if err != nil {
		return nil, err
	}
	o, err := t.at(v)
	if err == nil && p.Listing != (o.file == nil) {
		err = producer.ErrNotFound
	}
	return asObject(o, err)
}

// Close closes what is open.
func (d *Dir) Close() error {
	for e := d.lru.Front(); e != nil; e = e.Next() {
		e.Value.(*dirEntry).close()
	}
	d.lru.Init()
	clear(d.byName)
	return d.root.Close()
}

// entry returns what follows the path of a name, and makes it the last used.
func (d *Dir) entry(name ndn.Name) (*dirEntry, error) {
	if e := d.byName[string(name)]; e != nil {
		d.lru.MoveToFront(e)
		return e.Value.(*dirEntry), nil
	}
	path, err := filePath(name)
	if err != nil {
		return nil, err
	}
	segment := min(d.opts.SegmentSize, d.opts.Room-len(name)-len(listingComponent))
	if segment < 1 {
		return nil, producer.ErrNotFound
	}
	// Only what exists is remembered: names that anyone may make up must not
	// push out what is being served.
	if _, err := d.root.Stat(path); err != nil {
		return nil, asNotFound(err)
	}
	t := &dirEntry{name: string(name)}
	t.tracked = tracked{
		src: rootSource{d.root, path}, opts: &d.opts, segment: segment,
		list: func(f *os.File) ([]byte, error) { return d.list(f, path) },
	}
	d.byName[t.name] = d.lru.PushFront(t)
	if d.lru.Len() > maxOpen {
		last := d.lru.Back()
		old := d.lru.Remove(last).(*dirEntry)
		old.close()
		delete(d.byName, old.name)
	}
	return t, nil
}

// listingComponent is 32=ls, which listings have in their names.
const listingComponent = "\x20\x02ls"

// filePath turns a name into a path below the root. A component that is no
// file name leads nowhere.
func filePath(name ndn.Name) (string, error) {
	if len(name) == 0 {
		return ".", nil
	}
	var b strings.Builder
	for len(name) > 0 {
		var c ndn.Component
		c, name = name.Next()
		v := string(c.Value)
		if v == "" || v == "." || v == ".." || strings.ContainsAny(v, "/\x00") || strings.ContainsRune(v, os.PathSeparator) {
			return "", producer.ErrNotFound
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// maxListing bounds the listing of one directory, in bytes.
const maxListing = 32 << 20

// Why a listing leaves something out.
var (
	errWithin = errors.New("it is a link to a directory that it lies in")
	errKind   = errors.New("it is neither a file nor a directory")
)

// list returns the names in a directory in ascending order of their bytes,
// each ended by a zero byte and, if it is a directory, a slash before that
// (ndn6-file-server). What is neither file nor directory is left out, and so
// are links that lead out of the tree or to a directory that they lie in.
func (d *Dir) list(f *os.File, path string) ([]byte, error) {
	var names []string
	total := 0
	leaveOut := func(name string, why error) {
		if d.opts.LeftOut != nil {
			d.opts.LeftOut(strings.TrimPrefix(path+"/"+name, "./"), why)
		}
	}
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			name, mode := e.Name(), e.Type()
			if mode&fs.ModeSymlink != 0 {
				fi, err := d.root.Stat(path + "/" + name)
				if err != nil {
					if p := (*fs.PathError)(nil); errors.As(err, &p) {
						err = p.Err
					}
					leaveOut(name, fmt.Errorf("it is a link that cannot be followed: %w", err))
					continue
				}
				if fi.IsDir() && d.within(path, fi) {
					// Who fetches the tree would never reach its end.
					leaveOut(name, errWithin)
					continue
				}
				mode = fi.Mode().Type()
			}
			switch {
			case mode.IsDir():
				name += "/"
			case !mode.IsRegular():
				leaveOut(name, errKind)
				continue
			}
			names = append(names, name)
			if total += len(name) + 1; total > maxListing {
				return nil, fmt.Errorf("the listing of %s takes more than %d bytes", path, maxListing)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	b := make([]byte, 0, total)
	for _, n := range names {
		b = append(append(b, n...), 0)
	}
	return b, nil
}

// within reports whether a path leads through a directory or ends in it.
func (d *Dir) within(path string, dir fs.FileInfo) bool {
	for at := path; ; {
		if fi, err := d.root.Stat(at); err == nil && os.SameFile(fi, dir) {
			return true
		}
		if at == "." {
			return false
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			at = "."
		} else {
			at = at[:i]
		}
	}
}

// rootSource is a file below a root.
type rootSource struct {
	root *os.Root
	path string
}

func (s rootSource) open() (*os.File, error)    { return s.root.OpenFile(s.path, openFlags, 0) }
func (s rootSource) stat() (fs.FileInfo, error) { return s.root.Stat(s.path) }
