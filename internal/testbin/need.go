package testbin

import (
	"os"
	"testing"
)

// Need ends a test where what it needs is absent, and err says what. In CI, which
// runs as root and has set it up, the test fails; elsewhere it is skipped.
func Need(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") != "" && os.Geteuid() == 0:
		tb.Fatal(err)
	default:
		tb.Skip(err)
	}
}
