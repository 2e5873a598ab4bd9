package peer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNdndWithoutCache: where nothing can be kept, it is said what to set.
func TestNdndWithoutCache(t *testing.T) {
	t.Setenv("NDND", "")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"", filepath.Join(file, "ndnpop")} {
		if _, err := Ndnd(t.Context(), cache); err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") || !strings.Contains(err.Error(), "NDND") {
			t.Errorf("%q: %v", cache, err)
		}
	}
}
