package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/named-data/ndnd/std/types/optional"
	"github.com/spf13/cobra"

	"ndnpop/face"
	"ndnpop/face/dial"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
	"ndnpop/ndn"
	"ndnpop/producer/sign"
)

// ctlFlags are the flags of all ctl commands.
type ctlFlags struct {
	e         *env
	transport string
	json      bool
	sign      string
	keychain  string
}

func newCtlCmd(e *env) *cobra.Command {
	f := &ctlFlags{e: e}
	c := &cobra.Command{
		Use:   "ctl",
		Short: "Manage a forwarder",
		Long: `Manages any forwarder that speaks the NFD management protocol: ndnpop, NFD, ndnd.

A FACE is the number of a face or the URI of its remote end.`,
		Example: `  ndnpop ctl status
  ndnpop ctl face create udp4://192.0.2.7:6363 --persistency permanent
  ndnpop ctl route add /cdn udp4://192.0.2.7:6363 --cost 10`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	fl := c.PersistentFlags()
	fl.StringVar(&f.transport, "transport", "", "the forwarder's `URI`, e.g. unix:///run/nfd/nfd.sock")
	fl.BoolVar(&f.json, "json", false, "print JSON")
	fl.StringVarP(&f.sign, "sign", "S", "digest", "how to sign commands: `digest|hmac:FILE|key:NAME`")
	fl.StringVar(&f.keychain, "keychain", "", "`directory` of the keychain, also as dir:///path (default ~/.ndn/keys); see ndnpop key")
	c.AddCommand(
		newCtlStatusCmd(f),
		group("face", "List and change faces", newFaceListCmd(f), newFaceCreateCmd(f), newFaceUpdateCmd(f), newFaceDestroyCmd(f)),
		group("route", "List and change routes", newRouteListCmd(f), newRouteAddCmd(f), newRouteRemoveCmd(f)),
		group("fib", "Look at the forwarding table", newFibListCmd(f)),
		group("strategy", "List and choose strategies", newStrategyListCmd(f), newStrategySetCmd(f), newStrategyUnsetCmd(f), newStrategyTraceCmd(f)),
		group("cs", "Look at and change the content store", newCsInfoCmd(f), newCsConfigCmd(f), newCsEraseCmd(f)),
		newCtlEventsCmd(f),
		newCtlNstCmd(f),
	)
	return c
}

// group is a command that only holds others. Its examples are theirs.
func group(use, short string, cmds ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(cmds...)
	var examples []string
	for _, sub := range cmds {
		examples = append(examples, sub.Example)
	}
	c.Example = strings.Join(examples, "\n")
	return c
}

// badUsage gives an error about an argument its exit code.
func badUsage(c *cobra.Command, err error) error {
	return withCode(exitUsage, fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
}

// session is a connection to the forwarder.
type session struct {
	*ctlFlags
	c   *client.Client
	ctx context.Context
	uri string
}

// with connects to the forwarder and runs do. Its errors get exit codes, and
// say what to do.
func (f *ctlFlags) with(c *cobra.Command, do func(s *session) error) error {
	uri, open, err := dialer(f.transport)
	if err != nil {
		return err
	}
	signer, err := sign.Open(f.sign, f.keychain)
	if err != nil {
		return badUsage(c, fmt.Errorf("--sign: %w", err))
	}
	tr, err := open()
	if err != nil {
		return unreachable(uri, err)
	}
	o := client.Options{Signer: signer}
	if key, ok := signer.(*sign.Key); ok {
		chain := key.Chain()
		for i := range chain {
			o.Certificates = append(o.Certificates, &chain[i].Data)
		}
	}
	cl := client.New(tr, o)
	defer cl.Close()
	return f.explain(uri, do(&session{f, cl, c.Context(), uri}))
}

// explain gives an error of an exchange its exit code and says what to do.
func (f *ctlFlags) explain(uri string, err error) error {
	var status *mgmt.StatusError
	switch {
	case errors.Is(err, context.Canceled):
		return withCode(exitInterrupted, errors.New("interrupted"))
	case errors.Is(err, client.ErrClosed) && errors.Is(err, face.ErrRefused):
		return unreachable(uri, err)
	case errors.Is(err, client.ErrClosed):
		return withCode(exitGaveUp, fmt.Errorf("%w; does it have as many connections as it may, or is something else than a forwarder at %s?", err, uri))
	case errors.Is(err, mgmt.ErrTimeout) && !local(uri):
		return withCode(exitGaveUp, fmt.Errorf("%w: forwarders are managed from their own host; use the Unix socket there, or TCP over loopback", err))
	case errors.Is(err, mgmt.ErrTimeout):
		return withCode(exitGaveUp, fmt.Errorf("%w; the forwarder at %s is overloaded, is none, or does not know the command", err, uri))
	case errors.Is(err, mgmt.ErrNack):
		return withCode(exitGaveUp, fmt.Errorf("%w: %s is not its local socket, or its management is off", err, uri))
	case errors.As(err, &status) && status.Code == mgmt.StatusForbidden:
		return fmt.Errorf("%w: its policy does not let you; sign with a key that it knows (--sign), or see [mgmt] of its configuration (NFD: authorizations in nfd.conf)", err)
	case errors.As(err, &status) && status.Code == mgmt.StatusNotImplemented:
		return fmt.Errorf("%w: this forwarder does not have it", err)
	}
	return err
}

// local reports whether a forwarder takes who comes by a URI for somebody on its
// own host. UDP and WebSocket never are that: addresses are forged, and pages of
// anybody's run in browsers.
func local(uri string) bool {
	scheme, rest, _ := strings.Cut(uri, "://")
	if !strings.HasPrefix(scheme, "tcp") {
		return scheme == "unix"
	}
	host, _, err := net.SplitHostPort(rest)
	if err != nil {
		host = strings.Trim(rest, "[]")
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// command sends a command and returns the body of its answer; an answer other
// than 200 is a *mgmt.StatusError.
func (s *session) command(module, verb string, p *mgmt.ControlParameters) (*mgmt.ControlParameters, error) {
	r, err := s.c.Command(s.ctx, module, verb, p)
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = &mgmt.ControlParameters{}
	}
	return r.Body, nil
}

// readDataset fetches and decodes a dataset.
func readDataset[T any](s *session, module, verb string, filter []byte, parse func([]byte) (T, error)) (T, error) {
	b, err := s.c.Dataset(s.ctx, module, verb, filter)
	if err != nil {
		var none T
		return none, err
	}
	return parse(b)
}

// errNoFace is the answer to a FACE that there is not.
func errNoFace(face string) error {
	return fmt.Errorf("face %s does not exist; \"ndnpop ctl face list\" shows those that do", face)
}

// findFace looks a FACE up: a number or a remote URI, as it may be given to
// faces/create.
func (s *session) findFace(arg string) (mgmt.FaceStatus, error) {
	var list []mgmt.FaceStatus
	if id, err := strconv.ParseUint(arg, 10, 64); err == nil {
		if list, err = s.queryFaces(mgmt.FaceQueryFilter{FaceID: optional.Some(id)}); err != nil {
			return mgmt.FaceStatus{}, err
		}
	} else if !strings.Contains(arg, "://") {
		return mgmt.FaceStatus{}, withCode(exitUsage, fmt.Errorf("%q is neither the number of a face nor a URI like udp4://192.0.2.7:6363", arg))
	} else if list, err = s.queryFaces(mgmt.FaceQueryFilter{URI: arg}); err != nil {
		return mgmt.FaceStatus{}, err
	} else if len(list) == 0 {
		for _, uri := range resolveURI(s.ctx, arg) {
			more, err := s.queryFaces(mgmt.FaceQueryFilter{URI: uri})
			if err != nil {
				return mgmt.FaceStatus{}, err
			}
			list = append(list, more...)
		}
	}
	switch {
	case len(list) == 0:
		return mgmt.FaceStatus{}, errNoFace(arg)
	case len(list) > 1:
		return mgmt.FaceStatus{}, fmt.Errorf("there are %d faces to %s; choose one by its number (\"ndnpop ctl face list\")", len(list), arg)
	}
	return list[0], nil
}

func (s *session) queryFaces(q mgmt.FaceQueryFilter) ([]mgmt.FaceStatus, error) {
	return readDataset(s, "faces", "query", q.AppendTo(nil), mgmt.ParseFaceStatuses)
}

// resolveURI returns the canonical URIs of what may be the same peers: with
// family, address and port, as forwarders list their faces.
func resolveURI(ctx context.Context, uri string) (uris []string) {
	scheme, rest, _ := strings.Cut(uri, "://")
	network, ok := map[string]string{"udp": "ip", "udp4": "ip4", "udp6": "ip6", "tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[scheme]
	if !ok {
		return nil
	}
	rest = strings.TrimSuffix(rest, "/")
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host, port = strings.Trim(rest, "[]"), dial.DefaultPort
	}
	// Who cannot be found has no face by an address.
	addrs, _ := net.DefaultResolver.LookupNetIP(ctx, network, host)
	for _, a := range addrs {
		a = a.Unmap()
		family := "6"
		if a.Is4() {
			family = "4"
		}
		if c := scheme[:3] + family + "://" + net.JoinHostPort(a.String(), port); c != uri {
			uris = append(uris, c)
		}
	}
	return uris
}

// gone turns the answer that a face does not exist into one with a remedy.
func gone(err error, face uint64) error {
	var st *mgmt.StatusError
	if errors.As(err, &st) && (st.Code == mgmt.StatusGone || st.Code == mgmt.StatusNotFound) {
		return errNoFace(strconv.FormatUint(face, 10))
	}
	return err
}

// print writes v as JSON if --json is given; otherwise table writes it with a
// tab writer, cells between tabs.
func (s *session) print(v any, table func(w *tabwriter.Writer)) error {
	if s.json {
		return printJSON(s.e.stdout, v)
	}
	w := tabwriter.NewWriter(s.e.stdout, 0, 8, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// printJSON writes v as a person can read it, too.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// say reports a change that was made: a line, or with --json the result.
func (s *session) say(v any, format string, args ...any) error {
	if s.json {
		return s.print(v, nil)
	}
	_, err := fmt.Fprintf(s.e.stdout, format+"\n", args...)
	return err
}

// parsePrefix reads a PREFIX argument.
func parsePrefix(c *cobra.Command, arg string) (ndn.Name, error) {
	n, err := ndn.ParseName(arg)
	if err != nil {
		return nil, badUsage(c, err)
	}
	return n, nil
}

// onOff is a flag that is on, off, or not given.
type onOff struct{ set, on bool }

func (o *onOff) String() string { return "" }
func (o *onOff) Type() string   { return "on|off" }
func (o *onOff) Set(v string) error {
	switch v {
	case "on", "off":
		o.set, o.on = true, v == "on"
		return nil
	}
	return errors.New("it should be on or off")
}

// addOnOff adds an on-or-off flag.
func addOnOff(c *cobra.Command, o *onOff, name, usage string) {
	c.Flags().Var(o, name, usage)
	completeWith(c, name, []string{"on", "off"})
}

// flagBits sets a bit of Flags and Mask as an on-or-off flag says.
func flagBits(p *mgmt.ControlParameters, bit uint64, o onOff) {
	if !o.set {
		return
	}
	flags, mask := p.Flags.GetOr(0), p.Mask.GetOr(0)|bit
	if o.on {
		flags |= bit
	}
	p.Flags.Set(flags)
	p.Mask.Set(mask)
}

// safe makes text of a peer's fit to print on a terminal: control characters
// are escaped.
func safe(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) }) {
		return strconv.Quote(s)
	}
	return s
}
