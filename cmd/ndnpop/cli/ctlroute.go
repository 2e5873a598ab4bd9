package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/named-data/ndnd/std/types/optional"
	"github.com/spf13/cobra"

	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// origins of routes, as NFD's tools name them.
var origins = []struct {
	name string
	n    uint64
}{
	{"app", mgmt.OriginApp}, {"autoreg", mgmt.OriginAutoreg}, {"client", mgmt.OriginClient},
	{"autoconf", mgmt.OriginAutoconf}, {"nlsr", mgmt.OriginNLSR}, {"prefixann", mgmt.OriginPrefixAnn},
	{"static", mgmt.OriginStatic},
}

func originName(n uint64) string {
	for _, o := range origins {
		if o.n == n {
			return o.name
		}
	}
	return strconv.FormatUint(n, 10)
}

func originNames() []string {
	var out []string
	for _, o := range origins {
		out = append(out, o.name)
	}
	return out
}

func parseOrigin(s string) (uint64, error) {
	for _, o := range origins {
		if o.name == s {
			return o.n, nil
		}
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("--origin %q: it should be a number or one of %s", s, strings.Join(originNames(), ", "))
}

// routeJSON is a route as --json prints it.
type routeJSON struct {
	Prefix       string  `json:"prefix"`
	Face         uint64  `json:"face"`
	Origin       string  `json:"origin"`
	Cost         uint64  `json:"cost"`
	ChildInherit bool    `json:"child_inherit"`
	Capture      bool    `json:"capture"`
	ExpiresInS   float64 `json:"expires_in_s,omitempty"`
}

func newRouteListCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the routes of the RIB, of all prefixes or of one and those below it",
		Example: `  ndnpop ctl route list
  ndnpop ctl route list /cdn`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completion(f.completeRoutes()),
		RunE: func(c *cobra.Command, args []string) error {
			var under ndn.Name
			if len(args) > 0 {
				var err error
				if under, err = parsePrefix(c, args[0]); err != nil {
					return err
				}
			}
			return f.with(c, func(s *session) error {
				entries, err := readDataset(s, "rib", "list", nil, mgmt.ParseRibEntries)
				if err != nil {
					return err
				}
				out := []routeJSON{}
				for _, e := range entries {
					if !e.Name.HasPrefix(under) {
						continue
					}
					for _, r := range e.Routes {
						out = append(out, routeJSON{
							Prefix: e.Name.String(), Face: r.FaceID, Origin: originName(r.Origin), Cost: r.Cost,
							ChildInherit: r.Flags&mgmt.RouteChildInherit != 0, Capture: r.Flags&mgmt.RouteCapture != 0,
							ExpiresInS: float64(r.Expiration.GetOr(0)) / 1e3,
						})
					}
				}
				return s.print(out, func(w *tabwriter.Writer) { routeTable(w, out) })
			})
		},
	}
}

