package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestManPages: every command that is offered has a page, and it has the
// command's example and flags.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if j := begin(t, nil, "man", dir); j.wait() != exitDone {
		t.Fatal(j.err.String())
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		page := filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		if b, err := os.ReadFile(page); err != nil || !strings.Contains(string(b), ".SH EXAMPLE") {
			t.Errorf("%s: %v, %d bytes", page, err, len(b))
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
			if sub.Example == "" && !sub.Hidden {
				t.Errorf("%s has no example", sub.CommandPath())
			}
		}
	}
	check(newRoot(&env{}))
	if b, err := os.ReadFile(filepath.Join(dir, "ndnpop-cat.1")); err != nil || !strings.Contains(string(b), "pipeline-type") {
		t.Errorf("the page of cat lacks its flags: %v", err)
	}
	if j := begin(t, nil, "man", "/dev/null/x"); j.wait() != exitFailed {
		t.Errorf("a directory that cannot be made: %s", j.err.String())
	}
}
