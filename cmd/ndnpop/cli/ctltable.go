package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/named-data/ndnd/std/types/optional"
	"github.com/spf13/cobra"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// strategyRoot is the prefix of strategy names.
const strategyRoot = "/localhost/nfd/strategy/"

// strategyJSON is a strategy choice as --json prints it.
type strategyJSON struct {
	Prefix   string `json:"prefix"`
	Strategy string `json:"strategy"`
}

func newStrategyListCmd(f *ctlFlags) *cobra.Command {
	var available bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the prefixes that have a strategy of their own, or what there is to choose",
		Example: `  ndnpop ctl strategy list
  ndnpop ctl strategy list --available`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, func(s *session) error {
				if available {
					return s.available()
				}
				list, err := readDataset(s, "strategy-choice", "list", nil, mgmt.ParseStrategyChoices)
				if err != nil {
					return err
				}
				out := []strategyJSON{}
				for _, ch := range list {
					out = append(out, strategyJSON{ch.Name.String(), ch.Strategy.String()})
				}
				return s.print(out, func(w *tabwriter.Writer) {
					fmt.Fprintln(w, "PREFIX\tSTRATEGY")
					for _, ch := range out {
						fmt.Fprintf(w, "%s\t%s\n", ch.Prefix, strings.TrimPrefix(ch.Strategy, strategyRoot))
					}
				})
			})
		},
	}
	c.Flags().BoolVar(&available, "available", false, "list the strategies that can be chosen, with their parameters")
	return c
}

func newStrategySetCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "set PREFIX STRATEGY",
		Short: "Choose the strategy of a prefix",
		Long: `Chooses the strategy of PREFIX and what lies below it. STRATEGY is a short name,
with version and parameters if wanted, or a full name that begins with
/localhost/nfd/strategy/. An unknown one lists the choices.`,
		Example: `  ndnpop ctl strategy set /cdn multicast
  ndnpop ctl strategy set /cdn best-route/v=5/retx-suppression-initial~10`,
		Args:              usageArgs(cobra.ExactArgs(2)),
		ValidArgsFunction: completion(f.completeRoutes(), f.completeStrategies),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			uri := args[1]
			if !strings.HasPrefix(uri, "/") && !strings.HasPrefix(uri, "ndn:") {
				uri = strategyRoot + uri
			}
			name, err := ndn.ParseName(uri)
			if err != nil {
				return badUsage(c, err)
			}
			return f.with(c, func(s *session) error {
				b, err := s.command("strategy-choice", "set", &mgmt.ControlParameters{Name: optional.Some(prefix), Strategy: name})
				if err != nil {
					return err
				}
				full := name
				if b.Strategy != nil {
					full = b.Strategy
				}
				return s.say(strategyJSON{prefix.String(), full.String()}, "%s: %s", prefix, strings.TrimPrefix(full.String(), strategyRoot))
			})
		},
	}
}

func newStrategyUnsetCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "unset PREFIX",
		Short:   "Let a prefix inherit its strategy again",
		Example: "  ndnpop ctl strategy unset /cdn",
		Args:    usageArgs(cobra.ExactArgs(1)),

		ValidArgsFunction: completion(f.completeChoices()),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			if len(prefix) == 0 {
				return badUsage(c, errors.New("the strategy of / can be set but not unset"))
			}
			return f.with(c, func(s *session) error {
				if _, err := s.command("strategy-choice", "unset", &mgmt.ControlParameters{Name: optional.Some(prefix)}); err != nil {
					return err
				}
				return s.say(strategyJSON{Prefix: prefix.String()}, "%s inherits its strategy", prefix)
			})
		},
	}
}

// csJSON is the content store as --json prints it.
type csJSON struct {
	CapacityPackets uint64  `json:"capacity_packets"`
	CapacityBytes   *uint64 `json:"capacity_bytes,omitempty"`
	UsedBytes       *uint64 `json:"used_bytes,omitempty"` // memory, with all overhead
	DataBytes       *uint64 `json:"data_bytes,omitempty"` // of the packets held
	Entries         uint64  `json:"entries"`
	Admit           bool    `json:"admit"`
	Serve           bool    `json:"serve"`
	Hits            uint64  `json:"hits"`
	Misses          uint64  `json:"misses"`
	HitRatio        float64 `json:"hit_ratio"`
}

func csOut(c *mgmt.CsInfo) csJSON {
	out := csJSON{
		CapacityPackets: c.Capacity, Entries: c.Entries, Hits: c.Hits, Misses: c.Misses,
		Admit: c.Flags&mgmt.CsAdmit != 0, Serve: c.Flags&mgmt.CsServe != 0, HitRatio: ratio(c.Hits, c.Misses),
	}
	if v, ok := c.CapacityBytes.Get(); ok {
		out.CapacityBytes = &v
	}
	if v, ok := c.UsedBytes.Get(); ok {
		out.UsedBytes = &v
	}
	if v, ok := c.DataBytes.Get(); ok {
		out.DataBytes = &v
	}
	return out
}

func ratio(hits, misses uint64) float64 {
	if hits+misses == 0 {
		return 0
	}
	return float64(hits) / float64(hits+misses)
}

func newCsInfoCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "info",
		Short:   "Show the content store",
		Example: "  ndnpop ctl cs info",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.with(c, func(s *session) error {
				info, err := readDataset(s, "cs", "info", nil, mgmt.ParseCsInfo)
				if err != nil {
					return err
				}
				out := csOut(&info)
				return s.print(out, func(w *tabwriter.Writer) { csTable(w, &out) })
			})
		},
	}
}

