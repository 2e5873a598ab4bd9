//go:build !linux

package unix

import (
	"io/fs"
	"os"
)

func setMode(path string, mode fs.FileMode) error { return os.Chmod(path, mode) }
