package store

import (
	"fmt"
	"io/fs"
	"os"

	"ndnpop/producer"
)

// File is a store of one file.
type File struct {
	opts Options
	t    tracked
}

// NewFile returns the store of the regular file at path, which must exist. It
// is opened when it is first asked for.
func NewFile(path string, opts Options) (*File, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return newFile(pathSource(path), opts), nil
}

// NewOpenFile returns the store of a regular file that is open already, such
// as redirected standard input. The store closes it.
func NewOpenFile(f *os.File, opts Options) (*File, error) {
	if err := opts.Check(); err != nil {
		return nil, err
	}
	return newFile(fileSource{f}, opts), nil
}

func newFile(src source, opts Options) *File {
	s := &File{opts: opts}
	s.t = tracked{src: src, opts: &s.opts, segment: opts.SegmentSize}
	return s
}

// Latest implements producer.Store.
func (s *File) Latest(p producer.Path) (producer.Object, error) {
	if len(p.Name) > 0 || p.Listing {
		return nil, producer.ErrNotFound
	}
	return asObject(s.t.latest())
}

// At implements producer.Store.
func (s *File) At(p producer.Path, v uint64) (producer.Object, error) {
	if len(p.Name) > 0 || p.Listing {
		return nil, producer.ErrNotFound
	}
	return asObject(s.t.at(v))
}

// Close closes what is open.
func (s *File) Close() error {
	s.t.close()
	return nil
}

// asObject keeps a nil pointer from becoming a non-nil interface.
func asObject(o *object, err error) (producer.Object, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}

// pathSource is a file by its path.
type pathSource string

func (p pathSource) open() (*os.File, error)    { return os.OpenFile(string(p), openFlags, 0) }
func (p pathSource) stat() (fs.FileInfo, error) { return os.Stat(string(p)) }

// fileSource is a file without a path. Every version shares its descriptor.
type fileSource struct{ f *os.File }

func (s fileSource) stat() (fs.FileInfo, error) { return s.f.Stat() }
func (s fileSource) open() (*os.File, error)    { return duplicate(s.f) }
