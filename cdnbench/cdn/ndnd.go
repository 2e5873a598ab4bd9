//go:build linux

package cdn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer"
)

// errNot is what an arm answers that cannot do something.
var errNot = errors.New("this arm cannot do that")

// ndnd is an arm of ndnd's forwarder and tools, with their defaults. Its
// producer takes one object from standard input and gives it a version of its
// own, so only the first origin serves. Its tools say nothing about times:
// those count from the start of the program.
func ndnd() Kind {
	return Kind{
		Name: "ndnd " + peer.NdndVersion, Peer: true, Start: startNdnd,
		Prepare: func(ctx context.Context, o cdnbench.Options) error {
			_, err := peer.Ndnd(ctx, o.Cache)
			return err
		},
	}
}

type ndndArm struct {
	t   *Topology
	bin string
	dir string
	all []*emunet.Cmd
}

func startNdnd(ctx context.Context, t *Topology) (_ Arm, err error) {
	a := &ndndArm{t: t}
	if a.bin, err = peer.Ndnd(ctx, t.Options.Cache); err != nil {
		return nil, err
	}
	if a.dir, err = os.MkdirTemp(t.Scratch, "ndnd-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop())
		}
	}()
	for n := nodes - 1; n >= 0; n-- {
		if err := a.forwarder(ctx, n); err != nil {
			return nil, err
		}
	}
	for _, o := range t.Objects {
		if err := a.publish(ctx, o); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *ndndArm) socket(n Node) string { return filepath.Join(a.dir, n.String()+".sock") }

func (a *ndndArm) command(n Node, args ...string) *emunet.Cmd {
	c := a.t.Hosts[n].Command(a.bin, args...)
	c.Dir, c.Env = a.dir, append(os.Environ(), "NDN_CLIENT_TRANSPORT=unix://"+a.socket(n))
	return c
}

// start starts a program with its output in a log, whose path it returns.
func (a *ndndArm) start(c *emunet.Cmd, name string) (log string, err error) {
	log = filepath.Join(a.dir, name+".log")
	f, err := os.Create(log)
	if err != nil {
		return log, err
	}
	defer f.Close() // the child has its own
	c.Stdout, c.Stderr = f, f
	if err := c.Start(); err != nil {
		return log, fmt.Errorf("starting %s: %w", name, err)
	}
	a.all = append(a.all, c)
	return log, nil
}

// forwarder starts that of a node, with its routes.
func (a *ndndArm) forwarder(ctx context.Context, n Node) error {
	packets := int64(0)
	if n == Edge || n == Mid1 || n == Mid2 {
		packets = min(a.t.CacheBytes/ndnSegment, 65535) // no more is possible
	}
	conf := fmt.Sprintf(`core:
  log_level: WARN
faces:
  udp: {enabled_unicast: true, enabled_multicast: false, port_unicast: %d, default_mtu: 1400}
  tcp: {enabled: false}
  unix: {enabled: true, socket_path: %s}
  websocket: {enabled: false}
fw: {threads: 1}
tables:
  content_store: {capacity: %d}
`, ndnPort, a.socket(n), packets)
	path := filepath.Join(a.dir, n.String()+".yml")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return err
	}
	log, err := a.start(a.command(n, "fw", "run", path), n.String())
	if err != nil {
		return err
	}
	err = peer.Until(ctx, 10*time.Second, n.String()+" to listen", func() bool {
		conn, err := net.Dial("unix", a.socket(n))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(log))
	}
	routes := map[Node][]*emunet.Link{
		Client: {a.t.Access}, Edge: a.t.Mids[:], Mid1: a.t.Origins[0][:1], Mid2: a.t.Origins[1][:1],
	}
	for i, l := range routes[n] {
		c := a.command(n, "fw", "route-add", "prefix="+ndnPrefix, fmt.Sprintf("face=udp://%s:%d", l.B.Prefix.Addr(), ndnPort), fmt.Sprintf("cost=%d", costFirst*(i+1)))
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("route of %s: %w: %s", n, err, out)
		}
	}
	return nil
}

func (a *ndndArm) publish(ctx context.Context, o Object) error {
	in, err := os.Open(o.Path(a.t))
	if err != nil {
		return err
	}
	defer in.Close()
	c := a.command(Origin1, "put", "--expose", ndnPrefix+"/"+o.Name)
	c.Stdin = in
	log, err := a.start(c, "put-"+o.Name)
	if err != nil {
		return err
	}
	err = peer.Until(ctx, time.Minute, "ndnd put to register", func() bool {
		b, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(b), "Registered route")
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(log))
	}
	return nil
}

// Fetch implements Arm, of whole objects.
func (a *ndndArm) Fetch(ctx context.Context, f Fetch) (r Fetched, err error) {
	if f.Offset > 0 || f.Length > 0 {
		return r, fmt.Errorf("%w: ranges", errNot)
	}
	c := a.command(Client, "cat", ndnPrefix+"/"+f.Object.Name)
	path := filepath.Join(a.dir, "cat.log")
	log, err := os.Create(path)
	if err != nil {
		return r, err
	}
	defer log.Close()
	c.Stderr = log
	ended, arrived, err := output(ctx, c, f.Progress)
	if err != nil {
		return r, err
	}
	r.Points, r.Bytes = arrived.points, arrived.bytes
	if len(r.Points) > 0 {
		r.First, r.Elapsed = r.Points[0].At, r.Points[len(r.Points)-1].At
	}
	switch {
	case ctx.Err() != nil:
		r.Err = fmt.Errorf("ndnd cat: not complete: %w", ctx.Err())
	case ended != nil:
		r.Err = fmt.Errorf("ndnd cat: %w: %s", ended, lastLine(path))
	case arrived.sum() != f.Object.SHA256:
		r.Err = errors.New("ndnd cat: the bytes that arrived are not those of the object")
	}
	return r, nil
}

// Held implements Arm.
func (a *ndndArm) Held(context.Context, Node) (int64, error) {
	return 0, fmt.Errorf("%w: say what a cache holds", errNot)
}

// Forget implements Arm.
func (a *ndndArm) Forget(context.Context, Node) error {
	return fmt.Errorf("%w: empty a cache", errNot)
}

// Steer implements Arm.
func (a *ndndArm) Steer(context.Context, Node) error { return fmt.Errorf("%w: steer", errNot) }

// Kill implements Arm.
func (a *ndndArm) Kill(n Node) error {
	_, err := a.t.Hosts[n].Signal(unix.SIGKILL)
	return err
}

// Stop implements Arm.
func (a *ndndArm) Stop() error {
	var errs []error
	for n := range nodes {
		errs = append(errs, a.Kill(n))
	}
	for _, c := range a.all {
		_ = c.Wait() // it was killed
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}
