// Package cli is the ndnpop command: flags, configuration, logging, exit
// codes. Someone with a strategy of their own writes a main that calls Main
// with one more factory and has the whole binary.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
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
}

// Main runs the command line args (without the program's name) and returns
// the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := &env{stdin, stdout, stderr}
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
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
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	root.AddCommand(
		newVersionCmd(e),
	)
	return root
}

// usageArgs gives the errors of an argument check the exit code for wrong
// usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}
