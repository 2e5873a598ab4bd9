//go:build linux

package cdn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/peer/web"
)

// httpConfig is what tells one HTTP arm from another.
type httpConfig struct {
	// paper is the set-up of S3: caches with the server's defaults that ask their
	// parents in turn, and Apache httpd at the origins. Otherwise the caches are
	// tuned, prefer one parent, and nginx is at the origins.
	paper bool
	// slices has caches keep and fetch objects in blocks.
	slices bool
	// steered is for experiments that call Steer.
	steered    bool
	congestion string // of TCP at all nodes
	window     int    // TCP's first, in packets; 0 is the kernel's ten
}

// origin is the server at the origins.
func (c httpConfig) origin() web.OriginKind {
	if c.paper {
		return web.Httpd
	}
	return web.Nginx
}

// sliceBlock is the size of a block, the server's own default, in bytes.
const sliceBlock = 1 << 20

const (
	// stall is how long the client waits for content before it breaks off and
	// resumes; resumePause is what lies between two attempts at the least.
	stall       = 3 * time.Second
	resumePause = 50 * time.Millisecond
)

// ats is an arm of HTTP: Apache Traffic Server at edge and intermediates.
func ats(c httpConfig) Kind {
	name := "ATS tuned"
	switch {
	case c.paper:
		name = "ATS as in the paper"
	case c.slices:
		name = "ATS tuned, slices"
	}
	name += ", " + c.congestion
	if c.window > 0 {
		name += ", ndnpop's first window"
	}
	return Kind{
		Name: name, HTTP: true,
		Missing: func() error { return congestionMissing(c.congestion) },
		Prepare: func(ctx context.Context, o cdnbench.Options) error {
			return web.Ensure(ctx, o.Log, c.origin(), c.slices)
		},
		Start: func(ctx context.Context, t *Topology) (Arm, error) { return startHTTP(ctx, t, c) },
	}
}

// atsKinds are the HTTP arms of an experiment; in a reduced run those that are
// expected to do best. Experiments that call Steer ask for arms that can.
func atsKinds(quick, steered bool) (kinds []Kind) {
	for _, c := range []httpConfig{
		{congestion: "cubic"}, {congestion: "bbr"},
		{paper: true, congestion: "cubic"}, {slices: true, congestion: "cubic"}, {slices: true, congestion: "bbr"},
	} {
		if c.steered = steered; !quick || !c.paper && !c.slices {
			kinds = append(kinds, ats(c))
		}
	}
	return kinds
}

// congestionMissing says why TCP cannot use a congestion control here.
func congestionMissing(name string) error {
	var have []string
	for _, load := range []bool{false, true} {
		if load { // the kernel may have it as a module
			_ = exec.Command("modprobe", "tcp_"+name).Run()
		}
		b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		if err != nil {
			return err
		}
		if have = strings.Fields(string(b)); slices.Contains(have, name) {
			return nil
		}
	}
	return fmt.Errorf("this kernel has no TCP %s, only %s", name, strings.Join(have, ", "))
}

// httpArm is a network of caches and origin servers.
type httpArm struct {
	t       *Topology
	c       httpConfig
	dir     string
	origins [2]*web.Origin
	caches  map[Node]*web.Cache
}

