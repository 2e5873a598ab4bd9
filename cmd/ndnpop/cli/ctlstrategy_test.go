package cli

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestStrategyTrace follows the decisions about pings through a forwarder,
// for people and for programs, and looks at what the strategy knows.
func TestStrategyTrace(t *testing.T) {
	transport := forwarder(t)
	for _, args := range []string{"strategy set /cdn nst", "strategy set /cdn/plain best-route"} {
		if _, errs, code := ctl(t, transport, strings.Fields(args)...); code != 0 {
			t.Fatal(errs)
		}
	}
	s := begin(t, nil, "pingserver", "/cdn", transport)
	s.says(&s.out, "PING SERVER /cdn\n")
	text := begin(t, nil, "ctl", "strategy", "trace", "/cdn", transport)
	lines := begin(t, nil, "ctl", "strategy", "trace", "/cdn/ping", "--json", transport)
	// Whether they already follow cannot be seen: ping until they tell.
	p := begin(t, nil, "ping", "/cdn", "-i", "10", transport)
	text.says(&text.out, "the object's replica")
	text.says(&text.out, ": sent")
	lines.says(&lines.out, `"result":"sent"`)

	out, errs, code := ctl(t, transport, "nst", "/cdn/ping")
	if code != 0 || !strings.Contains(out, "/cdn/ping: nst/v=1\n") || strings.Count(out, "\n") != 3 {
		t.Fatalf("code %d\n%s%s", code, out, errs)
	}
	// As many headings as there are cells, and under the name of each column.
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if head := strings.Fields(rows[1]); len(head) != len(strings.Fields(rows[2])) || head[4] != "OUTSTANDING" || head[6] != "RTT_BASE_MS" {
		t.Errorf("%q", head)
	}
	var table nstJSON
	out, errs, code = ctl(t, transport, "nst", "/cdn/ping", "--json")
	if err := json.Unmarshal([]byte(out), &table); err != nil || code != 0 || len(table.Hops) != 1 || table.Hops[0].Remote == "" ||
		table.Hops[0].Values["rtt_base_ms"] == nil || *table.Hops[0].Values["rtt_base_ms"] <= 0 {
		t.Errorf("code %d, %v\n%s%s", code, err, out, errs)
	}
	out, errs, code = ctl(t, transport, "nst", "/cdn/plain")
	if code != exitFailed || !strings.Contains(errs, "best-route") || out != "" {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}

	if code := p.end(errors.New("interrupt signal received")); code != exitDone {
		t.Errorf("ping ended with %d: %s", code, p.err.String())
	}
	for _, j := range []*job{text, lines} {
		if code := j.end(errors.New("interrupt signal received")); code != exitInterrupted {
			t.Errorf("%s ended with %d: %s", j.args, code, j.err.String())
		}
	}
	line, _, _ := strings.Cut(lines.out.String(), "\n")
	var d decisionJSON
	if err := json.Unmarshal([]byte(line), &d); err != nil || d.Kind != "choice" || d.Reason == "" || len(d.Candidates) != 1 ||
		d.Candidates[0].Face != d.Face || d.From == 0 || !strings.HasPrefix(d.Interest, "/cdn/ping/") || d.Time.Year() < 2020 {
		t.Errorf("%v: %s", err, line)
	}
	if out, errs, code := ctl(t, transport, "strategy", "list", "--available"); code != 0 || !strings.Contains(out, "best-path/v=1") || !strings.Contains(out, "  delay-weight") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}

// TestCell: what was not measured is no number.
func TestCell(t *testing.T) {
	for v, want := range map[float64]string{2.17812: "2.178", 0: "0", math.Inf(1): "-"} {
		if got := cell(v); got != want {
			t.Errorf("%v: %q", v, got)
		}
	}
	if got := cell(math.NaN()); got != "-" {
		t.Errorf("NaN: %q", got)
	}
}
