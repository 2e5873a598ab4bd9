//go:build !linux

package emunet

import (
	"errors"
	"fmt"
	"runtime"
)

// ErrUnsupported is wrapped by the error of Supported.
var ErrUnsupported = errors.New("network emulation is not possible here")

// Supported says why networks cannot be emulated here.
func Supported() error {
	return fmt.Errorf("%w: it needs Linux, this is %s", ErrUnsupported, runtime.GOOS)
}
