package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/consumer/tree"
	"ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/ndn/certfile"
	"ndnpop/producer"
	"ndnpop/producer/serve"
	"ndnpop/producer/sign"
	"ndnpop/producer/store"
)

// putFlags are the flags of put as given.
type putFlags struct {
	transport    string
	size         int
	freshness    int
	metaFresh    int
	sign         string
	manifest     string
	keychain     string
	version      uint64
	expose       bool
	announce     bool
	quiet        bool
	verbose      bool
	printVersion bool
}

// putPlan is what the flags mean.
type putPlan struct {
	prefix ndn.Name
	signer ndn.Signer
	certs  []certfile.Certificate // served along, for who verifies
	opts   store.Options
	config producer.Config
	origin uint64
	// announce makes a prefix announcement; nil without.
	announce func(now time.Time) ([]byte, error)
}

func newPutCmd(e *env) *cobra.Command {
	f := &putFlags{}
	c := &cobra.Command{
		Use:     "put NAME [PATH or -]",
		Aliases: []string{"putchunks"},
		Short:   "Publish a file, a directory tree or standard input",
		Long: `Publishes the file or directory tree at PATH, or standard input, under NAME and
serves it until stopped. Nothing is read or signed before it is asked for.

A file has a version that tells its modification time and segment size; when it
changes, the next consumer finds a new version. NAME may end with a version
(v=N), as with --version N. The files of a directory have the names of their
paths, NAME/dir/file; NAME/dir/32=ls lists a directory. Standard input is
spooled to a temporary file, in $TMPDIR, and served while it comes.

With --sign key:NAME the key also signs the registration of the prefix at the
forwarder. The certificates that consumers need to verify (cat --verify) are
served as well, under their own names, and a manifest: lists of the segments'
digests, one signature for thousands of segments, which spares cat the
work of verifying each. With --manifest only, the segments themselves carry
digests alone: that spares put the work of signing each, and consumers that do
not know manifests can no longer tell who made them.

With --announce the Data that answer Interests for discovery carry an announcement
of NAME, from which forwarders with the strategy self-learning learn the way here
without routing.

Options of ndnputchunks keep their letters.`,
		Example: `  ndnpop put /cdn/video/clip.mp4 clip.mp4
  ndnpop put /cdn/site public/
  tar c photos | ndnpop put /alice/photos.tar -
  ndnpop put /alice/doc doc.pdf --sign key:/alice --keychain dir:///home/alice/keys`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.plan(args[0], c.Flags().Changed("size"))
			switch {
			case errors.Is(err, sign.ErrKey):
				return err
			case err != nil:
				return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
			}
			path := "-"
			if len(args) == 2 {
				path = args[1]
			}
			return runPut(c.Context(), e, f, p, path)
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.IntVarP(&f.size, "size", "s", defaultSegment, "content of a segment in `bytes`")
	fl.IntVarP(&f.freshness, "freshness", "f", int(producer.DefaultFreshness/time.Millisecond), "how long segments are fresh, in `ms`")
	fl.IntVar(&f.metaFresh, "metadata-freshness", int(producer.DefaultMetadataFreshness/time.Millisecond),
		"how long caches may hide a new version, in `ms`")
	fl.StringVarP(&f.sign, "sign", "S", "digest", "signature: `digest|null|hmac:FILE|key:NAME`; FILE holds a shared key, NAME is a key or identity in the keychain")
	fl.StringVar(&f.manifest, "manifest", "also", "with --sign key:NAME, what the key signs: `also|only|none`: manifests besides segments, manifests only, or segments only")
	fl.StringVar(&f.keychain, "keychain", "", "`directory` of the keychain, also as dir:///path (default ~/.ndn/keys); see ndnpop key")
	fl.Uint64Var(&f.version, "version", 0, "the content's version `N`; replicas of one object need the same")
	fl.BoolVar(&f.expose, "expose", false, "let the forwarder announce the prefix to its routing daemon")
	fl.BoolVar(&f.announce, "announce", false, "let forwarders learn the way here (strategy self-learning) from an announcement of the prefix, signed as the content")
	fl.BoolVarP(&f.printVersion, "print-data-version", "p", false, "print the versioned name to standard output")
	addTransport(c, &f.transport)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print errors only")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print every Interest")
	completeWith(c, "sign", []string{"digest", "null", "hmac:", "key:"})
	completeWith(c, "manifest", manifestChoices)
	return c
}

