//go:build linux

package cdn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

// lab is what the experiments have in common: the topology, and the result
// that they fill.
type lab struct {
	*cdnbench.Result
	t    *Topology
	dir  string
	runs int
	// The arms that were measured, in order, lines of plots, and what did not
	// count.
	kinds   []Kind
	series  []series
	refused []string
	late    bool // a reduced run counted although the emulator did not keep up
	// What arms failed at, in the order of their first failure.
	faults []fault
	// How many fetches of each arm counted, and how many of them brought all
	// bytes of the object, and the right ones.
	asked, whole map[string]int
	// What the calibrations saw: probes, how many of them were lost, or should
	// have been, and by what share a round trip was off at the most.
	probes, lost  int
	wantLost, off float64
}

// fault is an arm that failed, and why, in each run that it did.
type fault struct {
	arm string
	why []string
}

const (
	fullRuns = 10
	// warmSize is that of the object that is fetched before anything counts:
	// programs load their code, neighbours meet.
	warmSize = 20_000
	// Attempts of a run that the emulator had no time for. In a reduced run it
	// counts all the same, and is not judged: it shows that everything works, on
	// machines that others use too.
	attempts = 4
)

// newLab builds the topology of a scenario. Close it.
func newLab(name string, o cdnbench.Options, l Layout, quickRuns int) (*lab, error) {
	if err := emunet.Supported(); err != nil {
		return nil, err
	}
	runs := o.Runs
	switch {
	case runs > 0:
	case o.Quick:
		runs = quickRuns
	default:
		runs = fullRuns
	}
	dir, err := emunet.MkdirTemp()
	if err != nil {
		return nil, err
	}
	l.Seed, l.OneWay = o.Seed, o.OneWay
	l.Sizes = append(slices.Clone(l.Sizes), warmSize)
	t, err := NewTopology(dir, o, l)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r := &cdnbench.Result{Scenario: name, Seed: o.Seed, Runs: runs, Reduced: o.Quick, Environment: cdnbench.Environment()}
	r.Environment["emulator"] = "links between network namespaces, carried in user space (emunet tun)"
	r.Environment["delays"] = "the paper's, read as round trips"
	if o.OneWay {
		r.Environment["delays"] = "the paper's, read as one way"
	}
	return &lab{Result: r, t: t, dir: dir, runs: runs, asked: map[string]int{}, whole: map[string]int{}}, nil
}

func (l *lab) close() error { return errors.Join(l.t.Close(), os.RemoveAll(l.dir)) }

// object is the one of this size.
func (l *lab) object(size int64) Object {
	i := slices.IndexFunc(l.t.Objects, func(o Object) bool { return o.Size == size })
	return l.t.Objects[i]
}

// trial is one run of one arm. Its samples count once the emulator has shown
// that it kept up.
type trial struct {
	lab     *lab
	arm     Arm
	kind    Kind
	run     int
	samples []sample
	series  []series
	log     []string
	// Fetches, and those that brought the whole object.
	asked, whole int
}

type sample struct {
	metric string
	value  float64
}

func (t *trial) add(metric string, value float64) {
	t.samples = append(t.samples, sample{metric, value})
}

// fetch is Arm.Fetch with a limit. What did not complete is noted.
func (t *trial) fetch(ctx context.Context, limit time.Duration, f Fetch) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := t.arm.Fetch(ctx, f)
	if err != nil {
		return r, fmt.Errorf("fetching %s: %w", f.Object.Name, err)
	}
	t.asked++
	if r.Err != nil {
		t.log = append(t.log, r.Err.Error())
	} else {
		t.whole++
	}
	return r, nil
}

// patience is how long a fetch may take. A reduced run has less: enough for
// ndnpop on a machine with much else to do, and for HTTP to show that it is slow.
func (t *trial) patience(full time.Duration) time.Duration {
	switch {
	case !t.lab.Reduced:
		return full
	case t.kind.HTTP:
		return min(full, 20*time.Second)
	}
	return min(full, time.Minute)
}

// job is what is measured of an arm, started afresh, in each run.
type job struct {
	kind    Kind
	measure func(context.Context, *trial) error
}

