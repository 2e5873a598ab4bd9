//go:build linux

package cdn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer"
	"ndnpop/face/dial"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
	"ndnpop/ndn"
)

const (
	ndnPrefix  = "/cdn"
	ndnPort    = 6363
	ndnSegment = 8000 // bytes of content
	// maxAge is how long caches may answer without asking the origin, on both
	// sides: that of HTTP's Cache-Control, the freshness of segments and of
	// metadata.
	maxAge = time.Hour
	// What the edge's routes to the intermediates cost, and one that an operator
	// steers by.
	costFirst, costSecond, costSteered = 10, 20, 5
)

// ndnConfig is what tells one ndnpop arm from another.
type ndnConfig struct {
	strategy string // at the edge and the intermediates
	pipeline string
	initCwnd float64 // packets; 0 is the pipeline's own
	params   string  // of the strategy, as TOML: "a = 1"
	// reliable has neighbours repair what their link loses (NDNLPv2 reliability);
	// the consumer leaves repair to them, and bounds its window.
	reliable bool
	// unrepaired has no link repair its losses, as between forwarders without the
	// feature.
	unrepaired bool
}

// tcpInitial is TCP's first window of ten segments of 1460 bytes in our
// packets.
const tcpInitial = 10. * 1460 / ndnSegment

// ndnInitial is a first window of ten segments in TCP's packets.
const ndnInitial = (10*ndnSegment + 1459) / 1460

// linkRetries is how often a reliable link repeats a frame. What is sent again
// after a failure can fill a queue so that a frame is lost more than once.
const linkRetries = 8

// reliableLinks is what names of arms with ndnConfig.reliable have.
const reliableLinks = "reliable links"

// window is the bound of a consumer that leaves repair to the links, in
// packets: a quarter more than the path to the first origin holds.
func (t *Topology) window() int {
	rtt := t.Read(accessRTT + midRTT + originRTT)
	return int(1.25 * linkRate / 8 * rtt.Seconds() / ndnSegment)
}

// ndnpop is an arm of this program.
func ndnpop(c ndnConfig) Kind {
	name := "ndnpop " + c.strategy + ", " + c.pipeline
	if c.reliable {
		name += ", " + reliableLinks
	}
	if c.unrepaired {
		name += ", links without repair"
	}
	if c.initCwnd > 0 {
		name += ", TCP's first window"
	}
	return Kind{Name: name, Start: func(ctx context.Context, t *Topology) (Arm, error) { return startNDN(ctx, t, c) }}
}

// ndnArm is a network of ndnpop processes. A forwarder runs at every node, that
// of the client without a cache; a producer at each origin.
type ndnArm struct {
	t   *Topology
	c   ndnConfig
	dir string
	cmd [nodes][]*emunet.Cmd
}