func csTable(w *tabwriter.Writer, c *csJSON) {
	if c.CapacityBytes != nil {
		fmt.Fprintf(w, "capacity\t%s of memory\n", bytesText(*c.CapacityBytes))
	} else {
		fmt.Fprintf(w, "capacity\t%d packets\n", c.CapacityPackets)
	}
	switch {
	case c.UsedBytes != nil && c.DataBytes != nil:
		fmt.Fprintf(w, "holds\t%s, %s\n", count(c.Entries, "packet"), bytesText(*c.DataBytes))
		fmt.Fprintf(w, "used\t%s of memory, in pages\n", bytesText(*c.UsedBytes))
	case c.UsedBytes != nil:
		fmt.Fprintf(w, "used\t%s, %s\n", bytesText(*c.UsedBytes), count(c.Entries, "packet"))
	default:
		fmt.Fprintf(w, "used\t%s\n", count(c.Entries, "packet"))
	}
	fmt.Fprintf(w, "admit\t%s\n", onOffText(c.Admit))
	fmt.Fprintf(w, "serve\t%s\n", onOffText(c.Serve))
	fmt.Fprintf(w, "hits\t%d of %d (%.1f %%)\n", c.Hits, c.Hits+c.Misses, 100*c.HitRatio)
}

func onOffText(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func newCsConfigCmd(f *ctlFlags) *cobra.Command {
	var capacity string
	var admit, serve onOff
	c := &cobra.Command{
		Use:   "config",
		Short: "Change the content store",
		Long: `Changes what is given and leaves the rest. The protocol counts the capacity in
packets; a size in bytes such as 2GB is sent as a number of packets of 8800 bytes,
the largest there are, rounded up. ndnpop takes it for so many bytes of memory
again; the number of packets that fit is larger if they are smaller.`,
		Example: `  ndnpop ctl cs config --capacity 2GB
  ndnpop ctl cs config --admit off`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var p mgmt.ControlParameters
			if c.Flags().Changed("capacity") {
				n, err := parseCapacity(capacity)
				if err != nil {
					return badUsage(c, fmt.Errorf("--capacity %q: %w", capacity, err))
				}
				p.Capacity.Set(n)
			}
			flagBits(&p, mgmt.CsAdmit, admit)
			flagBits(&p, mgmt.CsServe, serve)
			if !p.Capacity.IsSet() && !p.Mask.IsSet() {
				return badUsage(c, errors.New("nothing to change: give --capacity, --admit or --serve"))
			}
			return f.with(c, func(s *session) error {
				b, err := s.command("cs", "config", &p)
				if err != nil {
					return err
				}
				flags := b.Flags.GetOr(0)
				out := struct {
					CapacityPackets uint64 `json:"capacity_packets"`
					Admit           bool   `json:"admit"`
					Serve           bool   `json:"serve"`
				}{b.Capacity.GetOr(0), flags&mgmt.CsAdmit != 0, flags&mgmt.CsServe != 0}
				return s.say(out, "capacity %d packets of up to %d bytes (%s), admit %s, serve %s", out.CapacityPackets,
					ndn.MaxPacketSize, bytesText(out.CapacityPackets*ndn.MaxPacketSize), onOffText(out.Admit), onOffText(out.Serve))
			})
		},
	}
	c.Flags().StringVar(&capacity, "capacity", "", "`packets` of 8800 bytes, or a size such as 2GB")
	addOnOff(c, &admit, "admit", "keep the Data that passes")
	addOnOff(c, &serve, "serve", "answer from what is kept")
	return c
}

// parseCapacity reads a number of packets or a size.
func parseCapacity(s string) (uint64, error) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n, nil
	}
	size, err := config.ParseSize(s)
	if err != nil {
		return 0, err
	}
	return (uint64(size) + ndn.MaxPacketSize - 1) / ndn.MaxPacketSize, nil
}

func newCsEraseCmd(f *ctlFlags) *cobra.Command {
	var count uint64
	c := &cobra.Command{
		Use:   "erase PREFIX",
		Short: "Erase Data from the content store",
		Example: `  ndnpop ctl cs erase /cdn/video
  ndnpop ctl cs erase / --count 1000`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			if c.Flags().Changed("count") && count == 0 {
				return badUsage(c, errors.New("--count: it should be 1 or more"))
			}
			return f.with(c, func(s *session) error {
				n, err := s.erase(prefix, count)
				if err != nil {
					return err
				}
				return s.say(map[string]uint64{"erased": n}, "erased %d Data", n)
			})
		},
	}
	c.Flags().Uint64Var(&count, "count", 0, "erase at most `n` Data (default: all)")
	return c
}

// erase repeats cs/erase as long as the answer says that there may be more
// than one command erases.
func (s *session) erase(prefix ndn.Name, count uint64) (total uint64, err error) {
	left := count
	if count == 0 {
		left = math.MaxUint64
	}
	for {
		p := mgmt.ControlParameters{Name: optional.Some(prefix)}
		if count != 0 {
			p.Count.Set(left)
		}
		b, err := s.command("cs", "erase", &p)
		if err != nil {
			return total, err
		}
		n := min(b.Count.GetOr(0), left)
		total, left = total+n, left-n
		if !b.Capacity.IsSet() || n == 0 || left == 0 {
			return total, nil
		}
	}
}