// each does all jobs in turn, so that drift of the machine meets all of them,
// in each run after a calibration.
func (l *lab) each(ctx context.Context, jobs []job) error {
	jobs = slices.DeleteFunc(jobs, func(j job) bool {
		if j.kind.Missing == nil {
			return false
		}
		err := j.kind.Missing()
		if err != nil {
			l.Environment["left out: "+j.kind.Name] = err.Error()
		}
		return err != nil
	})
	for _, j := range jobs {
		if !slices.ContainsFunc(l.kinds, func(k Kind) bool { return k.Name == j.kind.Name }) {
			l.kinds = append(l.kinds, j.kind)
		}
	}
	for run := 1; run <= l.runs; run++ {
		switch err := l.t.Calibrate(ctx); {
		case err == nil:
		case !errors.Is(err, emunet.ErrCalibration):
			return err
		case l.Reduced:
			l.unjudged(run, "the links", err)
		default:
			l.refuse(run, "the links", err)
			continue
		}
		for _, c := range l.t.calibration {
			l.Add(run, "emulator", "RTT of "+c.Link+", ms", ms(c.RTT))
			l.Add(run, "emulator", "loss of "+c.Link+", %", 100*c.Loss)
			l.probes, l.lost = l.probes+c.Sent, l.lost+c.Sent-c.Echoed
			l.wantLost += c.WantLoss * float64(c.Sent)
			l.off = max(l.off, math.Abs(float64(c.RTT)/float64(c.WantRTT)-1))
		}
		if err := l.round(ctx, run, jobs); err != nil {
			return err
		}
	}
	return nil
}

// round does all jobs of a run. Where an arm fails the others go on.
func (l *lab) round(ctx context.Context, run int, jobs []job) error {
	for _, j := range jobs {
		err := l.try(ctx, run, j)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.broke(run, j.kind.Name, err)
		}
	}
	return nil
}

