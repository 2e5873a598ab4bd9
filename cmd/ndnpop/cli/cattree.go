package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/output"
	"ndnpop/consumer/run"
	"ndnpop/consumer/tree"
	"ndnpop/face"
	"ndnpop/ndn"
)

// treeParallel is the number of files that are fetched at once: enough that a
// path of many round trips is not idle between small files.
const treeParallel = 4

// wantsTree reports whether -o names a directory to fetch into.
func (f *catFlags) wantsTree() bool { return strings.HasSuffix(f.output, string(os.PathSeparator)) }

// checkTree refuses what makes no sense for several files.
func (f *catFlags) checkTree() error {
	for _, c := range []struct {
		flag string
		set  bool
	}{
		{"--range", f.byteRng != ""}, {"--segments", f.segments != ""}, {"--sha256", f.sha256 != ""},
		{"--no-version-discovery", f.noDiscovery}, {"--trace", f.trace != ""},
		{"--log-cwnd", f.logCwnd != ""}, {"--log-rtt", f.logRTT != ""},
	} {
		if c.set {
			return fmt.Errorf("%s is for one file, and -o %s for a directory", c.flag, f.output)
		}
	}
	return nil
}

// treeTotals adds up what the fetches of a tree do.
type treeTotals struct {
	mu      sync.Mutex
	sum     run.Result
	running map[ndn.Time]run.Progress // by a number for each
	next    ndn.Time
	start   time.Time
	first   time.Duration // until the first byte
	bar     *catProgress
	all     bool // everything was verified
}

// begin returns the functions that take the progress and the result of one
// more fetch.
func (t *treeTotals) begin() (progress func(run.Progress), done func(*run.Result)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	id, began := t.next, time.Now()
	progress = func(p run.Progress) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.running[id] = p
		t.show()
	}
	done = func(r *run.Result) {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, id)
		t.add(&r.Stats, began)
		t.addReplicas(r.Replicas)
		if r.Complete {
			t.sum.Replica = r.Replica
		}
		t.sum.Total += r.Done
		t.sum.Done += r.Done
		t.all = t.all && (r.Output.Verified || !r.Complete)
		t.show()
	}
	return progress, done
}

// begun reports whether any fetch has begun.
func (t *treeTotals) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next > 0
}

// add adds the counters of one fetch.
func (t *treeTotals) add(r *consumer.Stats, began time.Time) {
	s := &t.sum.Stats
	if r.FirstByte != 0 {
		if d := began.Sub(t.start) + r.FirstByte.Sub(r.Started); t.first == 0 || d < t.first {
			t.first = d
		}
	}
	s.Bytes += r.Bytes
	s.Interests += r.Interests
	s.Retransmissions += r.Retransmissions
	s.Timeouts += r.Timeouts
	s.Nacks += r.Nacks
	s.Marks += r.Marks
	s.WindowDecreases += r.WindowDecreases
	s.ReplicaSwitches += r.ReplicaSwitches
	s.Rejected += r.Rejected
	s.MaxGap = max(s.MaxGap, r.MaxGap)
	if r.RTTMin > 0 && (s.RTTMin == 0 || r.RTTMin < s.RTTMin) {
		s.RTTMin = r.RTTMin
	}
	s.RTTMax = max(s.RTTMax, r.RTTMax)
	if n := s.Segments + r.Segments; n > 0 {
		s.RTTAvg = time.Duration((float64(s.RTTAvg)*float64(s.Segments) + float64(r.RTTAvg)*float64(r.Segments)) / float64(n))
	}
	s.Segments += r.Segments
	s.Inlined += r.Inlined
}

// replica is the one that the next fetch begins with: where the latest one
// ended.
func (t *treeTotals) replica() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum.Replica
}

// addReplicas adds what each replica did for one fetch.
func (t *treeTotals) addReplicas(of []consumer.ReplicaStats) {
	if len(t.sum.Replicas) == 0 {
		t.sum.Replicas = make([]consumer.ReplicaStats, len(of))
	}
	of = of[:min(len(of), len(t.sum.Replicas))] // none when the fetch did not begin
	for i, r := range of {
		s := &t.sum.Replicas[i]
		s.Segments += r.Segments
		s.Bytes += r.Bytes
		if s.RTTMin == 0 || r.RTTMin > 0 && r.RTTMin < s.RTTMin {
			s.RTTMin = r.RTTMin
		}
	}
}

// show moves the progress bar.
func (t *treeTotals) show() {
	if t.bar == nil {
		return
	}
	p := run.Progress{Known: true, Total: t.sum.Total, Done: t.sum.Done}
	for _, r := range t.running {
		p.Done += r.Done
		p.Total += max(r.Total, r.Done)
	}
	t.bar.update(p)
}

func runCatTree(ctx context.Context, e *env, f *catFlags, p *catPlan) error {
	if err := checkStats(f); err != nil {
		return err
	}
	t := &treeTotals{running: map[ndn.Time]run.Progress{}, start: time.Now(), bar: newCatProgress(e, f), all: true}
	outage := &catOutage{e: e, f: f, bar: t.bar}
	fetch := func(ctx context.Context, name ndn.Name, to output.Target) error {
		ctl, err := p.newController()
		if err != nil {
			return errors.Join(err, to.Abort(err))
		}
		tr, redial, err := catDial(f.transport)
		if err != nil && t.begun() && redial != nil {
			tr, err = away{errors.New(err.Error())}, nil // which is no reason to give up at once
		}
		if err != nil {
			return errors.Join(err, to.Abort(err))
		}
		progress, done := t.begin()
		cfg := p.fetch
		cfg.Name = name
		cfg.First = t.replica()
		res, err := run.Run(ctx, run.Options{
			Transport: tr, Redial: redial, Connection: outage.told, Fetch: cfg, Controller: ctl, Trust: p.trust,
			Target: to, Output: output.Config{Verify: p.verify}, Progress: progress,
		})
		done(&res)
		return err
	}
	res, err := tree.Fetch(ctx, tree.Options{
		Name: p.fetch.Name, Dir: f.output, Resume: f.resume, Check: p.checked, Parallel: treeParallel, Fetch: fetch,
		Done: func(path string, before bool) {
			if f.verbose && !before {
				fmt.Fprintln(e.stderr, safe(path))
			}
		},
	})
	t.bar.finish(err == nil)
	t.sum.Complete, t.sum.Elapsed = err == nil, time.Since(t.start)
	t.sum.Output.Verified = err == nil && t.all && p.verify != output.VerifyNone
	s := summarise(f, p, &t.sum)
	s.TTFB = t.first.Seconds()
	s.Files = &res.Files
	if e := writeStats(e, f, s); e != nil && err == nil {
		err = e
	}
	if err == nil && !f.quiet && (f.verbose || isTerminal(e.stderr)) {
		fmt.Fprintln(e.stderr, s.line())
		if res.Before > 0 {
			fmt.Fprintf(e.stderr, "%d more were there already\n", res.Before)
		}
	}
	return catError(ctx, f, err)
}

// away is a connection that ended before it began, for a fetch that is to wait for
// the forwarder as those do whose connections ended.
type away struct{ err error }

func (away) Info() face.Info             { return face.Info{} }
func (away) MTU() int                    { return ndn.MaxPacketSize }
func (away) Send(b *face.Frames) int     { return b.Len() }
func (away) QueueLen() int               { return 0 }
func (away) Close() error                { return nil }
func (a away) Serve(face.Receiver) error { return a.err }
