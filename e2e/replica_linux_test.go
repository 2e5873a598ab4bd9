package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ndnpop/internal/testbin"
)

// replicas is a forwarder in front of two others, on which the same object is
// published.
type replicas struct {
	router, s1, s2 *node
	file           string
}

const replicaBytes = 12 << 20

func newReplicas(t *testing.T, strategy string, toBoth bool) *replicas {
	t.Helper()
	r := &replicas{file: randomFile(t, replicaBytes, 9)}
	r.s1 = startNode(t, nodeConf{})
	r.s2 = startNode(t, nodeConf{extra: "[network]\nproducer_regions = [\"/s2\"]\n"})
	c := nodeConf{
		capacity: "0",
		faces:    []faceConf{{"s1", r.s1.udpURI()}, {"s2", r.s2.udpURI()}},
		routes:   []routeConf{{"/content", "s1", 1}, {"/s2", "s2", 1}},
		extra:    "[[strategy]]\nprefix = \"/content\"\nstrategy = " + strategy + "\n",
	}
	if toBoth {
		c.routes = append(c.routes, routeConf{"/content", "s2", 2})
	}
	r.router = startNode(t, c)
	for _, s := range []*node{r.s1, r.s2} {
		serve(t, s.unix(), "/content/file", r.file, "--version", "1")
	}
	return r
}

// replicaSummary is what cat says of replicas.
type replicaSummary struct {
	Switches int `json:"replica_switches"`
	Log      []struct {
		T             float64 `json:"t_s"`
		From, To, Why string
		Network       bool
	} `json:"switches"`
	Replicas []struct {
		Name     string
		Segments int64
	}
	Elapsed  float64 `json:"elapsed_s"`
	Complete bool
}

// fetch fetches the object; when a quarter of it has come, s1 is stopped, which
// is a silence that no ICMP error announces.
func (r *replicas) fetch(t *testing.T, flags ...string) replicaSummary {
	t.Helper()
	dir := t.TempDir()
	out, stats := filepath.Join(dir, "out"), filepath.Join(dir, "stats.json")
	p := ndnpop(t, r.router.unix(), append([]string{"cat", "/content/file", "-o", out, "--stats", stats, "--max-rate", "60mbit"}, flags...)...)
	testbin.Eventually(t, patience, "a quarter of the object", func() bool {
		fi, err := os.Stat(out + ".part")
		return err == nil && fi.Size() > replicaBytes/4
	}, p, r.router.Proc)
	r.s1.Signal(t, syscall.SIGSTOP)
	defer r.s1.Signal(t, syscall.SIGCONT)
	if code := p.Wait(t, patience); code != 0 {
		t.Fatalf("cat ended with %d: %s", code, p.Stderr)
	}
	sameFile(t, out, r.file)
	b, err := os.ReadFile(stats)
	if err != nil {
		t.Fatal(err)
	}
	var s replicaSummary
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	if !s.Complete {
		t.Error("the summary says that it is not complete")
	}
	return s
}

// The network is asked for another replica, and its nst chooses it.
func TestReplicaSwitchByNetwork(t *testing.T) {
	again(t, "one switch, by the network", func(t *testing.T) replicaSummary {
		// An nst that does not notice the silence by itself.
		return newReplicas(t, "\"nst\"\nparams = { floor = 60000 }", true).fetch(t, "--two-level")
	}, func(s replicaSummary) bool {
		// Where processes wait for a processor all replicas are silent at times.
		return s.Switches == 1 && len(s.Log) == 1 && s.Log[0].Network && s.Log[0].Why == "interruption"
	})
}

// Nobody listens: a forwarding hint leads to the other replica.
func TestReplicaSwitchByHint(t *testing.T) {
	again(t, "one switch, by hint, and a third from there", func(t *testing.T) replicaSummary {
		return newReplicas(t, "\"best-route\"", false).fetch(t, "--replicas", "/s2")
	}, func(s replicaSummary) bool {
		return s.Switches == 1 && len(s.Log) == 1 && !s.Log[0].Network && s.Log[0].To == "/s2" && s.Log[0].Why == "interruption" &&
			len(s.Replicas) == 2 && s.Replicas[1].Segments >= replicaBytes/8000/3
	})
}

// Both replicas at once; one falls silent.
func TestMultiSource(t *testing.T) {
	r := newReplicas(t, "\"best-route\"", false)
	s := r.fetch(t, "--replicas", "/s2", "--multi-source")
	if len(s.Replicas) != 2 || s.Replicas[0].Segments < 50 || s.Replicas[1].Segments < replicaBytes/8000/3 || s.Switches != 0 {
		t.Errorf("%+v", s)
	}
}
