package sim

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ndnpop/consumer"
	"ndnpop/consumer/cc"
	"ndnpop/face/lp"

	"github.com/pelletier/go-toml/v2"
)

// The tables of a network in TOML. Quantities are texts with their units.
type (
	fileText struct {
		Seed     *uint64        `toml:"seed"`
		Strategy string         `toml:"strategy"`
		Routing  string         `toml:"routing"`
		Until    durationText   `toml:"until"`
		Node     []nodeText     `toml:"node"`
		Link     []linkText     `toml:"link"`
		Chain    []chainText    `toml:"chain"`
		Dumbbell *dumbbellText  `toml:"dumbbell"`
		Tree     *treeText      `toml:"tree"`
		CDN      *cdnText       `toml:"cdn"`
		Producer []producerText `toml:"producer"`
		Fetch    []fetchText    `toml:"fetch"`
		Workload []workloadText `toml:"workload"`
		Event    []eventText    `toml:"event"`
	}
	nodeText struct {
		Name     string   `toml:"name"`
		CS       sizeText `toml:"cs"`
		CSPolicy string   `toml:"cs-policy"`
		Strategy string   `toml:"strategy"`
	}
	// paramsText are those that are given.
	paramsText struct {
		Rate         *rateText     `toml:"rate"`
		Delay        *durationText `toml:"delay"`
		Jitter       *durationText `toml:"jitter"`
		Noise        *durationText `toml:"noise"`
		Reorder      *bool         `toml:"reorder"`
		Loss         *shareText    `toml:"loss"`
		Burst        *burstText    `toml:"burst"`
		Queue        *sizeText     `toml:"queue"`
		QueuePackets *int          `toml:"queue-packets"`
		CoDel        *bool         `toml:"codel"`
	}
	burstText struct {
		ToBad    shareText `toml:"to-bad"`
		ToGood   shareText `toml:"to-good"`
		LossGood shareText `toml:"loss-good"`
		LossBad  shareText `toml:"loss-bad"`
	}
	linkText struct {
		A string `toml:"a"`
		B string `toml:"b"`
		paramsText
		Back       *paramsText `toml:"back"`
		HalfDuplex bool        `toml:"half-duplex"`
		Cost       uint64      `toml:"cost"`
		MTU        int         `toml:"mtu"`
		Marking    bool        `toml:"marking"`
		Reliable   bool        `toml:"reliable"`
		// How the reliable link repairs losses; 0 means what lp.Reliability
		// says there.
		ReliableWindow  int          `toml:"reliable-window"`
		ReliableRetries int          `toml:"reliable-retries"`
		StopAndWait     bool         `toml:"stop-and-wait"`
		AckDelay        durationText `toml:"ack-delay"`
		Unprotected     []string     `toml:"unprotected"`
		Shaping         bool         `toml:"shaping"` // of Interests, to the link's rates
	}
	chainText struct {
		Prefix string   `toml:"prefix"`
		Nodes  int      `toml:"nodes"`
		Node   nodeText `toml:"node"`
		Link   linkText `toml:"link"`
	}
	dumbbellText struct {
		Pairs      int        `toml:"pairs"`
		Node       nodeText   `toml:"node"`
		Left       []linkText `toml:"left"` // used in turn
		Right      []linkText `toml:"right"`
		Bottleneck linkText   `toml:"bottleneck"`
	}
	treeText struct {
		Fanout []int    `toml:"fanout"`
		Node   nodeText `toml:"node"`
		Link   linkText `toml:"link"`
	}
	cdnText struct {
		Edges          int      `toml:"edges"`
		ClientsPerEdge int      `toml:"clients-per-edge"`
		Mids           int      `toml:"mids"`
		MidsPerEdge    int      `toml:"mids-per-edge"`
		Origins        int      `toml:"origins"`
		Client         nodeText `toml:"client"`
		Edge           nodeText `toml:"edge"`
		Mid            nodeText `toml:"mid"`
		Origin         nodeText `toml:"origin"`
		Access         linkText `toml:"access"`
		Metro          linkText `toml:"metro"`
		Core           linkText `toml:"core"`
	}
	producerText struct {
		Node    string   `toml:"node"`
		Prefix  string   `toml:"prefix"`
		Size    sizeText `toml:"size"`
		Segment int      `toml:"segment"`
		Cost    uint64   `toml:"cost"`
	}
	fetchText struct {
		Node       string            `toml:"node"`
		Name       string            `toml:"name"`
		Start      durationText      `toml:"start"`
		Controller string            `toml:"controller"`
		Options    map[string]string `toml:"options"`
		Probe      durationText      `toml:"probe"`
		MaxCwnd    float64           `toml:"max-cwnd"`
		HopByHop   bool              `toml:"hop-by-hop"`
	}
	workloadText struct {
		Clients    []string     `toml:"clients"` // a * at the end stands for any rest
		Prefix     string       `toml:"prefix"`
		Objects    int          `toml:"objects"`
		Zipf       float64      `toml:"zipf"`
		Rate       float64      `toml:"rate"`
		Start      durationText `toml:"start"`
		Until      durationText `toml:"until"`
		Max        int          `toml:"max"`
		Controller string       `toml:"controller"`
	}
	eventText struct {
		At   durationText `toml:"at"`
		Link string       `toml:"link"` // a-b
		Node string       `toml:"node"`
		// Do is up, down, black-hole or set for a link, kill, crash or
		// restart for a node, and reroute for neither. What set does not name
		// stays as it is.
		Do string `toml:"do"`
		paramsText
	}
)

