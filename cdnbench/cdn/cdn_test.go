//go:build linux

package cdn

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
	"ndnpop/internal/testbin"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

const tick = time.Millisecond

func TestGap(t *testing.T) {
	f := Fetched{Points: []Point{{1 * tick, 1}, {5 * tick, 2}, {6 * tick, 3}, {20 * tick, 4}}}
	for _, c := range []struct{ from, to, want time.Duration }{
		{0, 100 * tick, 14 * tick}, {0, 5 * tick, 4 * tick}, {2 * tick, 5 * tick, tick}, {50 * tick, 60 * tick, 0},
	} {
		if got := f.Gap(c.from, c.to); got != c.want {
			t.Errorf("between %v and %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	f.Packets = []time.Duration{tick, 2 * tick, 4 * tick}
	if got := f.Gap(0, 100*tick); got != 2*tick {
		t.Errorf("with packets: %v", got)
	}
	if got := f.OrderedGap(0, 100*tick); got != 14*tick {
		t.Errorf("in order: %v", got)
	}
	f.Err, f.Elapsed = errBroken, 90*tick
	if packets, output := f.Gap(0, 100*tick), f.OrderedGap(0, 100*tick); packets != 86*tick || output != 70*tick {
		t.Errorf("what never came: %v between packets, %v in the output", packets, output)
	}
}

func TestArrivals(t *testing.T) {
	content := strings.Repeat("x", 1_000_000)
	told := int64(0)
	a := newArrivals(func(p Point) { told = p.Bytes })
	if err := a.read(io.MultiReader(strings.NewReader(content[:1000]), strings.NewReader(content[1000:]))); err != nil {
		t.Fatal(err)
	}
	if a.bytes != int64(len(content)) || told != a.bytes || a.points[len(a.points)-1].Bytes != a.bytes {
		t.Errorf("%d bytes, %d told, %v", a.bytes, told, a.points)
	}
	for i := 2; i < len(a.points); i++ {
		if a.points[i].At-a.points[i-2].At < pointSpacing {
			t.Errorf("points %d to %d are %v apart", i-2, i, a.points[i].At-a.points[i-2].At)
		}
	}
	if err := newArrivals(nil).read(io.MultiReader(strings.NewReader("x"), broken{})); !errors.Is(err, errBroken) {
		t.Errorf("a read that fails: %v", err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestReadTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	lines := `{"t":0,"kind":"send","cwnd":1}
{"t":0.01,"kind":"data","rtt":0.01,"cwnd":1}
{"t":0.02,"kind":"send","segment":0,"cwnd":1}
{"t":0.03,"kind":"send","segment":1,"cwnd":1}
{"t":0.04,"kind":"data","segment":0,"cwnd":1}
{"t":0.05,"kind":"send","segment":1,"cwnd":1}
{"t":0.06,"kind":"data","segment":1,"cwnd":1}
{"t":0.07,"kind":"data","segment":1,"cwnd":1}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var f Fetched
	if err := (&ndnArm{}).readTrace(path, &f); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Packets, []time.Duration{40 * tick, 60 * tick, 70 * tick}) || !slices.Equal(f.AgainAt, []time.Duration{50 * tick}) || f.Twice != ndnSegment {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(path, []byte(lines[:10]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&ndnArm{}).readTrace(path, &f); err == nil {
		t.Error("half a line is no trace")
	}
}

func TestVerdict(t *testing.T) {
	l := &lab{Result: &cdnbench.Result{}, runs: 1, kinds: []Kind{{Name: "ndn"}, {Name: "other ndn"}, {Name: "web", HTTP: true}}}
	for metric, v := range map[string][2]float64{"ahead": {1, 2}, "behind": {3, 2}, "level": {1.01, 1}} {
		l.Add(1, "ndn", metric, v[0])
		l.Add(1, "other ndn", metric, 9)
		l.Add(1, "web", metric, v[1])
	}
	l.Add(1, "ndn", "alone", 1)
	l.Add(1, "web", "other side alone", 1)
	l.Summarise()
	for metric, want := range map[string]string{
		"ahead": "ndnpop is ahead (ndn 1 s, web 2 s)", "behind": "behind by 50 %", "level": "are level",
		"alone": "no HTTP arm completed", "other side alone": "no arm of ndnpop completed",
	} {
		if got := l.verdict("x", metric, "s"); !strings.Contains(got, want) {
			t.Errorf("%s: %q", metric, got)
		}
	}
	if got := l.verdict("x", "nobody", "s"); got != "" {
		t.Errorf("without a figure: %q", got)
	}
	if got, want := l.ranking("x", "behind", "s"), "x, all arms: web 2 s; ndn 3 s; other ndn 9 s."; got != want {
		t.Errorf("ranking %q", got)
	}
	if got := l.failed("alone"); !strings.Contains(got, "web (1 of 1)") || strings.Contains(got, " ndn (1 of 1)") && !strings.Contains(got, "other ndn") {
		t.Errorf("failed: %q", got)
	}
}

// TestFinish: what never arrived, and what HTTP never gave a figure for, fails
// also where the emulator was late.
func TestFinish(t *testing.T) {
	for _, c := range []struct {
		asked, whole int
		ok           bool
	}{{3, 3, true}, {3, 2, false}, {0, 0, false}} {
		l := &lab{Result: &cdnbench.Result{Scenario: "x", Reduced: true}, kinds: []Kind{{Name: "ndn"}}, late: true,
			asked: map[string]int{"ndn": c.asked}, whole: map[string]int{"ndn": c.whole}}
		l.expect("bytes", "", 2, 0, 1)
		r := l.finish()
		if err := r.Write(t.TempDir()); err != nil || r.OK != c.ok {
			t.Errorf("%d of %d whole: ok %v, %v", c.whole, c.asked, r.OK, err)
		}
	}
	for late, want := range map[bool]int{false: 0, true: 1} {
		l := &lab{Result: &cdnbench.Result{Scenario: "x", Reduced: true}, late: late}
		if l.rough("bytes", 2, 0, 1); l.Judged() != want {
			t.Errorf("late %v: %d rough checks are judged", late, l.Judged())
		}
	}
	l := &lab{Result: &cdnbench.Result{}, kinds: []Kind{{Name: "ndn"}, {Name: "web", HTTP: true}}}
	if v, any := l.fastest("s"); !any || !math.IsNaN(v) {
		t.Errorf("an HTTP arm without figures: %v, %v", v, any)
	}
	if l.kinds = l.kinds[:1]; len(l.side(true)) > 0 {
		t.Error("there is no HTTP arm")
	}
	if _, any := l.fastest("s"); any {
		t.Error("there is no HTTP arm to be held against")
	}
}

func TestReduced(t *testing.T) {
	kinds := []Kind{{Name: "a"}, {Name: "b"}, {Name: "c", HTTP: true}, {Name: "d", HTTP: true}}
	if got := reduced(cdnbench.Options{}, slices.Clone(kinds)); len(got) != 4 {
		t.Errorf("a full run has %d arms", len(got))
	}
	if got := reduced(cdnbench.Options{Quick: true}, slices.Clone(kinds)); len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Errorf("a reduced run has %v", got)
	}
}

// TestArmFails: an arm that fails leaves the others their turn, and is told in the
// report and by the result.
func TestArmFails(t *testing.T) {
	started := 0
	kind := func(name string) Kind {
		return Kind{Name: name, Start: func(context.Context, *Topology) (Arm, error) {
			started++
			return nil, errBroken
		}}
	}
	l := &lab{Result: &cdnbench.Result{Scenario: "x", Reduced: true}, t: &Topology{Options: cdnbench.Options{Log: io.Discard}},
		kinds: []Kind{{Name: "ndn"}}, asked: map[string]int{"ndn": 1}, whole: map[string]int{"ndn": 1}}
	for run := 1; run <= 2; run++ {
		if err := l.round(t.Context(), run, []job{{kind: kind("a")}, {kind: kind("b")}}); err != nil {
			t.Fatal(err)
		}
	}
	r, dir := l.finish(), t.TempDir()
	if err := r.Write(dir); err != nil || r.OK || started != 4 {
		t.Errorf("ok %v, %d started, %v", r.OK, started, err)
	}
	report, err := os.ReadFile(filepath.Join(dir, "x", "report.md"))
	if err != nil || !strings.Contains(string(report), "b: times that it failed") || !strings.Contains(string(report), "run 1: starting it: broken") {
		t.Errorf("%v: %s", err, report)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.round(ctx, 3, []job{{kind: kind("a")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestPrepare: all that is missing is told at once, each once; an arm that this
// kernel cannot run is left out.
func TestPrepare(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	needs := func(err error) func(context.Context, cdnbench.Options) error {
		return func(context.Context, cdnbench.Options) error { return err }
	}
	noBBR := func() error { return errors.New("no bbr") }
	var log strings.Builder
	err := prepare(t.Context(), cdnbench.Options{Log: &log}, []Kind{
		{Name: "ours"}, {Name: "a", Prepare: needs(errBroken)}, {Name: "b", Prepare: needs(errBroken)}, {Name: "c", Prepare: needs(errNot)},
		{Name: "d", Missing: noBBR, Prepare: needs(errors.New("never asked"))},
	})
	if err == nil || err.Error() != errBroken.Error()+"\n"+errNot.Error() {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "d will be left out: no bbr") {
		t.Errorf("log %q", &log)
	}
}

// TestNDNArm fetches over the whole topology, with an intermediate that dies.
func TestNDNArm(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o := cdnbench.Options{Ndnpop: testbin.Ndnpop(t), Log: io.Discard}
	top, err := NewTopology(t.TempDir(), o, Layout{Seed: 1, Sizes: []int64{400_000, 500_000}})
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	arm, err := ours("failover").Start(ctx, top)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(f Fetch) {
		t.Helper()
		r, err := arm.Fetch(ctx, f)
		want := f.Object.Size
		if f.Length > 0 {
			want = f.Length
		}
		if err != nil || r.Err != nil || r.Bytes != want || len(r.Packets) == 0 || r.First <= 0 || r.First > r.Elapsed {
			t.Fatalf("%v; %d bytes of %d, first after %v, all after %v, %v", err, r.Bytes, want, r.First, r.Elapsed, r.Err)
		}
	}
	first, second := top.Objects[0], top.Objects[1]
	fetch(Fetch{Object: first, Offset: 100_000, Length: 50_000})
	fetch(Fetch{Object: first})
	for n, want := range map[Node]bool{Edge: true, Mid1: true, Mid2: false} {
		if held, err := arm.Held(ctx, n); err != nil || held >= first.Size != want {
			t.Errorf("%s holds %d bytes, %v", n, held, err)
		}
	}
	if err := arm.Steer(ctx, Mid2); err != nil {
		t.Fatal(err)
	}
	if err := arm.Forget(ctx, Edge); err != nil {
		t.Fatal(err)
	}
	fetch(Fetch{Object: first})
	if held, err := arm.Held(ctx, Mid2); err != nil || held < first.Size {
		t.Errorf("after steering mid2 holds %d bytes, %v", held, err)
	}
	if err := arm.Kill(Mid2); err != nil {
		t.Fatal(err)
	}
	fetch(Fetch{Object: second})
	if err := arm.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, h := range top.Hosts {
		if p, err := h.Processes(); err != nil || len(p) > 0 {
			t.Errorf("left at %s: %v, %v", h.Name(), p, err)
		}
	}
}

// TestLinksAgree: forwarders as they come repair what their links lose, without a
// word of configuration, and not where it is turned off.
func TestLinksAgree(t *testing.T) {
	testbin.Need(t, emunet.Supported())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	top, err := NewTopology(t.TempDir(), cdnbench.Options{Ndnpop: testbin.Ndnpop(t), Log: io.Discard}, Layout{Seed: 1, Sizes: []int64{400_000}})
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	for _, off := range []bool{false, true} {
		a, err := startNDN(ctx, top, ndnConfig{strategy: "failover", pipeline: "cubic", unrepaired: off})
		if err != nil {
			t.Fatal(err)
		}
		arm := a.(*ndnArm)
		r, err := arm.Fetch(ctx, Fetch{Object: top.Objects[0]})
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		uri := arm.routes(Client)[0].uri()
		reliable := func() (on bool) {
			err := arm.manage(ctx, Client, func(ctx context.Context, c *client.Client) error {
				b, err := c.Dataset(ctx, "faces", "list", nil)
				if err != nil {
					return err
				}
				faces, err := mgmt.ParseFaceStatuses(b)
				for _, f := range faces {
					on = on || f.URI == uri && f.Flags&mgmt.FaceReliability != 0
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return on
		}
		if reliable() == off {
			t.Errorf("turned off %v: the client's link repairs %v", off, !off)
		}
		if err := arm.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
