package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/face"
	"ndnpop/face/dial"
	"ndnpop/mgmt"
	"ndnpop/ndn"
	"ndnpop/producer/serve"
	"ndnpop/producer/sign"
)

// What commands share that talk to the local forwarder through serve.App.

// addTransport adds --transport.
func addTransport(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "transport", "", "the local forwarder's `URI`, e.g. unix:///run/nfd/nfd.sock")
}

// dialer returns the function that connects to the local forwarder.
func dialer(transport string) (uri string, open func() (face.Server, error), err error) {
	uri, err = dial.Local(transport)
	if err != nil {
		return "", nil, err
	}
	if err := dial.Check(uri); err != nil {
		return "", nil, withCode(exitUsage, fmt.Errorf("no forwarder's URI: %w", err))
	}
	return uri, func() (face.Server, error) { return dial.Open(uri) }, nil
}

// What people are told of the connection to the forwarder.
func cutOff(uri string, err error) string {
	return fmt.Sprintf("the connection to the forwarder at %s ended (%v); trying to come back", uri, err)
}

const backAgain = "connected to the forwarder again"

// checkServed refuses names that are forwarders' own, as no application gets the
// Interests for them, and names that are too long.
func checkServed(name ndn.Name) error {
	for _, own := range []ndn.Name{mgmt.Localhost(), mgmt.Localhop()} {
		if name.HasPrefix(own) {
			return fmt.Errorf("%s is a name of the forwarder itself; choose one that is not below %s", name, own)
		}
	}
	return checkLength(name)
}

// checkLength refuses names that forwarders drop without a word once the
// components are added that lead to a segment: keyword, version and number, or
// the number alone where the name has a version.
func checkLength(name ndn.Name) error {
	n, added := name.Len(), 3
	if last, ok := name.At(n - 1); ok {
		if _, versioned := last.NumberAs(ndn.TypeVersion); versioned {
			added = 1
		}
	}
	if n+added > ndn.MaxComponents {
		return fmt.Errorf("the name has %d components, and %d are added to it; forwarders take at most %d", n, added, ndn.MaxComponents)
	}
	return nil
}

// appError gives an error of serve.App.Run its exit code, and says what to do.
func appError(uri string, err error) error {
	var status *mgmt.StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.Code == mgmt.StatusForbidden:
		return fmt.Errorf("%w: its policy does not let this application register the prefix; see [mgmt] of its configuration (NFD: authorizations of nfd.conf, privilege rib)", err)
	case errors.Is(err, serve.ErrRemote):
		return withCode(exitGaveUp, fmt.Errorf("%w; it has to allow that ([mgmt] localhop), or use its Unix socket, or TCP on the same host", err))
	case errors.Is(err, serve.ErrNoAnswer), errors.Is(err, serve.ErrNoManagement):
		return withCode(exitGaveUp, fmt.Errorf("%w; is the forwarder at %s overloaded, or something else?", err, uri))
	case errors.Is(err, serve.ErrUnreachable):
		return unreachable(uri, cause(err))
	}
	return err
}

// unreachable says why there is no connection to the forwarder.
func unreachable(uri string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return withCode(exitGaveUp, fmt.Errorf("this user may not use the forwarder at %s (%w)", uri, reason(err)))
	}
	return withCode(exitGaveUp, fmt.Errorf("no forwarder at %s (%w); start one with \"ndnpop run\", or name its socket with --transport or NDN_CLIENT_TRANSPORT", uri, reason(err)))
}

// reason is the system's own word for why something failed, if it has one:
// the rest is said already where this is used.
func reason(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// cause is what serve.ErrUnreachable wraps.
func cause(err error) error {
	if m, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range m.Unwrap() {
			if !errors.Is(e, serve.ErrUnreachable) {
				return e
			}
		}
	}
	return err
}

// stopped is how a command that runs until it is stopped ends: an interrupt
// from the keyboard is told to the shell, a termination is what was asked for.
func stopped(ctx context.Context) error {
	// signal.NotifyContext puts the signal's name into the cause.
	if c := context.Cause(ctx); c != nil && strings.HasPrefix(c.Error(), syscall.SIGINT.String()+" ") {
		return withCode(exitInterrupted, errors.New("interrupted"))
	}
	return nil
}

// commandSigner is what signs commands of an application that signs its content
// with s: a key proves who it is to a forwarder that asks; what proves less is
// no better than the digest, which it returns as nil.
func commandSigner(s ndn.Signer) ndn.Signer {
	if key, ok := s.(*sign.Key); ok {
		return key
	}
	return nil
}

// reporter tells on standard error what happens to an App. Errors of content
// come at most once a second.
type reporter struct {
	e     *env
	uri   string
	quiet bool
	ready func() // called once, when the App is first ready

	mu     sync.Mutex
	served bool
	lost   bool
	last   time.Time
	missed int
}

func (r *reporter) report(ev serve.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ev.Kind {
	case serve.Ready:
		if !r.served {
			r.served = true
			r.ready()
		} else if !r.quiet {
			fmt.Fprintln(r.e.stderr, backAgain)
		}
		r.lost = false
	case serve.Lost, serve.Failed:
		// One line for an outage, however often the attempts fail.
		if !r.lost && !r.quiet {
			fmt.Fprintln(r.e.stderr, cutOff(r.uri, ev.Err))
		}
		r.lost = true
	case serve.Unanswered:
		if time.Since(r.last) < time.Second {
			r.missed++
			return
		}
		r.last = time.Now()
		more := ""
		if r.missed > 0 {
			more = fmt.Sprintf(" (and %d more like it)", r.missed)
		}
		r.missed = 0
		fmt.Fprintf(r.e.stderr, "ndnpop: an Interest went unanswered: %v%s\n", ev.Err, more)
	}
}
