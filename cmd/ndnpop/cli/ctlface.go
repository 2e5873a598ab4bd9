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

// Names that NFD's tools use.
var (
	persistencies = []string{"persistent", "on-demand", "permanent"}
	linkTypes     = []string{"point-to-point", "multi-access", "ad-hoc"}
	scopes        = []string{"non-local", "local"}
)

func nameOf(names []string, v uint64) string {
	if v < uint64(len(names)) {
		return names[v]
	}
	return strconv.FormatUint(v, 10)
}

// faceJSON is a face as --json prints it.
type faceJSON struct {
	ID          uint64      `json:"id"`
	Remote      string      `json:"remote"`
	Local       string      `json:"local"`
	Scope       string      `json:"scope,omitempty"`
	Persistency string      `json:"persistency"`
	Link        string      `json:"link,omitempty"`
	MTU         uint64      `json:"mtu,omitempty"`
	ExpiresInS  float64     `json:"expires_in_s,omitempty"`
	Flags       []string    `json:"flags"`
	MarkAfterS  float64     `json:"congestion_interval_s,omitempty"`
	MarkOver    uint64      `json:"congestion_threshold_bytes,omitempty"`
	Down        *downJSON   `json:"down,omitempty"`
	In          *trafficOut `json:"in,omitempty"`
	Out         *trafficOut `json:"out,omitempty"`
}

// downJSON says since when and why a face is down; only this project's
// forwarders tell.
type downJSON struct {
	ForS float64 `json:"for_s"`
	Why  string  `json:"why,omitempty"`
}

func downOut(f *mgmt.FaceStatus) *downJSON {
	ms, down := f.DownFor.Get()
	if !down {
		return nil
	}
	return &downJSON{ForS: float64(ms) / 1e3, Why: f.DownWhy}
}

type trafficOut struct {
	Interests uint64 `json:"interests"`
	Data      uint64 `json:"data"`
	Nacks     uint64 `json:"nacks"`
	Bytes     uint64 `json:"bytes"`
}

