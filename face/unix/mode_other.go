//go:build !linux

package unix

import (
	"io/fs"
	"os"
)

func setMode(path string, mode fs.FileMode, _ fs.FileInfo) error { return os.Chmod(path, mode) }
