package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/consumer/output"
	"ndnpop/consumer/run"
	"ndnpop/consumer/tree"
	"ndnpop/face"
	"ndnpop/ndn"
	"ndnpop/ndn/verify"
)

// catFlags are the flags of cat as given.
type catFlags struct {
	transport    string
	pipeline     string
	pipelineSize float64
	retries      int
	lifetime     int
	fresh        bool
	noDiscovery  bool
	initCwnd     float64
	initSsthresh float64
	maxCwnd      float64
	hopByHop     bool
	ignoreMarks  bool
	logCwnd      string
	logRTT       string
	quiet        bool
	verbose      bool

	output   string
	resume   bool
	byteRng  string
	segments string
	verify   string
	schema   string
	sha256   string
	stats    string
	trace    string
	progress string
	pacing   string
	maxRate  string
	pathTag  bool

	options  []string // of the pipeline
	replicas replicaFlags
}

// catPlan is what the flags mean.
type catPlan struct {
	fetch      consumer.Config
	controller cc.Controller
	// newController makes another one.
	newController func() (cc.Controller, error)
	verify        output.Verify
	trust         *verify.Verifier // for output.VerifyTrust
	checked       string           // how packets are checked, for the journal
	want          []byte
}

func newCatCmd(e *env) *cobra.Command {
	f := &catFlags{}
	reg, regErr := cc.NewRegistry(append(cc.Builtin(), e.pipelines...)...)
	c := &cobra.Command{
		Use:     "cat NAME",
		Aliases: []string{"catchunks"},
		Short:   "Fetch an object",
		Long: `Fetches the object NAME in segments, from the newest version unless NAME ends
with one, and writes its content to standard output or to a file.

-o DIR/, with a slash at its end, fetches the directory tree NAME into DIR,
several files at a time; what is unfinished lies in DIR/.ndnpop-cat. One file of
a published tree is fetched by its path below the tree's name.

Options of ndncatchunks keep their letters and meanings.`,
		Example: `  ndnpop cat /cdn/video/clip.mp4 -o clip.mp4
  ndnpop cat /cdn/video/clip.mp4 --range 0-999999 > start.mp4
  ndnpop cat /cdn/video/clip.mp4 -o clip.mp4 --resume --stats -
  ndnpop cat /alice/doc -o doc --verify alice.cert
  ndnpop cat /cdn/site -o site/
  ndnpop cat /cdn/video/clip.mp4 -o clip.mp4 --replicas /paris,/tokyo`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if regErr != nil {
				return regErr
			}
			plan, err := f.plan(args[0], reg)
			if err != nil {
				return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
			}
			if f.wantsTree() {
				return runCatTree(c.Context(), e, f, plan)
			}
			return runCat(c.Context(), e, f, plan)
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.output, "output", "o", "", "write to `FILE` through FILE.part, or the tree NAME into DIR/; without it, to standard output")
	fl.BoolVar(&f.resume, "resume", false, "go on with what an earlier fetch left")
	fl.StringVar(&f.byteRng, "range", "", "only these bytes: `A-B`, A-, or -N for the last N")
	fl.StringVar(&f.segments, "segments", "", "only these segments: `A-B`")
	fl.StringVar(&f.verify, "verify", "digest", "check of each packet: `none|digest|FILE|hmac:FILE`; FILE holds trusted certificates, or the shared key")
	fl.StringVar(&f.schema, "trust-schema", "", "which key may sign what: `FILE` with a compiled LVS schema; without it, trusted keys may sign anything, and those that they certify names below their own")
	fl.StringVar(&f.sha256, "sha256", "", "the content must have this SHA-256 (`HEX`)")
	fl.BoolVarP(&f.noDiscovery, "no-version-discovery", "D", false, "do not look for the newest version; NAME is the prefix of the segments")
	fl.BoolVarP(&f.fresh, "fresh", "f", false, "only fresh content (MustBeFresh)")
	fl.StringVarP(&f.pipeline, "pipeline-type", "p", "cubic", "congestion control: `"+strings.Join(reg.Names(), "|")+"`")
	fl.StringArrayVar(&f.options, "pipeline-option", nil, "a setting of the pipeline's own, as `name=value`; may be repeated, and an unknown name lists the known ones")
	fl.Float64VarP(&f.pipelineSize, "pipeline-size", "s", cc.DefaultFixedWindow, "window of -p fixed, in `packets`")
	fl.Float64Var(&f.initCwnd, "init-cwnd", 0, "first window in `packets` (0: the pipeline's own)")
	fl.Float64Var(&f.initSsthresh, "init-ssthresh", 0, "end of the first slow start in `packets` (0: none)")
	fl.Float64Var(&f.maxCwnd, "max-cwnd", 0, "bound of the window in `packets` (0: none); for one path: where the round trip becomes twice as long, it leaves half the rate")
	fl.BoolVar(&f.hopByHop, "hop-by-hop", false, "the links of the path repair their losses (faces with reliability): take nothing that is late for lost before a second has passed; best with --max-cwnd")
	fl.BoolVar(&f.ignoreMarks, "ignore-marks", false, "ignore congestion marks")
	fl.StringVar(&f.pacing, "pacing", "", "send Interests for this `RATE` of Data, e.g. 100mbit")
	fl.StringVar(&f.maxRate, "max-rate", "", "never ask for more than this `RATE` of Data")
	fl.IntVarP(&f.retries, "retries", "r", consumer.DefaultRetries, "retransmissions of a segment before giving up, and lifetimes to wait for at least; -1: never give up")
	fl.IntVarP(&f.lifetime, "lifetime", "l", int(ndn.DefaultLifetime/time.Millisecond), "lifetime of Interests in `ms`")
	fl.BoolVar(&f.pathTag, "path-tag", true, "ask forwarders to tell the path of each packet")
	f.replicas.add(c)
	addTransport(c, &f.transport)
	fl.StringVar(&f.stats, "stats", "", "write the summary as JSON to `FILE` (-: standard error)")
	fl.StringVar(&f.trace, "trace", "", "write one JSON line per event to `FILE`")
	fl.StringVar(&f.logCwnd, "log-cwnd", "", "log the window to `FILE`, as ndncatchunks")
	fl.StringVar(&f.logRTT, "log-rtt", "", "log round-trip times to `FILE`, as ndncatchunks")
	fl.StringVar(&f.progress, "progress", "auto", "`auto|always|never`; auto: on a terminal")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no summary, no progress")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print the summary also when standard error is not a terminal")
	completeWith(c, "pipeline-type", reg.Names())
	completeWith(c, "progress", progressChoices)
	return c
}