// in gives parameters the values that are in the text.
func (p *paramsText) in(o Params) Params {
	give(&o.Rate, p.Rate)
	give(&o.Delay, p.Delay)
	give(&o.Jitter, p.Jitter)
	give(&o.Noise, p.Noise)
	give(&o.Queue, p.Queue)
	if p.Reorder != nil {
		o.Reorder = *p.Reorder
	}
	if p.QueuePackets != nil {
		o.QueuePackets = *p.QueuePackets
	}
	if p.CoDel != nil {
		o.CoDel.On = *p.CoDel
	}
	if p.Loss != nil {
		o.Loss, o.Burst = float64(*p.Loss), GilbertElliott{}
	}
	if b := p.Burst; b != nil {
		if p.Loss == nil {
			o.Loss = 0
		}
		o.Burst = GilbertElliott{
			ToBad: float64(b.ToBad), ToGood: float64(b.ToGood),
			LossGood: float64(b.LossGood), LossBad: float64(b.LossBad),
		}
	}
	return o
}

func give[T, U ~int64](to *T, v *U) {
	if v != nil {
		*to = T(*v)
	}
}

func (p *paramsText) params() Params { return p.in(Params{}) }

func (l *linkText) config() LinkConfig {
	c := LinkConfig{
		Params: l.params(), HalfDuplex: l.HalfDuplex, Cost: l.Cost, MTU: l.MTU,
		Reliability: lp.Reliability{
			On: l.Reliable, Window: l.ReliableWindow, MaxRetx: l.ReliableRetries,
			StopAndWait: l.StopAndWait, AckDelay: time.Duration(l.AckDelay),
		},
		Unprotected: l.Unprotected,
	}
	if l.Back != nil {
		back := l.Back.params()
		c.Back = &back
	}
	if l.Shaping {
		c.Shaping = &lp.Shaping{}
	}
	if l.Marking {
		c.Marking = &lp.Marking{}
	}
	return c
}

func (x *nodeText) config() NodeConfig {
	return NodeConfig{CS: int64(x.CS), CSPolicy: x.CSPolicy, Strategy: x.Strategy}
}

// Load makes the network that r describes in TOML. Seed, Strategy and Routing
// of the file replace those of cfg where it has them. It returns for how long
// the file wants to be run. Unknown keys are refused. The example of this
// function shows all tables.
func Load(r io.Reader, cfg Config) (*Network, time.Duration, error) {
	var f fileText
	d := toml.NewDecoder(r).DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrSetup, explain(err))
	}
	if f.Seed != nil {
		cfg.Seed = *f.Seed
	}
	if f.Strategy != "" {
		cfg.Strategy = f.Strategy
	}
	routings := map[string]Routing{"": cfg.Routing, "all": RouteAll, "shortest": RouteShortest, "none": RouteNone}
	routing, ok := routings[f.Routing]
	if !ok {
		return nil, 0, fmt.Errorf("%w: routing %q: want all, shortest or none", ErrSetup, f.Routing)
	}
	cfg.Routing = routing
	n := New(cfg)
	l := loader{n}
	l.topology(&f)
	l.traffic(&f)
	for i := range f.Event {
		l.event(&f.Event[i])
	}
	return n, time.Duration(f.Until), n.err
}

// explain makes go-toml's errors say where.
func explain(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		return errors.New("unknown keys:\n" + unknown.String())
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return fmt.Errorf("line %d, column %d: %w", row, column, err)
	}
	return err
}

type loader struct{ n *Network }

// node finds a node; another one stands in for one that does not exist.
func (l loader) node(name, what string) *Node {
	if x := l.n.Node(name); x != nil {
		return x
	}
	l.n.fail(fmt.Errorf("%s: there is no node %q", what, name))
	return nil
}

