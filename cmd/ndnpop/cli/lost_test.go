package cli

import (
	"errors"
	"strings"
	"testing"

	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

// full is a disk that takes some bytes and no more.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	if f.room -= n; n < len(p) {
		return n, errFull
	}
	return n, nil
}

// TestLostOutput: what cannot be printed is no success.
func TestLostOutput(t *testing.T) {
	transport := forwarder(t)
	s := begin(t, nil, "pingserver", "/cdn", transport)
	s.says(&s.out, "PING SERVER")
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		room int
	}{
		{"ping /cdn -c 1 " + transport, 0},
		{"ping /cdn " + transport, len("PING /cdn\n")}, // it has no other end
		{"ping /cdn -q -c 1 " + transport, len("PING /cdn\n\n---")},
		{"key generate /a --keychain " + t.TempDir(), 0},
	} {
		var said buffer
		root := newRoot(&env{stdout: &full{c.room}, stderr: &said, strategies: set})
		root.SetArgs(strings.Fields(c.args))
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, %s", c.args, err, said.String())
		}
	}
}

// TestUnknownTopics: help for what does not exist is wrong usage.
func TestUnknownTopics(t *testing.T) {
	for _, args := range []string{"help nothing", "help cat nothing", "completion nothing"} {
		j := begin(t, nil, strings.Fields(args)...)
		if code := j.wait(); code != exitUsage || !strings.Contains(j.err.String(), "nothing") {
			t.Errorf("%s: code %d, %s", args, code, j.err.String())
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "ctl", "face"}, {"completion"}, {"completion", "bash"}} {
		j := begin(t, nil, args...)
		if code := j.wait(); code != exitDone || j.out.String() == "" {
			t.Errorf("%s: code %d, %s", strings.Join(args, " "), code, j.err.String())
		}
	}
}
