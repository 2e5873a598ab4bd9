package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// availableJSON is a strategy that can be chosen, as --json prints it.
type availableJSON struct {
	Strategy string            `json:"strategy"`
	Usage    string            `json:"usage"`
	Params   map[string]string `json:"params"`
}

// available lists the strategies that the forwarder can be told to use.
func (s *session) available() error {
	list, err := readDataset(s, "strategy-choice", "available", nil, mgmt.ParseStrategyInfos)
	if err != nil {
		return err
	}
	out := []availableJSON{}
	for _, i := range list {
		a := availableJSON{i.Strategy.String(), i.Usage, map[string]string{}}
		for _, p := range i.Params {
			a.Params[p.Name] = p.Usage
		}
		out = append(out, a)
	}
	return s.print(out, func(w *tabwriter.Writer) {
		for _, i := range list {
			fmt.Fprintf(w, "%s\t%s\n", safe(strings.TrimPrefix(i.Strategy.String(), strategyRoot)), safe(i.Usage))
			for _, p := range i.Params {
				fmt.Fprintf(w, "  %s\t%s\n", safe(p.Name), safe(p.Usage))
			}
		}
	})
}

// nstJSON is what a strategy knows about next hops, as --json prints it.
type nstJSON struct {
	Prefix   string       `json:"prefix"`
	Strategy string       `json:"strategy"`
	Hops     []nstHopJSON `json:"hops"`
}

// nstHopJSON is one next hop; Values are by column, null where nothing is
// known.
type nstHopJSON struct {
	Face   uint64              `json:"face"`
	Remote string              `json:"remote"`
	Values map[string]*float64 `json:"values"`
}

func newCtlNstCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "nst PREFIX",
		Short: "Show what the strategy of a prefix knows about its next hops",
		Long: `Shows the node state table of the strategy nst for PREFIX: of each replica the
value (the lowest is chosen), hops, outstanding Interests, congestion (RTT above
the lowest one) and the lowest RTT. Other strategies that keep a table show
theirs. An empty table means that no route covers PREFIX.`,
		Example: `  ndnpop ctl nst /cdn/film
  ndnpop ctl nst /cdn/film --json | jq .hops[].values.outstanding`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			return f.with(c, func(s *session) error {
				r, err := readDataset(s, "strategy-choice", "report", prefix.AppendTLVTo(nil), mgmt.ParseStrategyReport)
				if err != nil {
					return err
				}
				faces, err := s.faceURIs()
				if err != nil {
					return err
				}
				return s.nst(prefix, &r, faces)
			})
		},
	}
}

// faceURIs are the remote URIs of all faces.
func (s *session) faceURIs() (map[uint64]string, error) {
	list, err := readDataset(s, "faces", "list", nil, mgmt.ParseFaceStatuses)
	if err != nil {
		return nil, err
	}
	uris := map[uint64]string{}
	for i := range list {
		uris[list[i].FaceID] = list[i].URI
	}
	return uris, nil
}

func (s *session) nst(prefix ndn.Name, r *mgmt.StrategyReport, faces map[uint64]string) error {
	out := nstJSON{Prefix: prefix.String(), Strategy: r.Strategy.String(), Hops: []nstHopJSON{}}
	for _, row := range r.Rows {
		h := nstHopJSON{Face: row.FaceID, Remote: faces[row.FaceID], Values: map[string]*float64{}}
		for i, c := range r.Columns {
			if v := row.Cells[i]; !math.IsInf(v, 0) && !math.IsNaN(v) {
				h.Values[c] = &v
			} else {
				h.Values[c] = nil
			}
		}
		out.Hops = append(out.Hops, h)
	}
	return s.print(out, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "%s: %s\n", prefix, safe(strings.TrimPrefix(out.Strategy, strategyRoot)))
		fmt.Fprint(w, "FACE\tREMOTE")
		for _, c := range r.Columns {
			fmt.Fprintf(w, "\t%s", strings.ToUpper(safe(c)))
		}
		fmt.Fprintln(w)
		for i, row := range r.Rows {
			fmt.Fprintf(w, "%d\t%s", row.FaceID, safe(out.Hops[i].Remote))
			for _, v := range row.Cells {
				fmt.Fprint(w, "\t"+cell(v))
			}
			fmt.Fprintln(w)
		}
	})
}