// maxPackets is the largest window that flags may ask for.
const maxPackets = 1 << 20

var progressChoices = []string{"auto", "always", "never"}

// completeWith offers choices for a flag in shell completion.
func completeWith(c *cobra.Command, flag string, choices []string) {
	// It fails only for a flag that does not exist, or was registered before.
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// interestRoom is what an Interest needs beside the name that cat is given: the
// components that tell version and segment, and its other fields.
const interestRoom = 200

// plan checks the flags.
func (f *catFlags) plan(name string, reg *cc.Registry) (*catPlan, error) {
	n, err := ndn.ParseName(name)
	if err != nil {
		return nil, err
	}
	if len(n) == 0 {
		return nil, errors.New("the name is empty")
	}
	if len(n) > ndn.MaxPacketSize-interestRoom {
		return nil, fmt.Errorf("the name has %d bytes, which leaves no room for it in a packet", len(n))
	}
	if err := checkLength(n); err != nil {
		return nil, err
	}
	p := &catPlan{fetch: consumer.DefaultConfig(n)}
	cfg := &p.fetch
	cfg.NoDiscovery, cfg.Fresh, cfg.IgnoreMarks, cfg.PathTags = f.noDiscovery, f.fresh, f.ignoreMarks, f.pathTag
	cfg.Retries = f.retries
	cfg.Seed = rand.Uint64()
	switch {
	case f.retries < -1:
		return nil, fmt.Errorf("--retries %d: want -1 or more", f.retries)
	case f.lifetime <= 0 || f.lifetime > int(time.Hour/time.Millisecond):
		return nil, fmt.Errorf("--lifetime %d: want 1 to %d ms", f.lifetime, time.Hour/time.Millisecond)
	case f.byteRng != "" && f.segments != "":
		return nil, errors.New("--range and --segments exclude each other")
	case f.resume && (f.output == "" || f.output == "-"):
		return nil, errors.New("--resume needs -o FILE")
	case !(f.pipelineSize >= 1 && f.pipelineSize <= maxPackets): // NaN, too
		return nil, fmt.Errorf("--pipeline-size %v: want 1 to %d", f.pipelineSize, maxPackets)
	case f.maxCwnd != 0 && !(f.maxCwnd >= 1 && f.maxCwnd <= maxPackets):
		return nil, fmt.Errorf("--max-cwnd %v: want 1 to %d, or 0 for no bound", f.maxCwnd, maxPackets)
	case !(f.initCwnd >= 0 && f.initCwnd <= maxPackets && f.initSsthresh >= 0 && f.initSsthresh <= maxPackets):
		return nil, fmt.Errorf("--init-cwnd %v, --init-ssthresh %v: want 0 to %d", f.initCwnd, f.initSsthresh, maxPackets)
	case !slices.Contains(progressChoices, f.progress):
		return nil, fmt.Errorf("--progress %q: choose one of %s", f.progress, strings.Join(progressChoices, ", "))
	}
	cfg.Lifetime = time.Duration(f.lifetime) * time.Millisecond
	if f.hopByHop {
		cfg.HopByHop()
	}
	if err := f.planVerify(p); err != nil {
		return nil, err
	}
	if f.byteRng != "" {
		if cfg.Range, err = consumer.ParseByteRange(f.byteRng); err != nil {
			return nil, fmt.Errorf("--range: %w", err)
		}
	}
	if f.segments != "" {
		if cfg.Range, err = consumer.ParseSegmentRange(f.segments); err != nil {
			return nil, fmt.Errorf("--segments: %w", err)
		}
	}
	if err := f.checkFiles(); err != nil {
		return nil, err
	}
	if f.sha256 != "" {
		if p.want, err = hex.DecodeString(f.sha256); err != nil || len(p.want) != sha256.Size {
			return nil, fmt.Errorf("--sha256 %q: want %d hexadecimal digits", f.sha256, 2*sha256.Size)
		}
	}
	if cfg.Pacing, err = parseRate("--pacing", f.pacing); err != nil {
		return nil, err
	}
	if cfg.MaxRate, err = parseRate("--max-rate", f.maxRate); err != nil {
		return nil, err
	}
	options, err := pipelineOptions(f.options)
	if err != nil {
		return nil, err
	}
	p.newController = func() (cc.Controller, error) {
		return reg.New(f.pipeline, cc.Params{
			InitCwnd: f.initCwnd, InitSsthresh: f.initSsthresh, Window: f.pipelineSize,
			MaxRate: cfg.MaxRate, MaxCwnd: f.maxCwnd, Seed: rand.Uint64(),
			PathMayChange: f.replicas.switches(), Options: options,
		})
	}
	if f.wantsTree() {
		if err := f.checkTree(); err != nil {
			return nil, err
		}
	}
	if err := f.replicas.plan(cfg, p.newController); err != nil {
		return nil, err
	}
	p.controller, err = p.newController()
	return p, err
}

// checkFiles refuses flags that name one file twice: what one wrote would be lost.
func (f *catFlags) checkFiles() error {
	type use struct{ flag, path string }
	uses := []use{{"--trace", f.trace}, {"--log-cwnd", f.logCwnd}, {"--log-rtt", f.logRTT}}
	if f.stats != "-" {
		uses = append(uses, use{"--stats", f.stats})
	}
	if f.output != "" && f.output != "-" {
		uses = append(uses, use{"-o", f.output}, use{"-o", f.output + ".part"}, use{"-o", f.output + ".part.journal"})
	}
	for i, a := range uses {
		for _, b := range uses[:i] {
			if a.path != "" && b.path != "" && sameFile(a.path, b.path) {
				return fmt.Errorf("%s and %s would both write %s; name another file", b.flag, a.flag, a.path)
			}
		}
	}
	return nil
}

// sameFile reports whether what is written to two paths goes to one file. Devices
// and pipes may be named twice.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	if errX == nil || errY == nil {
		return false
	}
	a, errX = filepath.Abs(a)
	b, errY = filepath.Abs(b)
	return errX == nil && errY == nil && a == b
}

