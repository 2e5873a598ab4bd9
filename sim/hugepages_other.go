//go:build !linux

package sim

import (
	"errors"
	"fmt"
)

// HugePages has an effect on Linux only.
func HugePages(int) error { return fmt.Errorf("sim: no huge pages: %w", errors.ErrUnsupported) }
