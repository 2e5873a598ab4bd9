package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/consumer/replica"
	"ndnpop/ndn"
)

// replicaFlags are the flags of cat about replicas, as given.
type replicaFlags struct {
	replicas    []string
	twoLevel    bool
	noTwoLevel  bool
	multiSource bool
}

func (r *replicaFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringSliceVar(&r.replicas, "replicas", nil, "delegations (`NAME,…`) under which the content lies, too, for forwarding hints")
	fl.BoolVar(&r.twoLevel, "two-level", false, "leave a replica whose path is heavily congested or silent; on with --replicas")
	fl.BoolVar(&r.noTwoLevel, "no-two-level", false, "stay with the replica that answers first")
	fl.BoolVar(&r.multiSource, "multi-source", false, "fetch from all --replicas, and what the network finds by NAME, at once")
}

// plan checks the flags. further makes the controllers of further replicas.
func (r *replicaFlags) plan(cfg *consumer.Config, further func() (cc.Controller, error)) error {
	switch {
	case r.twoLevel && r.noTwoLevel:
		return errors.New("--two-level and --no-two-level exclude each other")
	case r.twoLevel && r.multiSource:
		return errors.New("--two-level and --multi-source exclude each other: who uses all replicas need not choose")
	case r.multiSource && len(r.replicas) == 0:
		return errors.New("--multi-source needs --replicas")
	case len(r.replicas) >= replica.Max:
		return fmt.Errorf("--replicas: %d names: want %d at most", len(r.replicas), replica.Max-1)
	}
	seen := map[string]bool{}
	for _, s := range r.replicas {
		n, err := ndn.ParseName(s)
		switch {
		case err != nil:
			return fmt.Errorf("--replicas: %w", err)
		case len(n) == 0:
			return fmt.Errorf("--replicas: %q is an empty name", s)
		case seen[n.String()]:
			return fmt.Errorf("--replicas: %s is there twice", n)
		}
		seen[n.String()] = true
		cfg.Replicas = append(cfg.Replicas, consumer.Replica{Hint: []ndn.Name{n}})
	}
	cfg.MultiSource, cfg.NewController = r.multiSource, further
	if r.switches() {
		cfg.TwoLevel = &replica.Config{}
	}
	return nil
}

// switches reports whether the fetch may go on with another replica.
func (r *replicaFlags) switches() bool {
	return r.twoLevel || len(r.replicas) > 0 && !r.noTwoLevel && !r.multiSource
}

// catReplica is what came from one replica, in the summary. The first one, with
// an empty name, is what the network finds by the content's name.
type catReplica struct {
	Name     string  `json:"name"`
	Segments uint64  `json:"segments"`
	Bytes    uint64  `json:"bytes"` // of Data packets
	RTTMin   float64 `json:"rtt_min_s"`
}

// catSwitch is one change of the replica. After one that the network made, on
// request, the name is the same.
type catSwitch struct {
	At      float64 `json:"t_s"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Network bool    `json:"network"`
	Why     string  `json:"why"`
}

// addReplicas fills in what a fetch did with replicas, if it knows any.
func (s *catSummary) addReplicas(cfg *consumer.Config, st *consumer.Stats, of []consumer.ReplicaStats, changes []consumer.ReplicaSwitch) {
	name := func(i int) string {
		if i == 0 {
			return ""
		}
		return cfg.Replicas[i-1].Hint[0].String()
	}
	if len(of) > 1 {
		for i, r := range of {
			s.Replicas = append(s.Replicas, catReplica{name(i), r.Segments, r.Bytes, r.RTTMin.Seconds()})
		}
	}
	for _, c := range changes {
		s.SwitchLog = append(s.SwitchLog, catSwitch{
			At: c.At.Sub(st.Started).Seconds(), From: name(c.From), To: name(c.To), Network: c.Network, Why: c.Why.String(),
		})
	}
}

// replicaLines say for people what came from where.
func (s *catSummary) replicaLines() string {
	var b strings.Builder
	show := func(name string) string {
		if name == "" {
			return "the network's choice"
		}
		return name
	}
	for _, c := range s.SwitchLog {
		to := show(c.To)
		if c.Network {
			to = "another replica of the network's choice"
		}
		fmt.Fprintf(&b, "\nafter %.2f s from %s to %s: %s", c.At, show(c.From), to, c.Why)
	}
	for _, r := range s.Replicas {
		fmt.Fprintf(&b, "\n%s from %s", count(r.Segments, "segment"), show(r.Name))
		if r.Segments > 0 {
			fmt.Fprintf(&b, ", rtt at least %.2f ms", r.RTTMin*1e3)
		}
	}
	return b.String()
}

// pipelineOptions reads name=value pairs.
func pipelineOptions(given []string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	o := make(map[string]string, len(given))
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--pipeline-option %q: want name=value", g)
		}
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("--pipeline-option %s is given twice", name)
		}
		o[name] = value
	}
	return o, nil
}
