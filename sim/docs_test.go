package sim_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocs: the congestion control that docs/fetching.md shows is the one that
// the example runs.
func TestDocs(t *testing.T) {
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/fetching.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\ntype halving")
	shown, _, ok := strings.Cut(shown, "```")
	if !ok || !strings.Contains(string(code), "type halving"+shown) {
		t.Errorf("docs/fetching.md does not show what the example has:\n%s", shown)
	}
}

// TestExperiment: the experiment that docs/strategies.md shows is the one that
// is compiled and tested with the example.
func TestExperiment(t *testing.T) {
	code, err := os.ReadFile("../docs/examples/leastloaded/cmd/shares/main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/strategies.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(code)+"```\n") {
		t.Error("docs/strategies.md does not show it as it is")
	}
}
