package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/producer/ping"
	"ndnpop/producer/serve"
	"ndnpop/producer/sign"
)

func newPingCmd(e *env) *cobra.Command {
	var (
		o                    ping.Options
		transport            string
		interval, timeout    int
		quiet, withTimestamp bool
	)
	c := &cobra.Command{
		Use:   "ping PREFIX",
		Short: "Measure the round trip to a ping server",
		Long: `Asks for PREFIX/ping/<number> at an interval and prints the round-trip times and
the losses. It works with "ndnpop pingserver", ndnpingserver and ndnd's.

Options of ndnping keep their letters. The exit code is 0 when at least one
ping was answered and 5 when none was.`,
		Example: `  ndnpop ping /cdn
  ndnpop ping /cdn -c 5 -i 200`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(err error) error {
				return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
			}
			var err error
			if o.Prefix, err = ndn.ParseName(args[0]); err != nil {
				return usage(err)
			}
			switch {
			case interval < 1:
				return usage(errors.New("--interval: the shortest is 1 ms"))
			case timeout < 1:
				return usage(errors.New("--timeout: the shortest is 1 ms"))
			case c.Flags().Changed("count") && o.Count == 0:
				return usage(errors.New("--count: it should be 1 or more"))
			case strings.ContainsFunc(o.Identifier, notAlphanumeric):
				return usage(errors.New("--identifier: letters and digits only"))
			}
			o.Interval, o.Timeout = time.Duration(interval)*time.Millisecond, time.Duration(timeout)*time.Millisecond
			o.Seed = rand.Uint64()
			if !c.Flags().Changed("start") {
				o.Start = rand.Uint64()
			}
			return runPing(c.Context(), e, transport, o, logger{e.stdout, quiet, withTimestamp})
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.Uint64VarP(&o.Count, "count", "c", 0, "pings to send (default: no end)")
	fl.IntVarP(&interval, "interval", "i", 1000, "time between pings in `ms`")
	fl.IntVarP(&timeout, "timeout", "o", 4000, "time to wait for an answer in `ms`")
	fl.Uint64VarP(&o.Start, "start", "n", 0, "the first `number` (default: random); it grows by 1 with each ping")
	fl.StringVarP(&o.Identifier, "identifier", "p", "", "a component before the number, to tell clients apart")
	fl.BoolVarP(&o.AllowStale, "cache", "a", false, "let caches answer with Data that is not fresh")
	fl.BoolVarP(&withTimestamp, "timestamp", "t", false, "print the time with each line")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print the summary only")
	addTransport(c, &transport)
	return c
}

func notAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// logger prints one line per ping.
type logger struct {
	w         io.Writer
	quiet     bool
	timestamp bool
}

func (l *logger) printf(format string, args ...any) {
	if l.quiet {
		return
	}
	if l.timestamp {
		fmt.Fprintf(l.w, "%s - ", time.Now().UTC().Format("20060102T150405.000000"))
	}
	fmt.Fprintf(l.w, format+"\n", args...)
}

func runPing(ctx context.Context, e *env, transport string, o ping.Options, log logger) error {
	uri, open, err := dialer(transport)
	if err != nil {
		return err
	}
	run, finish := context.WithCancel(ctx)
	defer finish()
	ready := make(chan struct{})
	report := &reporter{e: e, uri: uri, ready: func() { close(ready) }}
	app := serve.New(serve.Config{Dial: open, Report: report.report})
	// All that is printed before the end is by the App's goroutine.
	out := &lastingError{w: e.stdout, failed: finish}
	log.w = out
	client := &finishing{finish: finish}
	c := ping.NewClient(o, app, func(r ping.Result) {
		switch r.Outcome {
		case ping.Answered:
			log.printf("content from %s: seq=%d time=%s ms", o.Prefix, r.Number, milliseconds(r.RTT))
		case ping.Nacked:
			log.printf("nack from %s: seq=%d time=%s ms reason=%s", o.Prefix, r.Number, milliseconds(r.RTT), r.Reason)
		case ping.Refused:
			log.printf("nack from %s: seq=%d time=%s ms reason=application (is it a ping server?)", o.Prefix, r.Number, milliseconds(r.RTT))
		case ping.TimedOut:
			log.printf("timeout from %s: seq=%d", o.Prefix, r.Number)
		}
	})
	client.pinger = c
	began := time.Now()
	go func() {
		select {
		case <-ready:
			app.Do(func(now ndn.Time) {
				fmt.Fprintf(out, "PING %s\n", o.Prefix)
				c.Begin(now)
			})
		case <-run.Done():
		}
	}()
	if err := app.Run(run, client); err != nil {
		return appError(uri, err)
	}
	app.Do(func(ndn.Time) { c.Stop() })
	s := c.Statistics()
	fmt.Fprintf(out, "\n--- %s ping statistics ---\n", o.Prefix)
	fmt.Fprintf(out, "%d packets transmitted, %d received, %d nacked, %.4g%% lost, %.4g%% nacked, time %s ms\n",
		s.Sent, s.Answered, s.Nacked, s.Lost(), s.NackedPercent(), milliseconds(time.Since(began)))
	if out.err != nil {
		return out.err
	}
	if s.Answered == 0 {
		return withCode(exitGaveUp, fmt.Errorf("no answer from %s", o.Prefix))
	}
	fmt.Fprintf(out, "rtt min/avg/max/mdev = %s/%s/%s/%s ms\n",
		milliseconds(s.Min), milliseconds(s.Avg), milliseconds(s.Max), milliseconds(s.Mdev))
	return out.err
}

// lastingError is a Writer that keeps its first error, and tells of it once.
type lastingError struct {
	w      io.Writer
	err    error
	failed func()
}

func (l *lastingError) Write(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.w.Write(p)
	if err != nil {
		l.err = err
		l.failed()
	}
	return n, err
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()*1e3) }

