package cli

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// TestPing runs both ends over a forwarder.
func TestPing(t *testing.T) {
	transport := forwarder(t)
	s := begin(t, nil, "pingserver", "/cdn", "-p", "4", "-s", "100", transport)
	s.says(&s.out, "PING SERVER /cdn\n")
	c := begin(t, nil, "ping", "/cdn", "-c", "3", "-i", "10", "-n", "41", transport)
	if code := c.wait(); code != exitDone {
		t.Errorf("code %d: %s", code, c.err.String())
	}
	want := regexp.MustCompile(`^PING /cdn
content from /cdn: seq=41 time=[0-9.]+ ms
content from /cdn: seq=42 time=[0-9.]+ ms
content from /cdn: seq=43 time=[0-9.]+ ms

--- /cdn ping statistics ---
3 packets transmitted, 3 received, 0 nacked, 0% lost, 0% nacked, time [0-9.]+ ms
rtt min/avg/max/mdev = [0-9.]+/[0-9.]+/[0-9.]+/[0-9.]+ ms
$`)
	if !want.MatchString(c.out.String()) {
		t.Errorf("ping says\n%s", c.out.String())
	}
	q := begin(t, nil, "ping", "/cdn", "-c", "1", "-q", "-t", "-p", "id7", transport)
	if code := q.wait(); code != exitDone || strings.Contains(q.out.String(), "seq=") {
		t.Errorf("code %d: %s", code, q.out.String())
	}
	// That was the fourth.
	if code := s.wait(); code != exitDone || !strings.HasSuffix(s.out.String(), "\n--- /cdn ping server statistics ---\n4 packets processed\n") {
		t.Errorf("code %d: %s", code, s.out.String())
	}
}

// TestPingUnanswered: a ping without an answer is not a success, however it
// ends.
func TestPingUnanswered(t *testing.T) {
	transport := forwarder(t)
	j := begin(t, nil, "ping", "/nobody", "-c", "2", "-i", "10", "-o", "100", transport)
	if code := j.wait(); code != exitGaveUp || !strings.Contains(j.err.String(), "no answer from /nobody") {
		t.Errorf("code %d: %s%s", code, j.out.String(), j.err.String())
	}
	j = begin(t, nil, "ping", "/nobody", transport)
	j.says(&j.out, "nack from /nobody")
	if code := j.end(errors.New("interrupt signal received")); code != exitGaveUp {
		t.Errorf("code %d", code)
	}
}

func TestPingFails(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"ping", exitUsage, "usage: ndnpop ping PREFIX, not 0 arguments"},
		{"ping /x -i 0", exitUsage, "--interval"},
		{"ping /x -i soon", exitUsage, `"-i, --interval" flag: it should be a number; see`},
		{"ping /x -n -1", exitUsage, `"-n, --start" flag: it should be a number of 0 or more; see`},
		{"ping /x -n 99999999999999999999", exitUsage, `"-n, --start" flag: it is out of range; see`},
		{"ping /x -o 0", exitUsage, "--timeout"},
		{"ping /x -c 0", exitUsage, "--count"},
		{"ping /x -p a/b", exitUsage, "--identifier"},
		{"ping /x --transport unix:///none", exitGaveUp, "no forwarder at unix:///none"},
		{"pingserver /x -s 9000", exitUsage, "--size"},
		{"pingserver /x -f -1", exitUsage, "--freshness"},
		{"pingserver /x --transport unix:///none", exitGaveUp, "no forwarder at unix:///none"},
	} {
		j := begin(t, nil, strings.Fields(c.args)...)
		if code := j.wait(); code != c.code || !strings.Contains(j.err.String(), c.says) || j.out.String() != "" {
			t.Errorf("%s: code %d, %s, %s", c.args, code, j.err.String(), j.out.String())
		}
	}
}