// prepare has the programs of all arms at hand. What this kernel cannot do leaves
// an arm out, which is no reason not to begin.
func prepare(ctx context.Context, o cdnbench.Options, kinds []Kind) error {
	if err := emunet.Supported(); err != nil {
		return err
	}
	var errs []error
	said := map[string]bool{}
	for _, k := range kinds {
		if k.Missing != nil {
			if err := k.Missing(); err != nil {
				fmt.Fprintf(o.Log, "%s will be left out: %v\n", k.Name, err)
				continue
			}
		}
		if k.Prepare == nil {
			continue
		}
		if err := k.Prepare(ctx, o); err != nil && !said[err.Error()] {
			said[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// broke notes that an arm could not be run.
func (l *lab) broke(run int, arm string, why error) {
	fmt.Fprintf(l.t.Options.Log, "%s, %s, run %d failed: %v\n", l.Scenario, arm, run, why)
	i := slices.IndexFunc(l.faults, func(f fault) bool { return f.arm == arm })
	if i < 0 {
		i, l.faults = len(l.faults), append(l.faults, fault{arm: arm})
	}
	l.faults[i].why = append(l.faults[i].why, fmt.Sprintf("run %d: %v", run, why))
}

// try makes one trial, again where the emulator did not keep up.
func (l *lab) try(ctx context.Context, run int, j job) error {
	for attempt := 1; ; attempt++ {
		begin := time.Now()
		t, err := l.trial(ctx, run, j)
		if err != nil {
			return err
		}
		late := l.t.Net.Verify()
		if late != nil && l.Reduced {
			l.unjudged(run, j.kind.Name, late)
			late = nil
		}
		if late == nil {
			var line []string
			for _, s := range t.samples {
				l.Add(run, j.kind.Name, s.metric, s.value)
				line = append(line, fmt.Sprintf("%s %.4g", s.metric, s.value))
			}
			l.series = append(l.series, t.series...)
			l.asked[j.kind.Name] += t.asked
			l.whole[j.kind.Name] += t.whole
			l.t.Options.Did("%s, %s, run %d (%.1f s): %s %s", l.Scenario, j.kind.Name, run,
				time.Since(begin).Seconds(), strings.Join(line, ", "), strings.Join(t.log, "; "))
			return nil
		}
		fmt.Fprintf(l.t.Options.Log, "%s, %s, run %d, attempt %d does not count: %v\n", l.Scenario, j.kind.Name, run, attempt, late)
		if attempt == attempts {
			l.refuse(run, j.kind.Name, late)
			return nil
		}
	}
}

func (l *lab) trial(ctx context.Context, run int, j job) (t *trial, err error) {
	arm, err := j.kind.Start(ctx, l.t)
	if err != nil {
		return nil, fmt.Errorf("starting it: %w", err)
	}
	defer func() { err = errors.Join(err, arm.Stop()) }()
	t = &trial{lab: l, arm: arm, kind: j.kind, run: run}
	for range 2 { // the first cold requests of some programs are slower
		r, err := t.fetch(ctx, 30*time.Second, Fetch{Object: l.object(warmSize)})
		if err == nil {
			err = r.Err
		}
		if err != nil {
			return nil, fmt.Errorf("before measuring: %w", err)
		}
	}
	if err := l.reset(run); err != nil {
		return nil, err
	}
	return t, j.measure(ctx, t)
}

// reset clears the links, and starts their dice anew: the same for all arms of
// a run.
func (l *lab) reset(run int) error { return l.t.Net.Reset(l.t.Seed + uint64(run)*1000) }

// unjudged notes why a reduced run is not held against anything.
func (l *lab) unjudged(run int, what string, why error) {
	fmt.Fprintf(l.t.Options.Log, "%s, %s, run %d is not judged: %v\n", l.Scenario, what, run, why)
	l.late = true
}

// refuse notes that a run gave nothing: what is checked without any fails.
func (l *lab) refuse(run int, what string, why error) {
	fmt.Fprintf(l.t.Options.Log, "%s, %s, run %d is refused: %v\n", l.Scenario, what, run, why)
	l.refused = append(l.refused, fmt.Sprintf("%s in run %d", what, run))
}

// expect is Result.Expect. Nothing is judged where the emulator did not keep up.
func (l *lab) expect(what, paper string, measured, low, high float64) {
	l.Expect(what, paper, measured, low, high)
	l.Checks[len(l.Checks)-1].Unjudged = l.late
}

// expectTime is expect for what depends on how busy the machine is: a reduced
// run shows it, and does not judge it.
func (l *lab) expectTime(what, paper string, measured, low, high float64) {
	l.expect(what, paper, measured, low, high)
	l.Checks[len(l.Checks)-1].Unjudged = l.Reduced
}

// rough holds against a band that a busy machine does not leave, but a broken
// program does: for reduced runs that judge nothing else.
func (l *lab) rough(what string, measured, low, high float64) {
	if l.late {
		l.Expect("roughly: "+what, "a wide band, judged on a busy machine too", measured, low, high)
	}
}

// finish completes the result. That bytes arrive, all and the right ones, needs
// no emulator that keeps up: it is judged whatever else is.
func (l *lab) finish() *cdnbench.Result {
	ours := l.ours()
	l.Expect(ours+": share of its fetches that brought all bytes, and the right ones", "all of them; judged on a busy machine too",
		float64(l.whole[ours])/float64(l.asked[ours]), 1, 1)
	for _, b := range l.faults {
		l.Expect(b.arm+": times that it failed", "none; judged on a busy machine too", float64(len(b.why)), 0, 0)
		l.find(b.arm + " failed: " + b.why[0])
	}
	switch {
	case l.late:
		l.Findings = "The machine was too busy for the emulator to keep up, and the run is a reduced one: it judges whether all bytes arrived and what such a machine cannot change, and shows the rest.\n" + l.Findings
	case l.Reduced:
		l.Findings = "A reduced run: it judges bytes and repetitions, and shows times.\n" + l.Findings
	}
	if strings.Contains(ours, reliableLinks) {
		l.find("The arm that is judged, " + ours + ", has been set up for this path: its links repair losses, and its window is bounded by what the path holds. TCP is not given that.")
	}
	l.find(fmt.Sprintf("The links themselves, measured before each run: round trips were off by %.2g %% at the most, %d of %d probes were lost (%.2g were to be expected).",
		100*l.off, l.lost, l.probes, l.wantLost))
	if len(l.refused) > 0 {
		l.find("The emulator of the links did not keep up, so that these do not count: " + strings.Join(l.refused, ", ") + ".")
	}
	return l.Result
}

// median of a metric of an arm.
func (l *lab) median(arm, metric string) float64 {
	s, ok := l.Arms[arm][metric]
	if !ok {
		return math.NaN() // fails a check
	}
	return s.Median
}

// rtt is the round trip over links, as they were configured.
func (l *lab) rtt(links ...*emunet.Link) (sum time.Duration) {
	for _, x := range links {
		sum += x.Params(emunet.AB).Delay + x.Params(emunet.BA).Delay
	}
	return sum
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ours is the arm that is held against what the project promises.
func ours(strategy string) Kind {
	return ndnpop(ndnConfig{strategy: strategy, pipeline: "cubic", reliable: true})
}

// reduced leaves the first arm of each side in a reduced run.
func reduced(o cdnbench.Options, kinds []Kind) []Kind {
	if !o.Quick {
		return kinds
	}
	seen := map[bool]bool{}
	return slices.DeleteFunc(kinds, func(k Kind) bool {
		again := seen[k.HTTP]
		seen[k.HTTP] = true
		return again
	})
}

// jobs are one for each kind.
func jobs(kinds []Kind, measure func(context.Context, *trial) error) (all []job) {
	for _, k := range kinds {
		all = append(all, job{k, measure})
	}
	return all
}