// pinger is a core that comes to an end of itself.
type pinger interface {
	serve.Handler
	Done() bool
}

// finishing calls finish when a core is done.
type finishing struct {
	pinger
	finish func()
}

func (f *finishing) Receive(now ndn.Time, p *ndn.Packet) error {
	err := f.pinger.Receive(now, p)
	f.check()
	return err
}

func (f *finishing) Tick(now ndn.Time) {
	f.pinger.Tick(now)
	f.check()
}

func (f *finishing) check() {
	if f.Done() {
		f.finish()
	}
}

func newPingServerCmd(e *env) *cobra.Command {
	var (
		o                    ping.ServerOptions
		transport            string
		fresh                int
		expose               bool
		quiet, withTimestamp bool
		signSpec, keychain   string
	)
	c := &cobra.Command{
		Use:   "pingserver PREFIX",
		Short: "Answer pings",
		Long: `Answers whatever is asked for under PREFIX/ping, until stopped: pings of "ndnpop
ping", ndnping and ndnd's ping.

Options of ndnpingserver keep their letters.`,
		Example: `  ndnpop pingserver /cdn
  ndnpop pingserver /cdn -s 8000 -q`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			usage := func(err error) error {
				return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
			}
			var err error
			if o.Prefix, err = ndn.ParseName(args[0]); err != nil {
				return usage(err)
			}
			if err := checkServed(o.Prefix); err != nil {
				return usage(err)
			}
			if fresh < 0 {
				return usage(errors.New("--freshness: it should be 0 ms or more"))
			}
			o.Freshness = time.Duration(fresh) * time.Millisecond
			if _, err := ping.NewServer(o, nil, nil); err != nil {
				return usage(fmt.Errorf("--size: %w", err))
			}
			origin := mgmt.OriginApp
			if expose {
				origin = mgmt.OriginClient
			}
			signer, err := sign.Open(signSpec, keychain)
			if err != nil {
				return usage(fmt.Errorf("--sign: %w", err))
			}
			if signSpec != "digest" && commandSigner(signer) == nil {
				return usage(fmt.Errorf("--sign %s: it should be digest or key:NAME", signSpec))
			}
			return runPingServer(c.Context(), e, transport, origin, signer, o, logger{e.stdout, quiet, withTimestamp})
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.IntVarP(&fresh, "freshness", "f", 1000, "how long an answer is fresh, in `ms`")
	fl.Uint64VarP(&o.Limit, "satisfy", "p", 0, "pings to answer before it ends (0: no end)")
	fl.IntVarP(&o.Size, "size", "s", 0, "content of an answer in `bytes`")
	fl.BoolVar(&expose, "expose", false, "let the forwarder announce the prefix to its routing daemon")
	fl.BoolVarP(&withTimestamp, "timestamp", "t", false, "print the time with each line")
	fl.BoolVarP(&quiet, "quiet", "q", false, "print no line for each ping")
	fl.StringVar(&signSpec, "sign", "digest", "how to sign the registration of the prefix: `digest|key:NAME`")
	fl.StringVar(&keychain, "keychain", "", "`directory` of the keychain, also as dir:///path (default ~/.ndn/keys)")
	addTransport(c, &transport)
	return c
}

func runPingServer(ctx context.Context, e *env, transport string, origin uint64, signer ndn.Signer, o ping.ServerOptions, log logger) error {
	// Whoever reads of the pings may go away; they are answered all the same.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)

	uri, open, err := dialer(transport)
	if err != nil {
		return err
	}
	run, finish := context.WithCancel(ctx)
	defer finish()
	report := &reporter{e: e, uri: uri, quiet: log.quiet, ready: func() {
		fmt.Fprintf(e.stdout, "PING SERVER %s\n", o.Prefix)
	}}
	app := serve.New(serve.Config{
		Dial: open, Prefixes: []ndn.Name{ping.Name(o.Prefix)}, Origin: origin,
		Signer: commandSigner(signer), Report: report.report,
	})
	s, err := ping.NewServer(o, app, func(name ndn.Name) {
		if last, ok := name.At(-1); ok && !log.quiet {
			seq := last.String()
			if n, ok := last.NumberAs(ndn.TypeSequenceNum); ok { // ndnd's
				seq = strconv.FormatUint(n, 10)
			}
			log.printf("interest received: seq=%s", seq)
		}
	})
	if err != nil {
		return err
	}
	h := serve.NewPackets(&finishing{s, finish}, app)
	if key, ok := signer.(*sign.Key); ok {
		chain := key.Chain()
		for i := range chain {
			h.Add(&chain[i].Data, chain[i].Key.Len())
		}
	}
	if err := app.Run(run, h); err != nil {
		return appError(uri, err)
	}
	fmt.Fprintf(e.stdout, "\n--- %s ping server statistics ---\n%d packets processed\n", o.Prefix, s.Answered())
	if ctx.Err() == nil {
		return nil
	}
	return stopped(ctx)
}
