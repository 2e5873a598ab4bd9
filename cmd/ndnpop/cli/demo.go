package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

type demoFlags struct {
	file string
	size int64
	json bool
}

// demoResult is what the demo reports; the JSON form is documented.
type demoResult struct {
	SHA256Equal  bool       `json:"sha256_equal"`
	Bytes        int64      `json:"bytes"`
	ElapsedS     float64    `json:"elapsed_s"`
	TTFBS        float64    `json:"ttfb_s"`
	GoodputBPS   float64    `json:"goodput_bps"`
	FailoverGapS float64    `json:"failover_gap_s"`
	Nodes        []demoNode `json:"nodes"`

	file, killed    string
	killedAt        time.Duration
	retransmissions int64
	longestGapS     float64 // between two Data of the whole transfer
}

// demoNode is what one forwarder's content store did; of the killed one, what
// it said last.
type demoNode struct {
	Name     string `json:"name"`
	CSBytes  uint64 `json:"cs_bytes"`
	CSHits   uint64 `json:"cs_hits"`
	CSMisses uint64 `json:"cs_misses"`
}

func newDemoCmd(e *env) *cobra.Command {
	f := &demoFlags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole thing on this machine",
		Long: `Starts four forwarders on loopback UDP (edge, two intermediates, origin),
publishes a real file at the origin and fetches it through the edge. In
mid-transfer the intermediate that serves is killed; the edge's strategy
(failover) sends what was outstanding there through the other one. It needs no
root and leaves nothing behind.

The transfer is paced to take a few seconds, so that there is something to see.`,
		Example: `  ndnpop demo
  ndnpop demo --file /path/to/film.mp4
  ndnpop demo --size 10000000 --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("size") && f.size <= 0 {
				return withCode(exitUsage, fmt.Errorf("--size %d: want 1 byte or more", f.size))
			}
			if f.file != "" && f.size > 0 {
				return withCode(exitUsage, errors.New("--file and --size exclude each other"))
			}
			return runDemo(c.Context(), e, f)
		},
	}
	c.Flags().StringVar(&f.file, "file", "", "the file to publish (`PATH`); default: one that the Go installation ships")
	c.Flags().Int64Var(&f.size, "size", 0, "publish a generated file of this many `BYTES` instead")
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return c
}

func runDemo(ctx context.Context, e *env, f *demoFlags) (err error) {
	dir, err := os.MkdirTemp("", "ndnpop-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o, err := newOverlay(dir)
	if err != nil {
		return err
	}
	defer o.stop()
	file, size, err := demoFile(dir, f)
	if err != nil {
		return err
	}
	res, err := o.transfer(ctx, e.stderr, file, size)
	if err != nil {
		if ctx.Err() != nil {
			return withCode(exitInterrupted, errors.New("interrupted"))
		}
		return err
	}
	if f.json {
		out, err := json.MarshalIndent(res, "", "  ")
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(e.stdout, "%s\n", out); err != nil {
			return err
		}
	} else if err := res.print(e.stdout); err != nil {
		return err
	}
	if !res.SHA256Equal {
		return errors.New("the bytes that arrived are not those of the file")
	}
	return nil
}

func (r *demoResult) print(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	equal := "equal"
	if !r.SHA256Equal {
		equal = "DIFFERENT"
	}
	fmt.Fprintf(t, "\nfile\t%s\n", r.file)
	fmt.Fprintf(t, "bytes\t%d in %.2f s\n", r.Bytes, r.ElapsedS)
	fmt.Fprintf(t, "SHA-256\t%s\n", equal)
	fmt.Fprintf(t, "time to first byte\t%.1f ms\n", r.TTFBS*1e3)
	fmt.Fprintf(t, "goodput\t%.1f Mbit/s (paced)\n", r.GoodputBPS/1e6)
	fmt.Fprintf(t, "failover gap\t%.1f ms (longest silence between two Data around the kill of %s after %.1f s;\n\tof the whole transfer: %.1f ms)\n",
		r.FailoverGapS*1e3, r.killed, r.killedAt.Seconds(), r.longestGapS*1e3)
	fmt.Fprintf(t, "retransmissions\t%d by the consumer\n", r.retransmissions)
	fmt.Fprintf(t, "\nnode\tcache bytes\thits\tmisses\n")
	for _, n := range r.Nodes {
		note := ""
		if n.Name == r.killed {
			note = "\t(killed; its last word)"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d%s\n", n.Name, n.CSBytes, n.CSHits, n.CSMisses, note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