func faceFlagNames(flags uint64) []string {
	out := []string{}
	for i, n := range []string{"local-fields", "reliability", "congestion-marking"} {
		if flags&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// shortFlags are the names of flags where there is little room.
var shortFlags = strings.NewReplacer("local-fields", "local", "reliability", "reliable", "congestion-marking", "marks")

func faceOut(f *mgmt.FaceStatus) faceJSON {
	return faceJSON{
		ID: f.FaceID, Remote: f.URI, Local: f.LocalURI, Scope: nameOf(scopes, f.Scope),
		Persistency: nameOf(persistencies, f.Persistency), Link: nameOf(linkTypes, f.LinkType),
		MTU: f.MTU.GetOr(0), ExpiresInS: float64(f.Expiration.GetOr(0)) / 1e3, Flags: faceFlagNames(f.Flags),
		MarkAfterS: time.Duration(f.MarkInterval.GetOr(0)).Seconds(), MarkOver: f.MarkThreshold.GetOr(0),
		Down: downOut(f),
		In:   &trafficOut{f.InInterests, f.InData, f.InNacks, f.InBytes},
		Out:  &trafficOut{f.OutInterests, f.OutData, f.OutNacks, f.OutBytes},
	}
}

// bodyOut is a face as the answer to a command describes it.
func bodyOut(p *mgmt.ControlParameters) faceJSON {
	return faceJSON{
		ID: p.FaceID.GetOr(0), Remote: p.URI, Local: p.LocalURI,
		Persistency: nameOf(persistencies, p.Persistency.GetOr(0)), MTU: p.MTU.GetOr(0), Flags: faceFlagNames(p.Flags.GetOr(0)),
		MarkAfterS: time.Duration(p.MarkInterval.GetOr(0)).Seconds(), MarkOver: p.MarkThreshold.GetOr(0),
	}
}

func newFaceListCmd(f *ctlFlags) *cobra.Command {
	var scheme string
	c := &cobra.Command{
		Use:   "list [FACE]",
		Short: "List faces, with what passed through them",
		Long: `Lists the faces, with what passed through them. A permanent face stays in the
list while its peer cannot be reached; the last column then says for how long and
why. FLAGS are those of NFD, in short: local-fields, reliability and
congestion-marking. With FACE, an id or a URI, the local end is shown as well.`,
		Example: `  ndnpop ctl face list
  ndnpop ctl face list --scheme udp4 --json`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completion(f.completeFaces),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && scheme != "" {
				return badUsage(c, errors.New("give FACE or --scheme, not both"))
			}
			return f.with(c, func(s *session) error {
				var list []mgmt.FaceStatus
				var err error
				switch {
				case len(args) > 0:
					var one mgmt.FaceStatus
					one, err = s.findFace(args[0])
					list = []mgmt.FaceStatus{one}
				case scheme != "":
					q := mgmt.FaceQueryFilter{URIScheme: scheme}
					list, err = readDataset(s, "faces", "query", q.AppendTo(nil), mgmt.ParseFaceStatuses)
				default:
					list, err = readDataset(s, "faces", "list", nil, mgmt.ParseFaceStatuses)
				}
				if err != nil {
					return err
				}
				out := make([]faceJSON, 0, len(list))
				for i := range list {
					out = append(out, faceOut(&list[i]))
				}
				return s.print(out, func(w *tabwriter.Writer) { faceTable(w, list, len(args) > 0) })
			})
		},
	}
	c.Flags().StringVar(&scheme, "scheme", "", "only faces whose remote or local URI has this `scheme`, e.g. udp4")
	return c
}

// faceTable prints faces, with their local ends if wanted.
func faceTable(w *tabwriter.Writer, list []mgmt.FaceStatus, local bool) {
	ends := "REMOTE"
	if local {
		ends += "\tLOCAL"
	}
	fmt.Fprintf(w, "FACE\t%s\tPERSISTENCY\tMTU\tIN int/data/nack\tbytes\tOUT int/data/nack\tbytes\tFLAGS\tDOWN\n", ends)
	for i := range list {
		f := &list[i]
		p := nameOf(persistencies, f.Persistency)
		if ms, ok := f.Expiration.Get(); ok {
			p += ", " + shortDuration(ms)
		}
		mtu := "-"
		if m, ok := f.MTU.Get(); ok {
			mtu = strconv.FormatUint(m, 10)
		}
		flags := "-"
		if names := faceFlagNames(f.Flags); len(names) > 0 {
			flags = shortFlags.Replace(strings.Join(names, ","))
		}
		ends := safe(f.URI)
		if local {
			ends += "\t" + safe(f.LocalURI)
		}
		down := "-"
		if ms, is := f.DownFor.Get(); is {
			down = "for " + shortDuration(ms)
			if f.DownWhy != "" {
				down += ": " + safe(f.DownWhy)
			}
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d/%d/%d\t%s\t%d/%d/%d\t%s\t%s\t%s\n", f.FaceID, ends, p, mtu,
			f.InInterests, f.InData, f.InNacks, bytesText(f.InBytes),
			f.OutInterests, f.OutData, f.OutNacks, bytesText(f.OutBytes), flags, down)
	}
}

// faceSettings are the flags that face create and face update share.
type faceSettings struct {
	persistency              string
	mtu                      uint64
	local, reliable, marking onOff
	interval                 time.Duration
	threshold                uint64
}

func (o *faceSettings) add(c *cobra.Command, persistency string) {
	fl := c.Flags()
	fl.SortFlags = false
	fl.StringVar(&o.persistency, "persistency", persistency, "`persistent|permanent`: a permanent face outlives errors and reconnects")
	completeWith(c, "persistency", []string{"persistent", "permanent"})
	fl.Uint64Var(&o.mtu, "mtu", 0, "largest link packet in `bytes`")
	addOnOff(c, &o.local, "local-fields", "IncomingFaceId, NextHopFaceId and CachePolicy in link headers")
	addOnOff(c, &o.reliable, "reliability", "hop-by-hop retransmission (NDNLPv2)")
	addOnOff(c, &o.marking, "congestion-marking", "mark packets when the face's queue stays long")
	fl.DurationVar(&o.interval, "congestion-interval", 0, "how long before the first mark, e.g. 100ms")
	fl.Uint64Var(&o.threshold, "congestion-threshold", 0, "length of a long queue in `bytes`")
}

func (o *faceSettings) apply(c *cobra.Command, p *mgmt.ControlParameters) error {
	switch o.persistency {
	case "":
	case "persistent":
		p.Persistency.Set(0)
	case "permanent":
		p.Persistency.Set(2)
	default:
		return badUsage(c, fmt.Errorf("--persistency %q: it should be persistent or permanent", o.persistency))
	}
	fl := c.Flags()
	if fl.Changed("mtu") {
		if o.mtu == 0 || o.mtu > ndn.MaxPacketSize {
			return badUsage(c, fmt.Errorf("--mtu %d: at most %d bytes", o.mtu, ndn.MaxPacketSize))
		}
		p.MTU.Set(o.mtu)
	}
	flagBits(p, mgmt.FaceLocalFields, o.local)
	flagBits(p, mgmt.FaceReliability, o.reliable)
	flagBits(p, mgmt.FaceMarking, o.marking)
	if fl.Changed("congestion-interval") {
		if o.interval <= 0 {
			return badUsage(c, errors.New("--congestion-interval: it should be more than 0"))
		}
		p.MarkInterval.Set(uint64(o.interval))
	}
	if fl.Changed("congestion-threshold") {
		p.MarkThreshold.Set(o.threshold)
	}
	return nil
}

func newFaceCreateCmd(f *ctlFlags) *cobra.Command {
	var o faceSettings
	c := &cobra.Command{
		Use:   "create URI",
		Short: "Create a face to a peer",
		Long: `Creates a face to the peer at URI: udp4://, udp6://, tcp4:// or tcp6:// with
address and port. Prints the number of the new face. A face that exists already
is an error that names it.`,
		Example: `  ndnpop ctl face create udp4://192.0.2.7:6363
  ndnpop ctl face create tcp6://[2001:db8::7]:6363 --persistency permanent`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completion(),
		RunE: func(c *cobra.Command, args []string) error {
			p := mgmt.ControlParameters{URI: args[0]}
			if err := o.apply(c, &p); err != nil {
				return err
			}
			if !strings.Contains(p.URI, "://") {
				return badUsage(c, fmt.Errorf("%q is no URI like udp4://192.0.2.7:6363", p.URI))
			}
			return f.with(c, func(s *session) error {
				b, err := s.command("faces", "create", &p)
				var st *mgmt.StatusError
				if errors.As(err, &st) && st.Code == mgmt.StatusConflict && st.Body != nil && st.Body.FaceID.IsSet() {
					id := st.Body.FaceID.GetOr(0)
					return fmt.Errorf("face %d goes to %s already; change it with \"ndnpop ctl face update %d\"", id, safe(st.Body.URI), id)
				}
				if err != nil {
					return err
				}
				if err := ignored(&p, b); err != nil {
					return fmt.Errorf("face %d was created, but %w", b.FaceID.GetOr(0), err)
				}
				return s.say(bodyOut(b), "face %d: %s, local %s, %s", b.FaceID.GetOr(0), safe(b.URI), safe(b.LocalURI), nameOf(persistencies, b.Persistency.GetOr(0)))
			})
		},
	}
	o.add(c, "persistent")
	return c
}

func newFaceUpdateCmd(f *ctlFlags) *cobra.Command {
	var o faceSettings
	c := &cobra.Command{
		Use:   "update FACE",
		Short: "Change a face",
		Example: `  ndnpop ctl face update 262 --persistency permanent
  ndnpop ctl face update udp4://192.0.2.7:6363 --reliability on`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completion(f.completeFaces),
		RunE: func(c *cobra.Command, args []string) error {
			var p mgmt.ControlParameters
			if err := o.apply(c, &p); err != nil {
				return err
			}
			if !p.Persistency.IsSet() && !p.MTU.IsSet() && !p.Mask.IsSet() && !p.MarkInterval.IsSet() && !p.MarkThreshold.IsSet() {
				return badUsage(c, errors.New("nothing to change: give --persistency, --mtu, --local-fields, --reliability, "+
					"--congestion-marking, --congestion-interval or --congestion-threshold"))
			}
			return f.with(c, func(s *session) error {
				face, err := s.findFace(args[0])
				if err != nil {
					return err
				}
				p.FaceID.Set(face.FaceID)
				b, err := s.command("faces", "update", &p)
				if err != nil {
					return refusedProperties(gone(err, face.FaceID))
				}
				if err := ignored(&p, b); err != nil {
					return fmt.Errorf("face %d: %w", face.FaceID, err)
				}
				out := bodyOut(b)
				out.Remote, out.Local = face.URI, face.LocalURI // the answer has none
				return s.say(out, "face %d: %s, %s", face.FaceID, nameOf(persistencies, b.Persistency.GetOr(0)), orNone(faceFlagNames(b.Flags.GetOr(0))))
			})
		},
	}
	o.add(c, "")
	return c
}

// ignored is the error of a forwarder that answered 200 and did not do all that
// was asked for: ndnd knows neither reliability nor marking by command.
func ignored(p, answer *mgmt.ControlParameters) error {
	want, got := p.Flags.GetOr(0), answer.Flags.GetOr(0)
	diff := (want ^ got) & p.Mask.GetOr(0)
	var what []string
	if on := faceFlagNames(diff & want); len(on) > 0 {
		what = append(what, strings.Join(on, ", ")+" on")
	}
	if off := faceFlagNames(diff &^ want); len(off) > 0 {
		what = append(what, strings.Join(off, ", ")+" off")
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("this forwarder did not turn %s", strings.Join(what, " and "))
}

// refusedProperties names the properties that an update cannot have: the body
// of the refusal holds them.
func refusedProperties(err error) error {
	var st *mgmt.StatusError
	if !errors.As(err, &st) || st.Code != mgmt.StatusConflict || st.Body == nil {
		return err
	}
	var what []string
	if v, ok := st.Body.Persistency.Get(); ok {
		what = append(what, "persistency "+nameOf(persistencies, v))
	}
	if v, ok := st.Body.Flags.Get(); ok {
		what = append(what, orNone(faceFlagNames(v&st.Body.Mask.GetOr(v))))
	}
	if len(what) == 0 {
		return err
	}
	return fmt.Errorf("%w: not possible for this face: %s", err, strings.Join(what, ", "))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no flags"
	}
	return strings.Join(names, ", ")
}

func newFaceDestroyCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "destroy FACE",
		Short:   "Destroy a face, with its routes",
		Example: "  ndnpop ctl face destroy 262",
		Args:    usageArgs(cobra.ExactArgs(1)),

		ValidArgsFunction: completion(f.completeFaces),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c, func(s *session) error {
				face, err := s.findFace(args[0])
				if err != nil {
					return err
				}
				p := mgmt.ControlParameters{FaceID: optional.Some(face.FaceID)}
				if _, err := s.command("faces", "destroy", &p); err != nil {
					return gone(err, face.FaceID)
				}
				return s.say(faceOut(&face), "face %d to %s is gone", face.FaceID, safe(face.URI))
			})
		},
	}
}

// bytesText writes a number of bytes in the largest unit that fits.
func bytesText(n uint64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n), -1
	for v >= 999.95 && u < len(units)-1 {
		v /= 1000
		u++
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}

// shortDuration writes milliseconds as a person would.
func shortDuration(ms uint64) string {
	d := time.Duration(min(ms, 1<<40)) * time.Millisecond
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
