// Command shares measures how strategies share two paths, and draws it.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"example.com/leastloaded"
	"ndnpop/cdnbench"
	"ndnpop/sim"
	"ndnpop/strategy/strategies"
)

const network = `
until = "10s"
link = [
  { a = "client", b = "edge", delay = "1ms" },
  { a = "edge", b = "east", rate = "20Mbit", delay = "5ms", queue = "60kB" },
  { a = "edge", b = "west", rate = "10Mbit", delay = "10ms", queue = "60kB", loss = "0.1%" },
  { a = "east", b = "origin", delay = "1ms" },
  { a = "west", b = "origin", delay = "1ms" },
]
node = [{ name = "client" }, { name = "edge" }, { name = "east" }, { name = "west" }, { name = "origin" }]
producer = [{ node = "origin", prefix = "/cdn", size = "1GB", segment = 1000 }]
fetch = [{ node = "client", name = "/cdn/film", controller = "cubic" }]

event = [ # for three seconds the faster path is the slower one
  { at = "4s", link = "edge-east", do = "set", rate = "5Mbit" },
  { at = "7s", link = "edge-east", do = "set", rate = "20Mbit" },
]
`

// measure runs the network once; the share of the eastern path is by time.
func measure(seed uint64, strategy string) (at, share []float64, err error) {
	all := append(strategies.Builtin(), leastloaded.Factory())
	n, until, err := sim.Load(strings.NewReader(network), sim.Config{Seed: seed, Strategies: all, Strategy: strategy})
	if err != nil {
		return nil, nil, err
	}
	edge := n.Node("edge")
	east := edge.LinkTo(n.Node("east")).BA.Probe(250 * time.Millisecond)
	west := edge.LinkTo(n.Node("west")).BA.Probe(250 * time.Millisecond)
	err = n.Run(until)
	for i, e := range east.Samples() {
		w := west.Samples()[i]
		at, share = append(at, e.At.Seconds()), append(share, e.Rate/max(1, e.Rate+w.Rate))
	}
	return at, share, err
}

func run(dir string, seeds []uint64) error {
	r := &cdnbench.Result{Scenario: "shares", Seed: seeds[0], Runs: len(seeds), Question: "Where do the Interests go?"}
	plot := cdnbench.Plot{Name: "shares", XLabel: "time (s)", YLabel: "share of the eastern path", At: []float64{4, 7}}
	for _, strategy := range []string{"best-route", "load-balance", "least-loaded"} {
		lines, err := sim.RunSeeds(seeds, func(seed uint64) (l cdnbench.Line, err error) {
			l.X, l.Y, err = measure(seed, strategy)
			return l, err
		})
		if err != nil {
			return err
		}
		for i, l := range lines {
			sum := 0.0
			for _, y := range l.Y {
				sum += y
			}
			r.Add(i, strategy, "share", sum/float64(len(l.Y)))
		}
		lines[0].Name = strategy
		plot.Lines = append(plot.Lines, lines[0])
	}
	r.Plots = append(r.Plots, plot)
	return r.Write(dir)
}

func main() {
	if err := run("results", sim.Seeds(5)); err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(os.Stderr, "results/report.md")
}