func startHTTP(ctx context.Context, t *Topology, c httpConfig) (_ Arm, err error) {
	a := &httpArm{t: t, c: c, caches: map[Node]*web.Cache{}}
	if a.dir, err = os.MkdirTemp(t.Scratch, "http-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Stop())
		}
	}()
	if err := os.Chmod(a.dir, 0o755); err != nil {
		return nil, err
	}
	log := t.Options.Log
	for _, h := range t.Hosts {
		if err := h.SetCongestionControl(c.congestion); err != nil {
			return nil, err
		}
		if err := h.SetInitCwnd(c.window); err != nil {
			return nil, err
		}
		// A tuned server does not forget what a connection can carry when it has
		// been idle for a moment.
		forget := "0"
		if c.paper {
			forget = "1"
		}
		if err := h.Sysctl("net.ipv4.tcp_slow_start_after_idle", forget); err != nil {
			return nil, err
		}
	}
	for i, n := range []Node{Origin1, Origin2} {
		if a.origins[i], err = web.StartOrigin(ctx, log, c.origin(), t.Hosts[n], filepath.Join(a.dir, n.String()), t.ObjectDir); err != nil {
			return nil, err
		}
	}
	for _, n := range []Node{Mid1, Mid2, Edge} { // each after its parents
		if a.caches[n], err = web.StartCache(ctx, log, a.cache(n)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *httpArm) cache(n Node) web.CacheConfig {
	c := web.CacheConfig{
		Host: a.t.Hosts[n], Dir: filepath.Join(a.dir, n.String()), Bytes: a.t.CacheBytes,
		Parents: a.parents(n), Tuned: !a.c.paper, Origins: n != Edge,
	}
	if n == Edge {
		c.RoundRobin, c.Managed = a.c.paper, a.c.steered
	}
	if a.c.slices {
		if c.Ranges = true; n == Edge {
			c.Block = sliceBlock
		}
	}
	return c
}

func (a *httpArm) parents(n Node) []netip.Addr {
	links := a.t.Mids
	if n != Edge {
		links = a.t.Origins[n-Mid1]
	}
	return []netip.Addr{links[0].B.Prefix.Addr(), links[1].B.Prefix.Addr()}
}

// Held implements Arm. What a cache holds includes headers.
func (a *httpArm) Held(ctx context.Context, n Node) (int64, error) {
	c := a.caches[n]
	if c == nil {
		return 0, fmt.Errorf("there is no cache at %s", n)
	}
	return c.Held(ctx)
}

// Forget implements Arm.
func (a *httpArm) Forget(ctx context.Context, n Node) error {
	c := a.caches[n]
	if c == nil {
		return fmt.Errorf("there is no cache at %s", n)
	}
	if err := c.Clear(ctx); err != nil || n == Edge {
		return err
	}
	return a.caches[Edge].Warm(ctx)
}

// Steer implements Arm.
func (a *httpArm) Steer(ctx context.Context, mid Node) error {
	p := a.parents(Edge)
	if mid == Mid2 {
		slices.Reverse(p)
	}
	return a.caches[Edge].SetParents(ctx, p)
}

// Kill implements Arm.
func (a *httpArm) Kill(n Node) error {
	switch n {
	case Edge, Mid1, Mid2:
		return a.caches[n].Kill()
	case Origin1, Origin2:
		return a.origins[n-Origin1].Kill()
	}
	return fmt.Errorf("nothing runs at %s", n)
}

// Stop implements Arm.
func (a *httpArm) Stop() error {
	var errs []error
	for _, n := range []Node{Edge, Mid1, Mid2} {
		if c := a.caches[n]; c != nil {
			errs = append(errs, c.Kill())
		}
	}
	for _, o := range a.origins {
		if o != nil {
			errs = append(errs, o.Kill())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}

// Fetch implements Arm: curl at the client, again from where it broke if asked
// to resume.
func (a *httpArm) Fetch(ctx context.Context, f Fetch) (r Fetched, err error) {
	want, end := f.Object.SHA256, f.Object.Size
	q := web.Request{Host: a.t.Hosts[Client], To: a.t.Access.B.Prefix.Addr(), Path: "/" + f.Object.Name, Kept: f.Kept}
	if f.Offset > 0 || f.Length > 0 {
		if f.Length > 0 {
			end = f.Offset + f.Length
		}
		q.End = end
		if want, err = rangeSHA256(f.Object.Path(a.t), f.Offset, end-f.Offset); err != nil {
			return r, err
		}
	}
	if f.Resume {
		q.Stall = stall
	}
	arrived := newArrivals(f.Progress)
	for {
		q.Offset = f.Offset + arrived.bytes
		reply, err := web.Get(ctx, q, func(reply *web.Reply, from io.Reader) error { return receive(arrived, &r, q.Offset, reply, from) })
		if err != nil {
			return r, err
		}
		if r.First == 0 {
			r.First = reply.First
		}
		if r.Err = reply.Err; f.Offset+arrived.bytes >= end || !f.Resume || ctx.Err() != nil {
			break
		}
		r.Again++
		q.End, q.Kept = end, false
		select {
		case <-ctx.Done():
		case <-time.After(resumePause):
		}
	}
	r.Points, r.Bytes = arrived.points, arrived.bytes
	if len(r.Points) > 0 {
		// What the program needed to start is not the network's doing.
		started := r.Points[0].At - r.First
		for i := range r.Points {
			r.Points[i].At -= started
		}
		r.Elapsed = r.Points[len(r.Points)-1].At
	}
	switch {
	case ctx.Err() != nil && f.Offset+r.Bytes < end:
		r.Elapsed = time.Since(arrived.begin)
		r.Err = fmt.Errorf("curl: not complete after %v: %w", r.Elapsed.Round(time.Millisecond), ctx.Err())
	case r.Err == nil && arrived.sum() != want:
		r.Err = errors.New("curl: the bytes that arrived are not those of the object")
	}
	return r, nil
}

// receive reads a reply whose content is wanted from offset on.
func receive(arrived *arrivals, r *Fetched, offset int64, reply *web.Reply, from io.Reader) error {
	if reply.Status != http.StatusOK && reply.Status != http.StatusPartialContent {
		_, err := io.Copy(io.Discard, from) // the text of an error
		return err
	}
	if reply.Start > offset {
		return fmt.Errorf("the server sent content from byte %d, wanted was %d", reply.Start, offset)
	}
	n, err := io.CopyN(io.Discard, from, offset-reply.Start)
	if r.Twice += n; errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	return arrived.read(from)
}