// cell is a value of the table, "-" when nothing was measured.
func cell(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// decisionJSON is a decision of a strategy as --json prints it, one per line.
type decisionJSON struct {
	Time       time.Time       `json:"time"`
	Interest   string          `json:"interest"`
	Strategy   string          `json:"strategy"`
	Event      string          `json:"event"`
	From       uint64          `json:"from"`
	Kind       string          `json:"kind"`
	Face       uint64          `json:"face"`
	Result     string          `json:"result,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Candidates []candidateJSON `json:"candidates,omitempty"`
}

type candidateJSON struct {
	Face   uint64   `json:"face"`
	Cost   uint64   `json:"cost"`
	Weight *float64 `json:"weight"` // null: infinite
	Note   string   `json:"note,omitempty"`
}

func newStrategyTraceCmd(f *ctlFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "trace PREFIX",
		Short: "Follow what strategies decide, and why",
		Long: `Prints, until stopped, what the strategy decides about every Interest below
PREFIX: the next hops that it weighed with its measurements, the one that it
chose, the reason, and whether the Interest was sent. With --json each line is an
object.

The forwarder tells at most some hundreds of Interests a second and says how many
decisions it left out; forwarding never waits for the follower. Its own
management is not followed.`,
		Example: `  ndnpop ctl strategy trace /cdn/film
  ndnpop ctl strategy trace / --json | jq -c 'select(.kind == "choice") | [.interest, .face, .reason]'`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			prefix, err := parsePrefix(c, args[0])
			if err != nil {
				return err
			}
			return f.with(c, func(s *session) error {
				// A forwarder that has no traces has not this dataset either, and
				// says so, where an unknown stream would be silent for ever.
				if _, err := s.c.Dataset(s.ctx, "strategy-choice", "available", nil); err != nil {
					return err
				}
				err := s.c.Trace(s.ctx, prefix, func(t mgmt.Trace) error {
					if t.Lost > 0 {
						fmt.Fprintf(s.e.stderr, "%d decisions left out\n", t.Lost)
					}
					for i := range t.Decisions {
						if err := s.decision(&t.Decisions[i]); err != nil {
							return err
						}
					}
					return nil
				})
				if s.ctx.Err() != nil {
					return stopped(s.ctx)
				}
				return err
			})
		},
	}
}

var decisionKinds = []string{"unknown", "send", "nack", "choice"}

func (s *session) decision(d *mgmt.Decision) error {
	at := time.UnixMicro(int64(min(d.Time, 1<<62)))
	if s.json {
		out := decisionJSON{
			Time: at.UTC(), Interest: d.Name.String(), Strategy: d.Strategy.String(), Event: d.Event, From: d.Incoming,
			Kind: nameOf(decisionKinds, d.Kind), Face: d.FaceID, Result: d.Result, Reason: d.Reason,
		}
		for _, c := range d.Candidates {
			w := &c.Weight
			if math.IsInf(c.Weight, 0) || math.IsNaN(c.Weight) {
				w = nil
			}
			out.Candidates = append(out.Candidates, candidateJSON{c.FaceID, c.Cost, w, c.Note})
		}
		return json.NewEncoder(s.e.stdout).Encode(out)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s", at.Format("15:04:05.000000"), d.Name, safe(d.Event))
	if d.Incoming != 0 {
		fmt.Fprintf(&b, " from face %d", d.Incoming)
	}
	switch d.Kind {
	case mgmt.DecisionExplain:
		fmt.Fprintf(&b, "  chose face %d: %s\n", d.FaceID, safe(d.Reason))
		for _, c := range d.Candidates {
			mark := " "
			if c.FaceID == d.FaceID {
				mark = "*"
			}
			fmt.Fprintf(&b, "  %s face %d  cost %d  %.4g %s\n", mark, c.FaceID, c.Cost, c.Weight, safe(c.Note))
		}
	case mgmt.DecisionNack:
		fmt.Fprintf(&b, "  Nack %s to face %d\n", safe(d.Result), d.FaceID)
	default:
		fmt.Fprintf(&b, "  to face %d: %s\n", d.FaceID, safe(d.Result))
	}
	_, err := s.e.stdout.Write([]byte(b.String()))
	return err
}