func startNDN(ctx context.Context, t *Topology, c ndnConfig) (_ Arm, err error) {
	a := &ndnArm{t: t, c: c}
	if a.dir, err = os.MkdirTemp(t.Scratch, "ndn-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop())
		}
	}()
	// From the far end, so that each finds its neighbours.
	for n := nodes - 1; n >= 0; n-- {
		config := filepath.Join(a.dir, n.String()+".toml")
		if err := os.WriteFile(config, []byte(a.config(n)), 0o600); err != nil {
			return nil, err
		}
		if _, err := a.start(n, "run", "run", "-c", config); err != nil {
			return nil, err
		}
		err := peer.Until(ctx, 10*time.Second, n.String()+" to answer", func() bool {
			_, err := a.csInfo(ctx, n)
			return err == nil
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, lastLine(a.log(n, "run")))
		}
		if n == Origin1 || n == Origin2 {
			if err := a.publish(ctx, n); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

// route is a next hop of a node.
type route struct {
	to   Node
	link *emunet.Link
	cost int
}

func (a *ndnArm) routes(n Node) []route {
	t := a.t
	switch n {
	case Client:
		return []route{{Edge, t.Access, costFirst}}
	case Edge:
		return []route{{Mid1, t.Mids[0], costFirst}, {Mid2, t.Mids[1], costSecond}}
	case Mid1, Mid2:
		l := t.Origins[n-Mid1]
		return []route{{Origin1, l[0], costFirst}, {Origin2, l[1], costSecond}}
	}
	return nil
}

// uri is the face of a next hop, whose end of the link is B.
func (r route) uri() string { return fmt.Sprintf("udp4://%s:%d", r.link.B.Prefix.Addr(), ndnPort) }

func (a *ndnArm) config(n Node) string {
	var b strings.Builder
	capacity := a.t.CacheBytes
	if n != Edge && n != Mid1 && n != Mid2 {
		capacity = 0
	}
	fmt.Fprintf(&b, "[faces.udp]\nlisten = [\"0.0.0.0:%d\"]\n", ndnPort)
	reliable := ""
	switch {
	case a.c.reliable:
		reliable = "reliability = true\n"
		fmt.Fprintf(&b, "%sreliability_retries = %d\n", reliable, linkRetries)
	case a.c.unrepaired:
		reliable = "reliability = false\n"
		b.WriteString(reliable)
	}
	b.WriteString("[faces.tcp]\nlisten = []\n")
	fmt.Fprintf(&b, "[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n[cs]\ncapacity = \"%dB\"\n", a.socket(n), capacity)
	for _, r := range a.routes(n) {
		fmt.Fprintf(&b, "[[face]]\nuri = %q\nname = %q\n%s", r.uri(), r.to, reliable)
		fmt.Fprintf(&b, "[[route]]\nprefix = %q\nface = %q\ncost = %d\n", ndnPrefix, r.to, r.cost)
	}
	if n == Edge || n == Mid1 || n == Mid2 {
		fmt.Fprintf(&b, "[[strategy]]\nprefix = %q\nstrategy = %q\nparams = { %s }\n", ndnPrefix, a.c.strategy, a.c.params)
	}
	return b.String()
}

func (a *ndnArm) socket(n Node) string { return filepath.Join(a.dir, n.String()+".sock") }

func (a *ndnArm) log(n Node, what string) string {
	return filepath.Join(a.dir, n.String()+"-"+what+".log")
}

// start starts this program at a node, talking to its forwarder.
func (a *ndnArm) start(n Node, what string, args ...string) (*emunet.Cmd, error) {
	c := a.command(n, args...)
	log, err := os.Create(a.log(n, what))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting %s at %s: %w", what, n, err)
	}
	a.cmd[n] = append(a.cmd[n], c)
	return c, nil
}

func (a *ndnArm) command(n Node, args ...string) *emunet.Cmd {
	c := a.t.Hosts[n].Command(a.t.Options.Ndnpop, args...)
	c.Dir, c.Env = a.dir, append(os.Environ(), "NDN_CLIENT_TRANSPORT=unix://"+a.socket(n))
	return c
}

// publish serves the objects at an origin and returns when it does.
func (a *ndnArm) publish(ctx context.Context, n Node) error {
	age := fmt.Sprint(maxAge.Milliseconds())
	_, err := a.start(n, "put", "put", "-p", "-s", fmt.Sprint(ndnSegment), "-f", age, "--metadata-freshness", age,
		"--version", "1", ndnPrefix, a.t.ObjectDir)
	if err != nil {
		return err
	}
	err = peer.Until(ctx, 10*time.Second, "the producer at "+n.String(), func() bool {
		b, err := os.ReadFile(a.log(n, "put"))
		return err == nil && strings.Contains(string(b), ndnPrefix)
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(a.log(n, "put")))
	}
	return nil
}

// manage talks to the forwarder of a node.
func (a *ndnArm) manage(ctx context.Context, n Node, f func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tr, err := dial.Open("unix://" + a.socket(n))
	if err != nil {
		return err
	}
	c := client.New(tr, client.Options{})
	defer c.Close()
	return f(ctx, c)
}

func (a *ndnArm) csInfo(ctx context.Context, n Node) (info mgmt.CsInfo, err error) {
	err = a.manage(ctx, n, func(ctx context.Context, c *client.Client) error {
		b, err := c.Dataset(ctx, "cs", "info", nil)
		if err != nil {
			return err
		}
		info, err = mgmt.ParseCsInfo(b)
		return err
	})
	return info, err
}

// Held implements Arm. Each Data counts as a full segment: the last one of an
// object is shorter, and the metadata holds the content's start once more.
func (a *ndnArm) Held(ctx context.Context, n Node) (int64, error) {
	info, err := a.csInfo(ctx, n)
	return int64(info.Entries) * ndnSegment, err
}

// Forget implements Arm.
func (a *ndnArm) Forget(_ context.Context, n Node) error {
	c := a.command(n, "ctl", "cs", "erase", "/")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("erasing the content store of %s: %w: %s", n, err, out)
	}
	return nil
}

// Steer implements Arm.
func (a *ndnArm) Steer(ctx context.Context, mid Node) error {
	return a.manage(ctx, Edge, func(ctx context.Context, c *client.Client) error {
		b, err := c.Dataset(ctx, "faces", "list", nil)
		if err != nil {
			return err
		}
		faces, err := mgmt.ParseFaceStatuses(b)
		if err != nil {
			return err
		}
		prefix, err := ndn.ParseName(ndnPrefix)
		if err != nil {
			return err
		}
		for _, r := range a.routes(Edge) {
			i := slices.IndexFunc(faces, func(f mgmt.FaceStatus) bool { return f.URI == r.uri() })
			if i < 0 {
				return fmt.Errorf("the edge has no face to %s", r.to)
			}
			cost := r.cost
			if r.to == mid {
				cost = costSteered
			}
			p := mgmt.ControlParameters{
				Name: optional.Some(prefix), FaceID: optional.Some(faces[i].FaceID),
				Origin: optional.Some(mgmt.OriginStatic), Cost: optional.Some(uint64(cost)),
			}
			if _, err := c.Command(ctx, "rib", "register", &p); err != nil {
				return err
			}
		}
		return nil
	})
}

// Kill implements Arm. It looks for no processes: that would take as long as some
// of what is measured afterwards, and a processor from the node.
func (a *ndnArm) Kill(n Node) error {
	var errs []error
	for _, c := range a.cmd[n] {
		if err := c.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stop implements Arm.
func (a *ndnArm) Stop() error {
	var errs []error
	for n := range nodes {
		errs = append(errs, a.Kill(n))
		for _, c := range a.cmd[n] {
			_ = c.Wait() // it was killed
		}
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}

// lastLine is the end of a log, which says why something failed.
func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
