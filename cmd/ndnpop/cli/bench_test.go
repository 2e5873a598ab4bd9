package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestBenchList: what is listed is the same with and without --json.
func TestBenchList(t *testing.T) {
	table, asJSON := begin(t, nil, "bench", "list"), begin(t, nil, "bench", "list", "--json")
	if table.wait() != exitDone || asJSON.wait() != exitDone {
		t.Fatal(table.err.String(), asJSON.err.String())
	}
	var list []scenarioJSON
	if err := json.Unmarshal([]byte(asJSON.out.String()), &list); err != nil || len(list) != len(scenarios()) {
		t.Fatalf("%d scenarios, %v", len(list), err)
	}
	for _, s := range list {
		if s.Name == "" || s.About == "" || !strings.Contains(table.out.String(), s.Name+" ") {
			t.Errorf("%+v is not in the table", s)
		}
	}
}
