package cli

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"ndnpop/consumer/run"
)

// catSummary is what --stats writes. Times are in seconds, goodput in bits of
// content per second.
type catSummary struct {
	Name            string  `json:"name"`
	Version         *uint64 `json:"version"` // null when the name has none
	Bytes           uint64  `json:"bytes"`   // fetched by this run
	Segments        uint64  `json:"segments"`
	Elapsed         float64 `json:"elapsed_s"`
	TTFB            float64 `json:"ttfb_s"`
	Goodput         float64 `json:"goodput_bps"`
	Pipeline        string  `json:"pipeline"`
	RTTMin          float64 `json:"rtt_min_s"`
	RTTAvg          float64 `json:"rtt_avg_s"`
	RTTMax          float64 `json:"rtt_max_s"`
	Interests       uint64  `json:"interests"`
	Retransmissions uint64  `json:"retransmissions"`
	Timeouts        uint64  `json:"timeouts"`
	Nacks           uint64  `json:"nacks"`
	Marks           uint64  `json:"congestion_marks"`
	Decreases       uint64  `json:"window_decreases"`
	Switches        uint64  `json:"replica_switches"`
	MaxGap          float64 `json:"max_gap_s"`
	Sha256          string  `json:"sha256"`
	Verified        bool    `json:"verified"`
	Complete        bool    `json:"complete"`
	Files           *int    `json:"files,omitempty"`    // of a tree
	Rejected        uint64  `json:"rejected,omitempty"` // packets that were wrong, and asked for again
	// Of a fetch that knows several replicas, or changed them.
	Replicas  []catReplica `json:"replicas,omitempty"`
	SwitchLog []catSwitch  `json:"switches,omitempty"`

	duplicates uint64 // Data for segments that were there already
}

func summarise(f *catFlags, p *catPlan, r *run.Result) *catSummary {
	st := &r.Stats
	s := &catSummary{
		Name: p.fetch.Name.String(), Bytes: st.Bytes, Segments: st.Segments + st.Inlined,
		Elapsed: r.Elapsed.Seconds(), Pipeline: f.pipeline,
		RTTMin: st.RTTMin.Seconds(), RTTAvg: st.RTTAvg.Seconds(), RTTMax: st.RTTMax.Seconds(),
		Interests: st.Interests, Retransmissions: st.Retransmissions, Timeouts: st.Timeouts,
		Nacks: st.Nacks, Marks: st.Marks, Decreases: st.WindowDecreases, Switches: st.ReplicaSwitches,
		Rejected: st.Rejected, MaxGap: st.MaxGap.Seconds(), Sha256: hex.EncodeToString(r.Output.Sha256),
		Verified: r.Output.Verified, Complete: r.Complete, duplicates: st.Duplicates,
	}
	s.addReplicas(&p.fetch, st, r.Replicas, r.Switches)
	if r.Object.HasVersion {
		s.Version = &r.Object.Version
	}
	if st.FirstByte != 0 {
		s.TTFB = st.FirstByte.Sub(st.Started).Seconds()
	}
	if s.Elapsed > 0 {
		s.Goodput = float64(s.Bytes) * 8 / s.Elapsed
	}
	return s
}

// line is the summary for people.
func (s *catSummary) line() string {
	checked := "not verified"
	if s.Verified {
		checked = "verified"
	}
	name := s.Name
	if s.Version != nil {
		name += fmt.Sprintf(" version %d", *s.Version)
	}
	if s.Files != nil {
		name += ": " + count(*s.Files, "file")
	}
	out := fmt.Sprintf("%s: %d bytes in %.3f s (%s), first byte after %.1f ms, %s, %s, %d repeated, %d duplicates, rtt %.2f/%.2f/%.2f ms, %s",
		name, s.Bytes, s.Elapsed, bitrate(s.Goodput), s.TTFB*1e3, count(s.Segments, "segment"), count(s.Interests, "Interest"), s.Retransmissions, s.duplicates,
		s.RTTMin*1e3, s.RTTAvg*1e3, s.RTTMax*1e3, checked)
	if s.Rejected > 0 {
		out += fmt.Sprintf("\n%d packets were not what they should be and were asked for again", s.Rejected)
	}
	out += s.replicaLines()
	if s.Sha256 != "" {
		out += "\nsha256 " + s.Sha256
	}
	return out
}

func bitrate(bps float64) string {
	switch {
	case bps >= 1e9:
		return fmt.Sprintf("%.2f Gbit/s", bps/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.1f Mbit/s", bps/1e6)
	}
	return fmt.Sprintf("%.1f kbit/s", bps/1e3)
}

// checkStats fails where writeStats would fail, when nothing is fetched yet.
func checkStats(f *catFlags) error {
	if f.stats == "" || f.stats == "-" {
		return nil
	}
	file, err := os.OpenFile(f.stats, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	return file.Close()
}

func writeStats(e *env, f *catFlags, s *catSummary) error {
	if f.stats == "" {
		return nil
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if f.stats == "-" {
		_, err = e.stderr.Write(b)
		return err
	}
	return os.WriteFile(f.stats, b, 0o666)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// catProgress is the progress bar of a fetch.
type catProgress struct {
	p   *mpb.Progress
	bar *mpb.Bar
}

// newCatProgress returns nil when no progress is to be shown.
func newCatProgress(e *env, f *catFlags) *catProgress {
	switch {
	case f.progress == "never" || f.quiet && f.progress != "always":
		return nil
	case f.progress == "auto" && (!isTerminal(e.stderr) || f.output == "" && isTerminal(e.stdout)):
		return nil
	}
	opts := []mpb.ContainerOption{mpb.WithOutput(e.stderr), mpb.WithWidth(80)}
	if f.progress == "always" {
		opts = append(opts, mpb.ForceAutoRefresh())
	}
	c := &catProgress{p: mpb.New(opts...)}
	c.bar = c.p.AddBar(0,
		mpb.PrependDecorators(decor.CountersKiloByte("% .1f / % .1f")),
		mpb.AppendDecorators(
			decor.AverageSpeed(decor.SizeB1000(0), "% .1f"),
			decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}),
		),
	)
	return c
}

// update is called by the fetch from time to time.
func (c *catProgress) update(p run.Progress) {
	if p.Known && p.Total > 0 {
		c.bar.SetTotal(int64(p.Total), false)
	}
	c.bar.SetCurrent(int64(p.Done))
}

// finish takes the bar away, or leaves it full.
func (c *catProgress) finish(ok bool) {
	if c == nil {
		return
	}
	if ok {
		c.bar.SetTotal(-1, true)
	} else {
		c.bar.Abort(false)
	}
	c.p.Wait()
}

// catOutage says on standard error when the forwarder goes away and comes back,
// once for all fetches of a command.
type catOutage struct {
	e   *env
	f   *catFlags
	bar *catProgress // may be nil

	mu  sync.Mutex
	cut int // fetches without a connection
}

// told is run.Options.Connection of each fetch.
func (o *catOutage) told(ended error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.cut
	if o.cut--; ended != nil {
		o.cut = before + 1
	}
	switch {
	case o.f.quiet || before > 0 && o.cut > 0:
	case ended != nil:
		uri, _, _ := dialer(o.f.transport) // it was dialled
		o.say(cutOff(uri, ended))
	default:
		o.say(backAgain)
	}
}

// say writes a line, above the progress bar if there is one.
func (o *catOutage) say(line string) {
	w := o.e.stderr
	if o.bar != nil {
		w = o.bar.p
	}
	fmt.Fprintln(w, line)
}
