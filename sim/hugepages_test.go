package sim_test

import (
	"errors"
	"syscall"
	"testing"

	"ndnpop/sim"
)

// TestHugePages are asked for, unless the kernel was built without.
func TestHugePages(t *testing.T) {
	err := sim.HugePages(16 << 20)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}
