//go:build !linux

package store

import (
	"io"
	"io/fs"
	"os"
)

const openFlags = os.O_RDONLY

func descriptor(*os.File) int { return -1 }

func infoOf(fi fs.FileInfo) info {
	mode := uint32(fi.Mode().Perm())
	switch {
	case fi.IsDir():
		mode |= 0o040000
	case fi.Mode().IsRegular():
		mode |= 0o100000
	}
	return info{size: fi.Size(), mode: mode, mtime: fi.ModTime().UnixNano()}
}

func fileInfo(f *os.File) (info, fs.FileMode, error) {
	fi, err := f.Stat()
	if err != nil {
		return info{}, 0, err
	}
	return infoOf(fi), fi.Mode(), nil
}

func (o *object) read(b []byte, off int64) error {
	_, err := io.ReadFull(io.NewSectionReader(o.file, off, int64(len(b))), b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return err
}

func (o *object) unchanged() (bool, error) {
	fi, err := o.file.Stat()
	if err != nil {
		return false, err
	}
	now := infoOf(fi)
	return now.size == o.info.size && now.mtime == o.info.mtime, nil
}

// duplicate opens the file again by its name.
func duplicate(f *os.File) (*os.File, error) { return os.Open(f.Name()) }