func routeTable(w *tabwriter.Writer, list []routeJSON) {
	fmt.Fprintln(w, "PREFIX\tFACE\tORIGIN\tCOST\tEXPIRES\tFLAGS")
	for _, r := range list {
		expires := "never"
		if r.ExpiresInS > 0 {
			expires = "in " + shortDuration(uint64(r.ExpiresInS*1e3))
		}
		flags := "-"
		switch {
		case r.ChildInherit && r.Capture:
			flags = "child-inherit,capture"
		case r.ChildInherit:
			flags = "child-inherit"
		case r.Capture:
			flags = "capture"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%s\n", r.Prefix, r.Face, r.Origin, r.Cost, expires, flags)
	}
}

func newRouteAddCmd(f *ctlFlags) *cobra.Command {
	var (
		cost               uint64
		origin             string
		expires            time.Duration
		noInherit, capture bool
	)
	c := &cobra.Command{
		Use:   "add PREFIX FACE",
		Short: "Add a route, or change it",
		Long: `Adds a route for PREFIX through FACE, or changes the one with the same origin. If
FACE is a URI that no face goes to, a persistent face is created.`,
		Example: `  ndnpop ctl route add /cdn 262 --cost 10
  ndnpop ctl route add /cdn udp4://192.0.2.7:6363 --expires 1h`,
		Args:              usageArgs(cobra.ExactArgs(2)),
		ValidArgsFunction: completion(f.completeRoutes(), f.completeFaces),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			o, err := parseOrigin(origin)
			if err != nil {
				return badUsage(c, err)
			}
			p := mgmt.ControlParameters{Name: optional.Some(prefix), Origin: optional.Some(o), Cost: optional.Some(cost)}
			flags := mgmt.RouteChildInherit
			if noInherit {
				flags = 0
			}
			if capture {
				flags |= mgmt.RouteCapture
			}
			p.Flags.Set(flags)
			if c.Flags().Changed("expires") {
				if expires < time.Millisecond {
					return badUsage(c, errors.New("--expires: it should be at least 1ms"))
				}
				p.Expiration.Set(uint64(expires / time.Millisecond))
			}
			return f.with(c, func(s *session) error {
				face, err := s.faceFor(args[1])
				if err != nil {
					return err
				}
				p.FaceID.Set(face)
				b, err := s.command("rib", "register", &p)
				if err != nil {
					return gone(err, face)
				}
				r := routeJSON{
					Prefix: prefix.String(), Face: b.FaceID.GetOr(face), Origin: originName(b.Origin.GetOr(o)), Cost: b.Cost.GetOr(cost),
					ChildInherit: b.Flags.GetOr(flags)&mgmt.RouteChildInherit != 0, Capture: b.Flags.GetOr(flags)&mgmt.RouteCapture != 0,
					ExpiresInS: float64(b.Expiration.GetOr(0)) / 1e3,
				}
				return s.say(r, "%s through face %d, cost %d, origin %s", r.Prefix, r.Face, r.Cost, r.Origin)
			})
		},
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.Uint64Var(&cost, "cost", 0, "the route with the lowest cost is preferred")
	fl.StringVar(&origin, "origin", "static", "who made the route: a number or `name`")
	completeWith(c, "origin", originNames())
	fl.DurationVar(&expires, "expires", 0, "remove the route after this time, e.g. 1h (default: never)")
	fl.BoolVar(&noInherit, "no-inherit", false, "longer prefixes that have routes do not use this one")
	fl.BoolVar(&capture, "capture", false, "this prefix uses no routes of shorter ones")
	return c
}

// faceFor returns the number of a FACE, creating one for a URI that has none.
func (s *session) faceFor(arg string) (uint64, error) {
	if id, err := strconv.ParseUint(arg, 10, 64); err == nil {
		if id == 0 { // to the forwarder it means the face of this command, which ends with it
			return 0, errNoFace(arg)
		}
		return id, nil
	}
	if !strings.Contains(arg, "://") {
		return 0, withCode(exitUsage, fmt.Errorf("%q is neither the number of a face nor a URI like udp4://192.0.2.7:6363", arg))
	}
	r, err := s.c.Command(s.ctx, "faces", "create", &mgmt.ControlParameters{URI: arg})
	switch {
	case err != nil:
		return 0, err
	case (r.OK() || r.Code == mgmt.StatusConflict) && r.Body != nil && r.Body.FaceID.IsSet():
		return r.Body.FaceID.GetOr(0), nil
	case r.OK():
		return 0, errors.New("the forwarder did not say which face it made")
	}
	return 0, r.Err()
}

func newRouteRemoveCmd(f *ctlFlags) *cobra.Command {
	var origin string
	c := &cobra.Command{
		Use:     "remove PREFIX FACE",
		Short:   "Remove a route",
		Example: "  ndnpop ctl route remove /cdn 262",
		Args:    usageArgs(cobra.ExactArgs(2)),

		ValidArgsFunction: completion(f.completeRoutes(), f.completeFaces),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			o, err := parseOrigin(origin)
			if err != nil {
				return badUsage(c, err)
			}
			return f.with(c, func(s *session) error {
				face, err := s.findFace(args[1])
				if err != nil {
					return err
				}
				// The answer is 200 also for a route that there is not.
				entries, err := readDataset(s, "rib", "list", nil, mgmt.ParseRibEntries)
				if err != nil {
					return err
				}
				if !hasRoute(entries, prefix, face.FaceID, o) {
					return fmt.Errorf("there is no route %s through face %d of origin %s; \"ndnpop ctl route list %s\" shows those that there are",
						prefix, face.FaceID, originName(o), prefix)
				}
				p := mgmt.ControlParameters{Name: optional.Some(prefix), FaceID: optional.Some(face.FaceID), Origin: optional.Some(o)}
				if _, err := s.command("rib", "unregister", &p); err != nil {
					return err
				}
				return s.say(routeJSON{Prefix: prefix.String(), Face: face.FaceID, Origin: originName(o)},
					"%s through face %d is gone", prefix, face.FaceID)
			})
		},
	}
	c.Flags().StringVar(&origin, "origin", "static", "who made the route: a number or `name`")
	completeWith(c, "origin", originNames())
	return c
}

func hasRoute(entries []mgmt.RibEntry, prefix ndn.Name, face, origin uint64) bool {
	for _, e := range entries {
		if !e.Name.Equal(prefix) {
			continue
		}
		for _, r := range e.Routes {
			if r.FaceID == face && r.Origin == origin {
				return true
			}
		}
	}
	return false
}

// fibJSON is a FIB entry as --json prints it.
type fibJSON struct {
	Prefix   string        `json:"prefix"`
	NextHops []nextHopJSON `json:"next_hops"`
}

type nextHopJSON struct {
	Face uint64 `json:"face"`
	Cost uint64 `json:"cost"`
}

func newFibListCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the prefixes that are forwarded, with their next hops",
		Example: "  ndnpop ctl fib list",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, func(s *session) error {
				entries, err := readDataset(s, "fib", "list", nil, mgmt.ParseFibEntries)
				if err != nil {
					return err
				}
				out := []fibJSON{}
				for _, e := range entries {
					j := fibJSON{Prefix: e.Name.String(), NextHops: []nextHopJSON{}}
					for _, h := range e.NextHops {
						j.NextHops = append(j.NextHops, nextHopJSON{h.FaceID, h.Cost})
					}
					out = append(out, j)
				}
				return s.print(out, func(w *tabwriter.Writer) {
					fmt.Fprintln(w, "PREFIX\tNEXT HOPS face (cost)")
					for _, e := range out {
						var hops []string
						for _, h := range e.NextHops {
							hops = append(hops, fmt.Sprintf("%d (%d)", h.Face, h.Cost))
						}
						fmt.Fprintf(w, "%s\t%s\n", e.Prefix, strings.Join(hops, ", "))
					}
				})
			})
		},
	}
}
