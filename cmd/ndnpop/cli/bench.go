package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/cdn"
	"ndnpop/cdnbench/dataplane"
	"ndnpop/cdnbench/papers"
)

// virtual are the experiments in virtual time, which the group papers runs.
func virtual() []cdnbench.Scenario {
	return []cdnbench.Scenario{
		papers.Loss{}, papers.Replica{}, papers.Fairness{}, papers.MpcSingle{}, papers.MpcFlows{}, papers.MpcBuffers{},
		papers.Mixture{}, papers.Marking{}, papers.HopByHop{}, papers.HopFairness{}, papers.CdnSim{}, papers.Scale{},
	}
}

// rootless are the experiments that need no privileges, which the group all
// runs.
func rootless() []cdnbench.Scenario { return append(virtual(), dataplane.Scenario{}) }

// scenarios are the experiments, in the order of their listing.
func scenarios() []cdnbench.Scenario { return append(rootless(), cdn.Scenarios()...) }

// expand replaces the names of groups by those of their scenarios.
func expand(names []string) (out []string) {
	for _, n := range names {
		var group []cdnbench.Scenario
		switch n {
		case "papers":
			group = virtual()
		case "cdn":
			group = cdn.Scenarios()
		case "all":
			group = rootless()
		default:
			out = append(out, n)
		}
		for _, s := range group {
			out = append(out, s.Name())
		}
	}
	return out
}

func newBenchCmd(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Run the experiments",
		Example: "  ndnpop bench list\n  ndnpop bench run dataplane --out results",
		Args:    usageArgs(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchListCmd(e), newBenchRunCmd(e), newBenchRelayCmd())
	return c
}

