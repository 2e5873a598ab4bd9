package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/cmd/ndnpop/daemon"
	"ndnpop/strategy"
)

func newRunCmd(e *env) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "run [-c FILE]",
		Short: "Run a forwarder",
		Long: `Run a forwarder, in the foreground, until it is told to stop.

Without a file it listens on UDP and TCP port 6363 and on the Unix socket where
applications look for it, and serves the operator on 127.0.0.1:9363 (/healthz,
/readyz, /metrics). "ndnpop config" prints everything that a file can say.

SIGTERM and SIGINT let the queues empty and stop it; a second one ends it at once.
SIGHUP reads the file again and applies what has changed; a file with errors
changes nothing.

Memory follows the content store: GOGC and GOMEMLIMIT of the environment are
obeyed, and without them the collector is set so that the process stays close
to what it uses.`,
		Example: `  ndnpop run
  ndnpop run -c /etc/ndnpop/ndnpop.toml`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runForwarder(cmd.Context(), e, file) },
	}
	c.Flags().StringVarP(&file, "config", "c", "", "configuration `FILE`")
	return c
}

func runForwarder(ctx context.Context, e *env, file string) error {
	// From here on a SIGHUP is a request; before, it would end the process. It
	// stays one, so that a late one does not make a failure of an orderly end.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	// Whoever reads the log may go away, and come back: that must not end what
	// it is about.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)

	c, err := loadConfig(file, e.strategies)
	if err != nil {
		return err
	}
	setMemory()
	log := daemon.NewQueuedLog(e.stderr, c.Log.Format)
	defer log.Close()
	d, err := daemon.Start(c, daemon.Options{Strategies: e.strategies, Log: log, Version: version})
	if err != nil {
		return err
	}
	tell := func(state string) {
		if err := daemon.Notify(state); err != nil {
			log.Logger().Warn().Err(err).Msg("not told")
		}
	}
	tell("READY=1")
	// The file is read beside: where it is may hang, and the end must not wait for it.
	asked, read := hup, make(chan reading, 1)
	for {
		select {
		case <-ctx.Done():
			tell("STOPPING=1")
			d.Stop()
			return nil
		case <-asked:
			tell("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic(), 10))
			asked = nil // until this one is done
			go func() { read <- readAgain(file, e.strategies) }()
		case r := <-read:
			reload(r, d, log, file)
			asked = hup
			tell("READY=1")
		}
	}
}

// reading is the file as it was read again.
type reading struct {
	c   *config.Config
	err error
}

// readAgain reads the file again. One without a single byte is what an editor or a
// copy leaves behind on a full disk, or for a moment: nobody means by it that all
// faces and routes shall go.
func readAgain(file string, set *strategy.Set) (r reading) {
	if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && fi.Size() == 0 {
		r.err = fmt.Errorf("%s is empty: restart to go back to the defaults", file)
		return r
	}
	r.c, r.err = loadConfig(file, set)
	return r
}

// reload applies the file again.
func reload(r reading, d *daemon.Daemon, log *daemon.Log, file string) {
	l := log.Logger()
	if file == "" {
		l.Warn().Msg("nothing to reload: started without a configuration file")
		return
	}
	if err := r.err; err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			l.Error().Msg(line)
		}
		l.Error().Str("file", file).Msg("configuration not reloaded: the old one stays in force")
		return
	}
	restart := d.Reload(r.c)
	l.Info().Str("file", file).Msg("configuration reloaded")
	if len(restart) > 0 {
		l.Warn().Strs("keys", restart).Msg("changed keys that only a restart applies")
	}
}

// gcPercent lets the heap grow by a quarter before it is collected. What the
// forwarder holds (tables, content store) is long-lived and nothing is
// allocated per packet, so that collections are rare and the memory would
// otherwise only wait to double.
const gcPercent = 25

func setMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
