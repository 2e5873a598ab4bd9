package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/internal/testbin"
)

func TestReplicaFlags(t *testing.T) {
	further := func() (cc.Controller, error) { return nil, nil }
	for _, c := range []struct {
		flags     replicaFlags
		two, many bool
		err       string
	}{
		{replicaFlags{}, false, false, ""},
		{replicaFlags{replicas: []string{"/a", "/b"}}, true, false, ""},
		{replicaFlags{replicas: []string{"/a"}, noTwoLevel: true}, false, false, ""},
		{replicaFlags{replicas: []string{"/a"}, multiSource: true}, false, true, ""},
		{replicaFlags{replicas: []string{"/a"}, multiSource: true, noTwoLevel: true}, false, true, ""},
		{replicaFlags{twoLevel: true}, true, false, ""},
		{replicaFlags{twoLevel: true, noTwoLevel: true}, false, false, "exclude each other"},
		{replicaFlags{replicas: []string{"/a"}, twoLevel: true, multiSource: true}, false, false, "exclude each other"},
		{replicaFlags{multiSource: true}, false, false, "needs --replicas"},
		{replicaFlags{replicas: []string{"/a", "/a"}}, false, false, "/a is there twice"},
		{replicaFlags{replicas: []string{"/"}}, false, false, "empty name"},
		{replicaFlags{replicas: []string{"/%zz"}}, false, false, "--replicas"},
		{replicaFlags{replicas: strings.Split("/1,/2,/3,/4,/5,/6,/7,/8", ",")}, false, false, "want 7 at most"},
	} {
		var cfg consumer.Config
		err := c.flags.plan(&cfg, further)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.flags, err, c.err)
			}
			continue
		}
		if err != nil || (cfg.TwoLevel != nil) != c.two || cfg.MultiSource != c.many || len(cfg.Replicas) != len(c.flags.replicas) {
			t.Errorf("%+v: %v, %+v", c.flags, err, cfg)
		}
	}
}

func TestPipelineOptions(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-p bbr --pipeline-option startup-gain", "name=value"},
		{"-p bbr --pipeline-option =3", "name=value"},
		{"-p bbr --pipeline-option startup-gain=3 --pipeline-option startup-gain=3", "twice"},
		{"-p bbr --pipeline-option gain=3", "known are startup-gain"},
		{"-p fixed --pipeline-option gain=3", "it has none"},
		{"-p mpc --pipeline-option fill=2", "want 0 to 1"},
	} {
		_, msg, code := cat(t, append(strings.Fields(c.args), "/f")...)
		if code != exitUsage || !strings.Contains(msg, c.want) {
			t.Errorf("%s: code %d, %s", c.args, code, msg)
		}
	}
}

// TestOptionsAreDocumented: docs/fetching.md names every option of every
// pipeline.
func TestOptionsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testbin.Root(), "docs", "fetching.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range cc.Builtin() {
		if !strings.Contains(string(doc), "`"+f.Name+"`") {
			t.Errorf("docs/fetching.md lacks %s", f.Name)
		}
		_, err := f.New(cc.Params{Options: map[string]string{"-": "1"}})
		_, known, some := strings.Cut(err.Error(), "known are ")
		if !some {
			continue
		}
		for _, o := range strings.Split(known, ", ") {
			if !strings.Contains(string(doc), "`"+o+"`") {
				t.Errorf("docs/fetching.md lacks the option %q of %s", o, f.Name)
			}
		}
	}
}