var manifestChoices = []string{"also", "only", "none"}

// defaultSegment is the default content of a segment, in bytes.
const defaultSegment = 8000

// announcedFor is the life of a route that is learnt from an announcement;
// forwarders make it shorter.
const announcedFor = time.Hour

// An announcement may be taken up for a day, also by those whose clocks are
// behind; put makes a new one in time.
const (
	announcementValid = 24 * time.Hour
	announcementEarly = time.Hour
	announcementRenew = announcementValid / 2
)

// announcementHeader is the type and length of an announcement in a link
// header, in bytes, and by how much ECDSA signatures differ in length.
const announcementHeader = 3 + 3 + 4

// plan checks the flags. With the default size, a long name makes segments
// smaller instead of failing.
func (f *putFlags) plan(uri string, sized bool) (*putPlan, error) {
	name, err := ndn.ParseName(uri)
	if err != nil {
		return nil, err
	}
	if last, ok := name.At(-1); ok {
		if v, ok := last.NumberAs(ndn.TypeVersion); ok {
			if f.version != 0 && f.version != v {
				return nil, fmt.Errorf("the name says version %d and --version %d", v, f.version)
			}
			f.version, name = v, name.Prefix(-1)
		}
	}
	if err := producer.CheckPrefix(name); err != nil {
		return nil, err
	}
	if err := checkServed(name); err != nil {
		return nil, err
	}
	if f.freshness < 0 || f.metaFresh < 0 {
		return nil, errors.New("a freshness is 0 ms or more")
	}
	p := &putPlan{prefix: name, origin: mgmt.OriginApp}
	if f.expose {
		p.origin = mgmt.OriginClient
	}
	if p.signer, err = sign.Open(f.sign, f.keychain); err != nil {
		return nil, fmt.Errorf("--sign: %w", err)
	}
	key, byKey := p.signer.(*sign.Key)
	if byKey {
		p.certs = key.Chain()
	}
	switch {
	case !slices.Contains(manifestChoices, f.manifest):
		return nil, fmt.Errorf("--manifest %q: choose one of %s", f.manifest, strings.Join(manifestChoices, ", "))
	case f.manifest == "only" && !byKey:
		return nil, errors.New("--manifest only needs --sign key:NAME")
	}
	room, err := producer.MaxSegmentSize(name, p.signer)
	if err != nil {
		return nil, fmt.Errorf("--sign: %w", err)
	}
	var announcement []byte
	if f.announce {
		p.announce = func(now time.Time) ([]byte, error) {
			valid := producer.Validity{From: now.Add(-announcementEarly), To: now.Add(announcementValid)}
			return producer.NewAnnouncement(name, uint64(now.UnixMicro()), announcedFor, valid, p.signer)
		}
		if announcement, err = p.announce(time.Now()); err != nil {
			return nil, fmt.Errorf("--announce: %w", err)
		}
		room -= len(announcement) + announcementHeader
	}
	p.opts = store.Options{SegmentSize: f.size, Room: room, Version: f.version}
	if !sized && room > 0 {
		p.opts.SegmentSize = min(f.size, room)
	}
	if err := p.opts.Check(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	p.config = producer.Config{
		Prefix: name, Signer: p.signer,
		Freshness: freshness(f.freshness), MetadataFreshness: freshness(f.metaFresh),
		Manifest: byKey && f.manifest != "none", Announcement: announcement,
	}
	if f.manifest == "only" {
		p.config.Segments = ndn.DigestSigner{}
	}
	return p, nil
}

// keyPrefixes are the names under which consumers look for the certificates:
// what the packets name, and then what each certificate names.
func (p *putPlan) keyPrefixes() (names []ndn.Name) {
	for i := range p.certs {
		n := p.certs[i].Data.Name
		if i > 0 {
			n = certfile.Locator(&p.certs[i-1].Data)
		}
		if !n.HasPrefix(p.prefix) && !slices.ContainsFunc(names, n.Equal) {
			names = append(names, n)
		}
	}
	return names
}

// freshness turns a flag into producer.Config's convention, where zero is the
// default.
func freshness(ms int) time.Duration {
	if ms == 0 {
		return -1
	}
	return time.Duration(ms) * time.Millisecond
}

// source is the store of what put publishes.
type putSource struct {
	producer.Store
	close func() error
	// fill, if set, has to run beside the App; it calls its argument when more
	// content is there.
	fill func(grown func()) error
	what string // for people
}

// openSource opens what lies at path.
func openSource(e *env, path string, o store.Options) (*putSource, error) {
	if path == "-" {
		return openStdin(e, o)
	}
	fi, err := os.Stat(path)
	if err != nil {
		return nil, cannot(err)
	}
	switch {
	case fi.Mode().IsRegular():
		// What cannot be read should be known now, and not when someone asks.
		f, err := os.Open(path)
		if err != nil {
			return nil, cannot(err)
		}
		f.Close()
		s, err := store.NewFile(path, o)
		if err != nil {
			return nil, err
		}
		return &putSource{Store: s, close: s.Close, what: path}, nil
	case fi.IsDir():
		o.LeftOut = leftOut(e.stderr, path)
		s, err := store.NewDir(path, o)
		if err != nil {
			return nil, cannot(err)
		}
		return &putSource{Store: s, close: s.Close, what: "the tree " + path}, nil
	}
	if fi.Mode()&fs.ModeNamedPipe != 0 {
		return openStream(&pipe{path: path}, path, o)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cannot(err)
	}
	return openStream(f, path, o)
}

// leftOut names what a published tree leaves out, each once, as far as there are
// not too many.
func leftOut(w io.Writer, tree string) func(string, error) {
	const most = 100
	told := map[string]bool{}
	return func(path string, why error) {
		switch {
		case told[path] || len(told) > most:
			return
		case len(told) == most:
			fmt.Fprintln(w, "more is not published; it is not named any more")
		default:
			fmt.Fprintf(w, "not published: %s: %v\n", safe(filepath.Join(tree, path)), why)
		}
		told[path] = true
	}
}

// pipe opens a named pipe with the first Read: opening waits for somebody who
// writes, for ever perhaps, and cannot be cut short.
type pipe struct {
	path string
	f    *os.File
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (n int, err error) {
	if p.f == nil {
		if p.f, err = os.Open(p.path); err != nil {
			return 0, err
		}
	}
	return p.f.Read(b)
}

func cannot(err error) error { return fmt.Errorf("cannot publish that: %w", err) }

// openStdin serves a redirected file as a file, which needs no copy.
func openStdin(e *env, o store.Options) (*putSource, error) {
	if f, ok := e.stdin.(*os.File); ok {
		fi, err := f.Stat()
		if err == nil && fi.Mode().IsRegular() {
			if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == 0 {
				s, err := store.NewOpenFile(f, o)
				if err != nil {
					return nil, err
				}
				return &putSource{Store: s, close: s.Close, what: "standard input"}, nil
			}
		}
	}
	return openStream(e.stdin, "standard input", o)
}

func openStream(r io.Reader, what string, o store.Options) (*putSource, error) {
	s, err := store.NewSpool("", time.Now(), o)
	if err != nil {
		return nil, err
	}
	return &putSource{
		Store: s, what: what, close: s.Close,
		fill: func(grown func()) error {
			if err := s.Fill(r, grown); err != nil {
				return fmt.Errorf("reading %s: %w", what, err)
			}
			return nil
		},
	}, nil
}

func runPut(ctx context.Context, e *env, f *putFlags, p *putPlan, path string) error {
	// Whoever reads what it says may go away, and must not take the content along.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)

	uri, open, err := dialer(f.transport)
	if err != nil {
		return err
	}
	for i := range p.certs {
		warnInvalid(e.stderr, &p.certs[i])
	}
	src, err := openSource(e, path, p.opts)
	if err != nil {
		return err
	}
	report := &reporter{e: e, uri: uri, quiet: f.quiet}
	app := serve.New(serve.Config{
		Dial: open, Prefixes: append([]ndn.Name{p.prefix}, p.keyPrefixes()...), Origin: p.origin,
		Signer: commandSigner(p.signer), Report: report.report,
	})
	r, err := producer.New(p.config, src, app)
	if err != nil {
		return errors.Join(err, src.close())
	}
	// The store is the responder's from now on, except for this look.
	versioned, describe := describe(src, p)
	report.ready = func() {
		if f.printVersion {
			fmt.Fprintln(e.stdout, versioned)
		}
		if !f.quiet {
			fmt.Fprintf(e.stderr, "publishing %s as %s\n%s", src.what, versioned, describe)
			into := ""
			if tree.IsListing(versioned) {
				into = " -o DIR/"
			}
			fmt.Fprintf(e.stderr, "fetch it with: ndnpop cat '%s'%s\n", p.prefix, into)
		}
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if src.fill == nil {
		defer src.close()
	} else {
		// A read of standard input cannot be cut short: when the App is stopped
		// first, the goroutine and its file end with the process.
		go fill(app, r, src, report, cancel)
	}
	certs := serve.NewPackets(r, app)
	for i := range p.certs {
		certs.Add(&p.certs[i].Data, p.certs[i].Key.Len())
	}
	h := serve.Handler(certs)
	if f.verbose {
		h = &talkative{Handler: h, w: e.stderr}
	}
	if p.announce != nil {
		go renew(run, app, r, report, p.announce)
	}
	if err := app.Run(run, h); err != nil {
		return appError(uri, err)
	}
	if ctx.Err() == nil {
		return context.Cause(run) // of the input
	}
	if !f.quiet {
		fmt.Fprintln(e.stderr, putSummary(r.Counters(), app.Dropped()))
	}
	return stopped(ctx)
}

// renew replaces the announcement before its time runs out.
func renew(ctx context.Context, app *serve.App, r *producer.Responder, report *reporter, announce func(time.Time) ([]byte, error)) {
	t := time.NewTicker(announcementRenew)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			a, err := announce(now)
			if err != nil {
				report.report(serve.Event{Kind: serve.Unanswered, Err: fmt.Errorf("announcing: %w", err)})
				continue
			}
			app.Do(func(ndn.Time) { r.Announce(a) })
		}
	}
}

// fill feeds the store and wakes the responder.
func fill(app *serve.App, r *producer.Responder, src *putSource, report *reporter, cancel context.CancelCauseFunc) {
	err := src.fill(func() {
		app.Do(func(now ndn.Time) {
			if err := r.Grown(now); err != nil {
				report.report(serve.Event{Kind: serve.Unanswered, Err: err})
			}
		})
	})
	if err != nil {
		cancel(err)
	}
}

// describe says what is published: its versioned name, and a line on its
// size.
func describe(src *putSource, p *putPlan) (name ndn.Name, line string) {
	o, err := src.Latest(producer.Path{})
	if err != nil {
		return p.prefix, ""
	}
	name = p.prefix.Clone()
	listing := o.Attributes().Listing
	if listing {
		name = name.Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("ls")})
	}
	name = name.AppendNumber(ndn.TypeVersion, o.Version())
	n, final := o.Size()
	switch {
	case listing:
		line = fmt.Sprintf("the name is that of the listing; files are at %s/PATH\n", p.prefix)
	case final:
		line = fmt.Sprintf("%d bytes, segments of %d: %d\n", n, o.SegmentSize(), producer.SegmentCount(n, o.SegmentSize()))
	}
	return name, line
}

func putSummary(c producer.Counters, dropped uint64) string {
	s := fmt.Sprintf("served %d segments with %d bytes, %d times metadata", c.Segments, c.Bytes, c.Metadata)
	if c.Nacks > 0 {
		s += fmt.Sprintf("; %d Interests were for what does not exist", c.Nacks)
	}
	if n := c.Errors + c.Refused; n > 0 {
		s += fmt.Sprintf("; %d went unanswered", n)
	}
	if dropped > 0 {
		s += fmt.Sprintf("; %d answers were dropped, which the forwarder was too slow to take", dropped)
	}
	return s
}

// talkative prints the Interests that a responder gets.
type talkative struct {
	serve.Handler
	w io.Writer
}

func (t *talkative) Receive(now ndn.Time, p *ndn.Packet) error {
	if p.Kind == ndn.KindInterest {
		flags := ""
		if p.Interest.CanBePrefix {
			flags += " CanBePrefix"
		}
		if p.Interest.MustBeFresh {
			flags += " MustBeFresh"
		}
		fmt.Fprintf(t.w, "Interest %s%s\n", p.Interest.Name, flags)
	}
	return t.Handler.Receive(now, p)
}
