// Package cli is the ndnpop command: flags, configuration, logging, exit
// codes. Someone with a strategy of their own writes a main that calls Main
// with one more factory and has the whole binary:
//
//	func main() {
//		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr,
//			cli.Options{Strategies: []strategy.Factory{mine.Factory()}}))
//	}
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ndnpop/consumer/cc"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
)

// Exit codes, the same for every command.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoContent   = 3
	exitVerify      = 4
	exitGaveUp      = 5
	exitInterrupted = 130
)

// codedError is an error that chooses the exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// withCode gives err an exit code. A nil err stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// env is what a command may use of its surroundings.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	strategies     *strategy.Set
	pipelines      []cc.Factory // beside the built-in ones
}

// Options extend the command. The zero value is the command as it is.
type Options struct {
	// Strategies to choose from beside the built-in ones. One with the name
	// and version of another is an error.
	Strategies []strategy.Factory
	// Pipelines are congestion controls for cat -p beside the built-in ones. One
	// with the name of another is an error.
	Pipelines []cc.Factory
}

// Main runs the command line args (without the program's name) and returns
// the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, o Options) int {
	set, err := strategy.NewSet(append(strategies.Builtin(), o.Strategies...)...)
	if err != nil {
		fmt.Fprintf(stderr, "ndnpop: %v\n", err)
		return exitUsage
	}
	if _, err := cc.NewRegistry(append(cc.Builtin(), o.Pipelines...)...); err != nil {
		fmt.Fprintf(stderr, "ndnpop: %v\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks the command to end. Another one ends it, even when
	// it waits for something that never comes, like a reader of its output.
	defer context.AfterFunc(ctx, stop)()
	e := &env{stdin: stdin, stdout: stdout, stderr: stderr, strategies: set, pipelines: o.Pipelines}
	root := newRoot(e)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "ndnpop: %v\n", err)
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	return exitFailed
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:           "ndnpop",
		Short:         "A Named Data Networking forwarder for CDN overlays, with its tools",
		Example:       "  ndnpop demo\n  ndnpop run\n  ndnpop put /alice/doc doc.pdf\n  ndnpop cat /alice/doc -o doc.pdf",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if no := new(strconv.NumError); errors.As(err, &no) {
			why := "it should be a number"
			switch {
			case errors.Is(no.Err, strconv.ErrRange):
				why = "it is out of range"
			case no.Func == "ParseUint":
				why += " of 0 or more"
			}
			err = errors.New(strings.Replace(err.Error(), no.Error(), why, 1))
		}
		return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	root.AddCommand(
		newBenchCmd(e),
		bulk(newCatCmd(e)),
		newCheckCmd(e),
		newConfigCmd(e),
		newCtlCmd(e),
		newDemoCmd(e),
		newKeyCmd(e),
		newManCmd(e),
		newPingCmd(e),
		newPingServerCmd(e),
		bulk(newPutCmd(e)),
		bulk(newRunCmd(e)),
		newVersionCmd(e),
	)
	// cobra adds these two as the root is run; here, so that their help has an
	// example like all others'.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  ndnpop help cat"
			c.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return withCode(exitUsage, fmt.Errorf("there is no command %q; see ndnpop --help", strings.Join(args, " ")))
				}
				return nil
			}
		case "completion":
			c.Example = "  source <(ndnpop completion bash)"
			c.Args = usageArgs(cobra.NoArgs)
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Example = "  ndnpop completion " + shell.Name()
			}
		}
	}
	return root
}

// bulk is a command whose work is to move packets, many at a time.
func bulk(c *cobra.Command) *cobra.Command {
	c.PreRun = func(*cobra.Command, []string) { schedBatch() }
	return c
}

// usageArgs gives the errors of an argument check the exit code for wrong
// usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil {
			return nil
		}
		if !c.HasSubCommands() {
			// How many arguments there should be says less than which.
			err = fmt.Errorf("usage: %s, not %d arguments", strings.TrimSuffix(c.UseLine(), " [flags]"), len(args))
		}
		return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	}
}