// scenarioJSON is a line of the listing as --json prints it.
type scenarioJSON struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func newBenchListCmd(e *env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the experiments",
		Example: "  ndnpop bench list",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			var list []scenarioJSON
			for _, s := range scenarios() {
				list = append(list, scenarioJSON{s.Name(), s.About()})
			}
			if asJSON {
				return printJSON(e.stdout, list)
			}
			t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
			for _, s := range list {
				fmt.Fprintf(t, "%s\t%s\n", s.Name, s.About)
			}
			fmt.Fprintf(t, "papers\tall of these that run in virtual time\ncdn\tall that run real processes over emulated links; they need root\nall\tall of these that need no root\n")
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newBenchRunCmd(e *env) *cobra.Command {
	var out, progress string
	o := cdnbench.Options{Log: e.stderr}
	c := &cobra.Command{
		Use:   "run SCENARIO…",
		Short: "Run experiments and write their reports",
		Long: `Runs experiments and writes DIR/SCENARIO/ with result.json, samples.csv, report.md and
plots for each, and DIR/index.html, one page with all results below DIR.
Exits with 1 when a figure misses its band or an arm fails, and says which.
papers, cdn and all are groups of scenarios (see bench list). What runs in virtual
time is the same on any machine for the same --seed.

dataplane needs ndnd: it builds it from its module with the go command, or
takes the program that the environment variable NDND names.

The cdn experiments need Linux and root, for network namespaces. Where Apache
Traffic Server, nginx, Apache httpd or curl are absent they install the Debian
packages trafficserver, trafficserver-experimental-plugins, nginx, apache2-bin and
curl, before anything runs; their services are neither started nor enabled.
Everything that they start runs in the namespaces, from configuration of their own,
and ends with the run; if the run is killed, the next one removes what it left.`,
		Example: "  ndnpop bench run marking --quick\n  ndnpop bench run dataplane --out results --runs 5",
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			names := []cobra.Completion{"papers", "cdn", "all"}
			for _, s := range scenarios() {
				names = append(names, cobra.CompletionWithDesc(s.Name(), s.About()))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			found, err := cdnbench.Find(scenarios(), expand(args))
			if err != nil {
				return withCode(exitUsage, fmt.Errorf("%w; or a group: papers, cdn, all", err))
			}
			if o.Runs < 0 {
				return withCode(exitUsage, fmt.Errorf("--runs %d: want 1 or more", o.Runs))
			}
			if o.Progress, err = benchProgress(e, progress); err != nil {
				return withCode(exitUsage, err)
			}
			if o.Ndnpop, err = os.Executable(); err != nil {
				return err
			}
			// None is no obstacle to experiments that build nothing.
			if cache, err := os.UserCacheDir(); err == nil {
				o.Cache = filepath.Join(cache, "ndnpop")
			}
			if err := writable(out); err != nil {
				return err
			}
			if err := cdnbench.CheckMisses(scenarios()); err != nil {
				return err
			}
			if err := prepare(c.Context(), found, o); err != nil {
				return err
			}
			var order []string
			for _, s := range scenarios() {
				order = append(order, s.Name())
			}
			ok := true
			for _, s := range found {
				r, err := s.Run(c.Context(), o)
				if err != nil {
					if c.Context().Err() != nil {
						return withCode(exitInterrupted, errors.New("interrupted"))
					}
					return fmt.Errorf("%s: %w", s.Name(), err)
				}
				if err := r.Write(out); err != nil {
					return err
				}
				if err := cdnbench.WriteIndex(out, order...); err != nil {
					return err
				}
				if err := printResult(e, r); err != nil {
					return err
				}
				ok = ok && r.OK
			}
			if !ok {
				return errors.New("some figures miss their bands; they are marked MISS above")
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "bench-results", "write the reports below `DIR`")
	c.Flags().IntVar(&o.Runs, "runs", 0, "repeat `N` times (0: the experiment's own number)")
	c.Flags().Uint64Var(&o.Seed, "seed", cdnbench.DefaultSeed, "seed of everything random (`N`)")
	c.Flags().BoolVar(&o.Quick, "quick", false, "a reduced set")
	c.Flags().StringVar(&progress, "progress", "auto", "a line for each run that is done: `auto|always|never`; auto: on a terminal")
	completeWith(c, "progress", progressChoices)
	c.Flags().BoolVar(&o.OneWay, "one-way", false, "cdn: read the delays of the paper's topology as one way, not round trip")
	return c
}

// benchProgress is where what is done is told, nil where nobody watches.
func benchProgress(e *env, when string) (io.Writer, error) {
	switch {
	case !slices.Contains(progressChoices, when):
		return nil, fmt.Errorf("--progress %q: choose one of %s", when, strings.Join(progressChoices, ", "))
	case when == "always" || when == "auto" && isTerminal(e.stderr):
		return e.stderr, nil
	}
	return nil, nil
}

// prepare has everything at hand that the experiments need, before hours are
// spent on the first of them.
func prepare(ctx context.Context, found []cdnbench.Scenario, o cdnbench.Options) error {
	var errs []error
	for _, s := range found {
		if p, ok := s.(cdnbench.Preparer); ok {
			if err := p.Prepare(ctx, o); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", s.Name(), err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nothing was run: %w", err)
	}
	return nil
}

// writable makes a directory, and fails now if hours later nothing could be
// written to it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	f, err := os.CreateTemp(dir, ".ndnpop-")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// printResult prints the medians of each arm, and the checks.
func printResult(e *env, r *cdnbench.Result) error {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: medians [smallest..largest] of %d\n", r.Scenario, r.Runs)
	for _, a := range r.ArmNames() {
		fmt.Fprintf(t, "%s\n", a)
		keys := make([]string, 0, len(r.Arms[a]))
		for k := range r.Arms[a] {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			s := r.Arms[a][k]
			fmt.Fprintf(t, "  %s\t%.4g\t[%.4g..%.4g]\n", k, s.Median, s.Min, s.Max)
		}
	}
	if err := t.Flush(); err != nil { // the checks have columns of their own
		return err
	}
	for _, c := range r.Checks {
		mark := "ok"
		switch {
		case c.Unjudged:
			mark = "not judged"
		case c.OK:
		case c.Known != "":
			mark = "known miss"
		default:
			mark = "MISS"
		}
		fmt.Fprintf(t, "%s\t%s: %.4g\t(%s; %s)\n", mark, c.What, c.Measured, c.Band, c.Paper)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := r.Judged(); n < len(r.Checks) {
		_, err := fmt.Fprintf(e.stdout, "%s: %d of %d checks were judged; this run does not show that the others are met\n", r.Scenario, n, len(r.Checks))
		return err
	}
	return nil
}