func (l loader) topology(f *fileText) {
	n := l.n
	for i := range f.Node {
		n.AddNode(f.Node[i].Name, f.Node[i].config())
	}
	for i := range f.Chain {
		c := &f.Chain[i]
		n.Chain(c.Prefix, c.Nodes, c.Node.config(), c.Link.config())
	}
	if d := f.Dumbbell; d != nil {
		turn := func(of []linkText) func(int) LinkConfig {
			if len(of) == 0 {
				return nil
			}
			return func(i int) LinkConfig { return of[i%len(of)].config() }
		}
		n.Dumbbell(DumbbellConfig{
			Pairs: d.Pairs, Node: d.Node.config(), Bottleneck: d.Bottleneck.config(),
			Left: turn(d.Left), Right: turn(d.Right),
		})
	}
	if t := f.Tree; t != nil {
		n.Tree(TreeConfig{
			Fanout: t.Fanout,
			Node:   func(int) NodeConfig { return t.Node.config() },
			Link:   func(int) LinkConfig { return t.Link.config() },
		})
	}
	if c := f.CDN; c != nil {
		n.CDN(CDNConfig{
			Edges: c.Edges, ClientsPerEdge: c.ClientsPerEdge, Mids: c.Mids, MidsPerEdge: c.MidsPerEdge, Origins: c.Origins,
			Client: c.Client.config(), Edge: c.Edge.config(), Mid: c.Mid.config(), Origin: c.Origin.config(),
			Access: c.Access.config(), Metro: c.Metro.config(), Core: c.Core.config(),
		})
	}
	for i := range f.Link {
		k := &f.Link[i]
		a, b := l.node(k.A, "link"), l.node(k.B, "link")
		if a != nil && b != nil {
			n.Connect(a, b, k.config())
		}
	}
}

func (l loader) traffic(f *fileText) {
	n := l.n
	for _, p := range f.Producer {
		if x := l.node(p.Node, "producer"); x != nil {
			n.AddProducer(x, ProducerConfig{Prefix: p.Prefix, Size: int64(p.Size), Segment: p.Segment, Cost: p.Cost})
		}
	}
	for _, c := range f.Fetch {
		if x := l.node(c.Node, "fetch"); x != nil {
			fc := FetchConfig{
				Name: c.Name, Start: time.Duration(c.Start), Controller: c.Controller,
				Params: cc.Params{Options: c.Options, MaxCwnd: c.MaxCwnd}, Probe: time.Duration(c.Probe),
			}
			if c.HopByHop {
				fc.Consumer = (*consumer.Config).HopByHop
			}
			n.AddFetch(x, fc)
		}
	}
	for _, w := range f.Workload {
		n.AddWorkload(Workload{
			Clients: l.nodes(w.Clients), Prefix: w.Prefix, Objects: w.Objects, Zipf: w.Zipf, Rate: w.Rate,
			Start: time.Duration(w.Start), Until: time.Duration(w.Until), Max: w.Max,
			Fetch: FetchConfig{Controller: w.Controller},
		})
	}
}

// nodes finds those of several names, with a * for any rest of a name.
func (l loader) nodes(names []string) (found []*Node) {
	for _, name := range names {
		prefix, any := strings.CutSuffix(name, "*")
		if !any {
			if x := l.node(name, "workload"); x != nil {
				found = append(found, x)
			}
			continue
		}
		for _, x := range l.n.nodes {
			if strings.HasPrefix(x.name, prefix) {
				found = append(found, x)
			}
		}
	}
	return found
}

func (l loader) event(e *eventText) {
	n := l.n
	var do func()
	var choices string
	switch {
	case e.Link != "" && e.Node != "":
		n.fail(fmt.Errorf("event at %v: it names a link and a node", time.Duration(e.At)))
		return
	case e.Link != "":
		k := l.link(e.Link)
		if k == nil {
			return
		}
		choices = "up, down, black-hole or set"
		do = map[string]func(){
			"up": k.Up, "down": k.Down, "black-hole": k.BlackHole,
			"set": func() {
				for _, d := range []*Direction{k.AB, k.BA} {
					n.fail(d.Set(e.in(d.Params())))
				}
			},
		}[e.Do]
	case e.Node != "":
		x := l.node(e.Node, "event")
		if x == nil {
			return
		}
		choices = "kill, crash or restart"
		do = map[string]func(){"kill": x.Kill, "crash": x.Crash, "restart": x.Restart}[e.Do]
	default:
		choices = "reroute"
		do = map[string]func(){"reroute": n.Reroute}[e.Do]
	}
	if do != nil && e.Do != "set" && e.paramsText != (paramsText{}) {
		n.fail(fmt.Errorf("event at %v: only set takes parameters", time.Duration(e.At)))
	}
	if do == nil {
		n.fail(fmt.Errorf("event at %v: do = %q: want %s", time.Duration(e.At), e.Do, choices))
		return
	}
	n.At(time.Duration(e.At), do)
}

func (l loader) link(name string) *Link {
	for _, k := range l.n.links {
		if k.String() == name || k.B.name+"-"+k.A.name == name {
			return k
		}
	}
	l.n.fail(fmt.Errorf("event: there is no link %q", name))
	return nil
}