// parseRate reads 100mbit and the like (tc's bit units, 1 kbit = 1000 bit) as
// bytes per second; an empty string is 0.
func parseRate(flag, s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	num, unit := strings.ToLower(s), 1.0
	for _, u := range []struct {
		suffix string
		bits   float64
	}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}} {
		if rest, ok := strings.CutSuffix(num, u.suffix); ok {
			num, unit = rest, u.bits
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if err != nil || !(v > 0) || v*unit > 1e15 {
		return 0, fmt.Errorf("%s %q is not a rate: want a number with bit, kbit, mbit or gbit", flag, s)
	}
	return v * unit / 8, nil
}

func runCat(ctx context.Context, e *env, f *catFlags, p *catPlan) (err error) {
	// A reader that goes away is an error of the write, not the end of the
	// process.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)

	if err := checkStats(f); err != nil {
		return err
	}
	sum := f.stats != "" || p.want != nil || f.verbose
	var prefix hash.Hash
	if sum || f.resume { // on resuming, the producer may turn out to state a hash
		prefix = sha256.New()
	}
	target, err := openTarget(ctx, e, f, p, prefix)
	if err != nil {
		return catError(ctx, f, err)
	}
	tracer, closeTrace, err := openTrace(f)
	if err != nil {
		return errors.Join(err, target.Abort(err))
	}
	tr, redial, err := catDial(f.transport)
	if err != nil {
		return errors.Join(err, target.Abort(err), closeTrace())
	}
	opt := run.Options{
		Transport: tr, Redial: redial, Fetch: p.fetch, Controller: p.controller,
		Trust: p.trust, Target: target, Output: output.Config{Verify: p.verify, Sum: sum, Want: p.want}, Prefix: prefix,
	}
	if tracer != nil {
		opt.Tracer = tracer
	}
	bar := newCatProgress(e, f)
	if bar != nil {
		opt.Progress = bar.update
	}
	opt.Connection = (&catOutage{e: e, f: f, bar: bar}).told
	res, err := run.Run(ctx, opt)
	bar.finish(err == nil)
	if e := closeTrace(); e != nil && err == nil {
		err = e
	}
	s := summarise(f, p, &res)
	if e := writeStats(e, f, s); e != nil && err == nil {
		err = e
	}
	if err == nil && !f.quiet && (f.verbose || isTerminal(e.stderr)) {
		fmt.Fprintln(e.stderr, s.line())
	}
	if err == nil && !f.quiet && tree.IsListing(res.Object.Name) && !tree.IsListing(p.fetch.Name) {
		fmt.Fprintf(e.stderr, "%s is a directory, and this is its listing; its files come with: ndnpop cat '%s' -o DIR/\n", p.fetch.Name, p.fetch.Name)
	}
	return catError(ctx, f, err)
}

// catDial connects to the local forwarder, and says how to do so again, also when
// it could not.
func catDial(transport string) (face.Server, func() (face.Server, error), error) {
	uri, open, err := dialer(transport)
	if err != nil {
		return nil, nil, err
	}
	tr, err := open()
	if err != nil {
		return nil, open, unreachable(uri, err)
	}
	return tr, open, nil
}

// openTarget opens the output: a file through its part file, or something
// that is written straight.
func openTarget(ctx context.Context, e *env, f *catFlags, p *catPlan, prefix hash.Hash) (output.Target, error) {
	if f.output == "" || f.output == "-" {
		return output.NewStream(e.stdout, "standard output"), nil
	}
	rng := p.fetch.Range.String() + p.checked
	if fi, err := os.Stat(f.output); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
		w, err := os.OpenFile(f.output, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return output.NewStream(w, f.output), nil
	}
	path, err := followLinks(f.output)
	if err != nil {
		return nil, err
	}
	f.output = path
	if f.resume {
		file, err := output.ResumeFile(ctx, f.output, rng, prefix)
		if err != nil {
			return nil, err
		}
		if n := file.Lost(); n > 0 && !f.quiet {
			fmt.Fprintf(e.stderr, "%s.part has lost %d bytes, as after a power failure; they are fetched again\n", f.output, n)
		}
		return file, nil
	}
	return output.CreateFile(f.output, rng)
}

// followLinks is where a path leads whose last element may be a symbolic link:
// what is written there takes the place of the file, and the link stays.
func followLinks(path string) (string, error) {
	for range 40 { // as many as Linux follows
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // it is none
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(path)
			to = dir + to
		}
		// Not cleaned before: after a link to a directory, ".." is where that lies.
		dir, file := filepath.Split(to)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", fmt.Errorf("%s is a link to %s: %w", path, to, err)
		}
		path = filepath.Join(dir, file)
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

// openTrace opens the logs that are wanted; the Trace is nil if none is.
func openTrace(f *catFlags) (*run.Trace, func() error, error) {
	var files []*os.File
	var w [3]io.Writer
	closeAll := func() error {
		var err error
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for i, path := range []string{f.trace, f.logCwnd, f.logRTT} {
		if path == "" {
			continue
		}
		file, err := os.Create(path)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		files = append(files, file)
		w[i] = file
	}
	if len(files) == 0 {
		return nil, closeAll, nil
	}
	t := run.NewTrace(w[0], w[1], w[2])
	return t, func() error { return errors.Join(t.Close(), closeAll()) }, nil
}

// catError gives an error its exit code and, where it helps, what to do.
func catError(ctx context.Context, f *catFlags, err error) error {
	var coded *codedError
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		if f.wantsTree() {
			return withCode(exitInterrupted, errors.New("interrupted; add --resume to go on"))
		}
		if f.resumable() {
			return withCode(exitInterrupted, fmt.Errorf("interrupted; add --resume to go on from %s.part", f.output))
		}
		return withCode(exitInterrupted, errors.New("interrupted"))
	case errors.Is(err, run.ErrTransport) && errors.Is(err, face.ErrRefused):
		uri, _, _ := dialer(f.transport) // it was dialled
		return unreachable(uri, err)
	case errors.Is(err, run.ErrTransport):
		return withCode(exitGaveUp, fmt.Errorf("%w%s", err, resumeHint(f)))
	case errors.Is(err, output.ErrVerify):
		return withCode(exitVerify, err)
	case errors.Is(err, consumer.ErrNoContent):
		return withCode(exitNoContent, err)
	case errors.Is(err, consumer.ErrNoRoute):
		return withCode(exitGaveUp, fmt.Errorf("%w: is the producer running, and its prefix registered?", err))
	case errors.Is(err, consumer.ErrUnreachable):
		return withCode(exitGaveUp, fmt.Errorf("%w; -r -1 never gives up%s", err, resumeHint(f)))
	}
	return err
}

// resumable reports whether --resume would find something to go on with: what has got
// nothing leaves nothing.
func (f *catFlags) resumable() bool {
	if f.wantsTree() {
		return true
	}
	_, err := os.Stat(f.output + ".part.journal")
	return f.output != "" && err == nil
}

func resumeHint(f *catFlags) string {
	if !f.resumable() {
		return ""
	}
	return "; --resume goes on later"
}
