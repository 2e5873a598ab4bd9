package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"ndnpop/face/dial"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
)

// demoObject is the prefix of the published file.
const demoObject = "/ndnpop/demo/file"

// demoSeconds is about how long the paced transfer takes.
const demoSeconds = 4

// overlay is the demo's network of real processes:
//
//	cat - edge - mid1 - origin - put
//	         \ - mid2 - /
type overlay struct {
	exe   string
	dir   string
	nodes []*overlayNode
	tools []*child
}

type overlayNode struct {
	demoNode
	child  *child
	config string
	socket string
	port   int
}

// child is a process of the overlay. Its standard error goes to a file, whose
// end explains a failure.
type child struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has ended
	err  error         // valid after done
}

func newOverlay(dir string) (*overlay, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program's own path: %w", err)
	}
	o := &overlay{exe: exe, dir: dir}
	ports, err := freeUDPPorts(4)
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"edge", "mid1", "mid2", "origin"} {
		o.nodes = append(o.nodes, &overlayNode{
			demoNode: demoNode{Name: name}, port: ports[i],
			config: filepath.Join(dir, name+".toml"), socket: filepath.Join(dir, name+".sock"),
		})
	}
	edge, mid1, mid2, origin := o.nodes[0], o.nodes[1], o.nodes[2], o.nodes[3]
	type hop struct {
		to   *overlayNode
		cost int
	}
	for n, hops := range map[*overlayNode][]hop{
		edge: {{mid1, 10}, {mid2, 20}}, mid1: {{origin, 10}}, mid2: {{origin, 10}}, origin: nil,
	} {
		var b strings.Builder
		fmt.Fprintf(&b, "[faces.udp]\nlisten = [\"127.0.0.1:%d\"]\n[faces.tcp]\nlisten = []\n", n.port)
		fmt.Fprintf(&b, "[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n", n.socket)
		for _, h := range hops {
			fmt.Fprintf(&b, "[[face]]\nuri = \"udp4://127.0.0.1:%d\"\nname = %q\npersistency = \"permanent\"\n", h.to.port, h.to.Name)
			fmt.Fprintf(&b, "[[route]]\nprefix = %q\nface = %q\ncost = %d\n", demoObject, h.to.Name, h.cost)
		}
		if n == edge {
			fmt.Fprintf(&b, "[[strategy]]\nprefix = %q\nstrategy = \"failover\"\n", demoObject)
		}
		if err := os.WriteFile(n.config, []byte(b.String()), 0o600); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// freeUDPPorts finds ports that nobody uses now.
func freeUDPPorts(n int) ([]int, error) {
	var ports []int
	for range n {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("looking for a free UDP port: %w", err)
		}
		defer c.Close() // at the end, so that no port is found twice
		ports = append(ports, c.LocalAddr().(*net.UDPAddr).Port)
	}
	return ports, nil
}

// demoFile returns the file to publish.
func demoFile(dir string, f *demoFlags) (path string, size int64, err error) {
	path = f.file
	if path == "" && f.size == 0 {
		path = goToolchainFile()
	}
	if path == "" {
		if f.size == 0 {
			f.size = 25_000_000
		}
		path = filepath.Join(dir, "generated")
		w, err := os.Create(path)
		if err != nil {
			return "", 0, err
		}
		_, err = io.CopyN(w, rand.NewChaCha8([32]byte{'d', 'e', 'm', 'o'}), f.size)
		if err = errors.Join(err, w.Close()); err != nil {
			return "", 0, fmt.Errorf("generating a file of %d bytes: %w", f.size, err)
		}
	}
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return "", 0, err
	case !fi.Mode().IsRegular():
		return "", 0, fmt.Errorf("%s is not a regular file", path)
	case fi.Size() == 0:
		return "", 0, fmt.Errorf("%s is empty; there is nothing to transfer", path)
	}
	return path, fi.Size(), nil
}

// goToolchainFile finds a large file of the Go installation, "" if there is
// none.
func goToolchainFile() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	root := strings.TrimSpace(string(out))
	for _, p := range []string{
		filepath.Join(root, "pkg", "tool", runtime.GOOS+"_"+runtime.GOARCH, "compile"),
		filepath.Join(root, "bin", "go"),
	} {
		if fi, err := os.Stat(p); err == nil && fi.Size() > 10_000_000 {
			return p
		}
	}
	return ""
}

// start starts a command of this program.
func (o *overlay) start(name, socket string, stdout io.Writer, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(o.exe, args...), log: filepath.Join(o.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	c.cmd.Stderr, c.cmd.Stdout = log, stdout
	c.cmd.Env = append(os.Environ(), "NDN_CLIENT_TRANSPORT=unix://"+socket)
	// A terminal's ^C reaches the demo alone, which then stops its children.
	c.cmd.SysProcAttr = ownGroup()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// failure describes a child that ended when it should not have.
func (c *child) failure(name string) error {
	log, _ := os.ReadFile(c.log)
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	return fmt.Errorf("%s ended: %v: %s", name, c.err, lines[len(lines)-1])
}

// stop ends all children that are left and waits for them.
func (o *overlay) stop() {
	all := o.tools
	for _, n := range o.nodes {
		if n.child != nil {
			all = append(all, n.child)
		}
	}
	for _, c := range all {
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, c := range all {
		select {
		case <-c.done:
		case <-time.After(5 * time.Second):
			_ = c.cmd.Process.Kill()
			<-c.done
		}
	}
}

// startNodes starts the forwarders and waits until each answers.
func (o *overlay) startNodes(ctx context.Context) error {
	for _, n := range o.nodes {
		c, err := o.start(n.Name, n.socket, nil, "run", "-c", n.config)
		if err != nil {
			return err
		}
		n.child = c
	}
	for _, n := range o.nodes {
		err := await(ctx, 10*time.Second, func() (bool, error) {
			select {
			case <-n.child.done:
				return false, n.child.failure(n.Name)
			default:
			}
			return n.refresh(ctx) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("forwarder %s does not answer: %w", n.Name, err)
		}
	}
	return nil
}

// await polls a condition until it holds.
func await(ctx context.Context, limit time.Duration, cond func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := cond(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// publish starts the producer and waits until it says that it serves.
func (o *overlay) publish(ctx context.Context, file string) error {
	origin := o.nodes[len(o.nodes)-1]
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := o.start("put", origin.socket, w, "put", "-p", demoObject, file)
	w.Close() // the child has its own
	if err != nil {
		return err
	}
	o.tools = append(o.tools, c)
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(r).ReadString('\n')
		line <- s
	}()
	select {
	case s := <-line:
		if s == "" {
			<-c.done
			return c.failure("put")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transfer runs the demo proper.
func (o *overlay) transfer(ctx context.Context, live io.Writer, file string, size int64) (*demoResult, error) {
	fmt.Fprintf(live, "starting four forwarders on loopback UDP, and a producer of %s (%d bytes)\n", file, size)
	if err := o.startNodes(ctx); err != nil {
		return nil, err
	}
	if err := o.publish(ctx, file); err != nil {
		return nil, err
	}
	out, stats, trace := filepath.Join(o.dir, "fetched"), filepath.Join(o.dir, "stats.json"), filepath.Join(o.dir, "trace.jsonl")
	begin := time.Now()
	cat, err := o.start("cat", o.nodes[0].socket, nil, "cat", demoObject, "-o", out, "--stats", stats, "--trace", trace,
		"--progress", "never", "--pacing", fmt.Sprintf("%dbit", max(size*8/demoSeconds, 1000)))
	if err != nil {
		return nil, err
	}
	o.tools = append(o.tools, cat)
	res := &demoResult{file: file}
	if err := o.watch(ctx, live, cat, size, begin, res); err != nil {
		return nil, err
	}
	if cat.err != nil {
		return nil, cat.failure("cat")
	}
	res.ElapsedS = time.Since(begin).Seconds()
	if err := errors.Join(res.readStats(stats), res.readTrace(trace)); err != nil {
		return nil, err
	}
	want, err := fileSHA256(file)
	if err != nil {
		return nil, err
	}
	got, err := fileSHA256(out)
	if err != nil {
		return nil, err
	}
	res.SHA256Equal = want == got
	for _, n := range o.nodes {
		if n.Name != res.killed {
			if err := n.refresh(ctx); err != nil {
				return nil, fmt.Errorf("asking %s about its cache: %w", n.Name, err)
			}
		}
		res.Nodes = append(res.Nodes, n.demoNode)
	}
	return res, nil
}

// watch prints a line a second, kills the serving intermediate when a third of
// the file is through, and returns when the fetch has ended.
func (o *overlay) watch(ctx context.Context, live io.Writer, cat *child, size int64, begin time.Time, res *demoResult) error {
	edge, mids := o.nodes[0], o.nodes[1:3]
	poll := time.NewTicker(25 * time.Millisecond)
	defer poll.Stop()
	var before uint64
	last := begin
	line := func(now time.Time) {
		serving := "nobody"
		if n := o.serving(mids, res.killed); n != nil {
			serving = n.Name
		}
		fmt.Fprintf(live, "%4.1f s  %5.1f %%  %7.1f Mbit/s  through %s\n", now.Sub(begin).Seconds(),
			min(100, 100*float64(edge.CSBytes)/float64(size)),
			float64(edge.CSBytes-before)*8/now.Sub(last).Seconds()/1e6, serving)
		before, last = edge.CSBytes, now
	}
	for {
		select {
		case <-cat.done:
			line(time.Now())
			if res.killed == "" && cat.err == nil {
				return errors.New("the transfer was over before anything could be killed; try a larger file")
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case now := <-poll.C:
			for _, n := range o.nodes {
				if n.Name != res.killed {
					_ = n.refresh(ctx) // the next poll asks again
				}
			}
			if n := o.serving(mids, ""); res.killed == "" && n != nil && edge.CSBytes > uint64(size)/3 {
				if err := n.child.cmd.Process.Kill(); err != nil {
					return fmt.Errorf("killing %s: %w", n.Name, err)
				}
				<-n.child.done
				res.killed, res.killedAt = n.Name, time.Since(begin)
				fmt.Fprintf(live, "%4.1f s  kill -9 %s, which served\n", res.killedAt.Seconds(), n.Name)
			}
			if now.Sub(last) >= time.Second {
				line(now)
			}
		}
	}
}

// serving is the intermediate that has passed the most Data, leaving out one.
func (o *overlay) serving(mids []*overlayNode, without string) *overlayNode {
	var best *overlayNode
	for _, n := range mids {
		if n.Name != without && n.CSBytes > 0 && (best == nil || n.CSBytes > best.CSBytes) {
			best = n
		}
	}
	return best
}

func (r *demoResult) readStats(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s struct {
		Bytes   int64   `json:"bytes"`
		Retx    int64   `json:"retransmissions"`
		TTFB    float64 `json:"ttfb_s"`
		Goodput float64 `json:"goodput_bps"`
		MaxGap  float64 `json:"max_gap_s"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("the summary of cat: %w", err)
	}
	r.retransmissions = s.Retx
	r.Bytes, r.TTFBS, r.GoodputBPS, r.longestGapS = s.Bytes, s.TTFB, s.Goodput, s.MaxGap
	return nil
}

// aroundKill is how long before and after the kill a silence counts as its
// doing: what a busy machine does at other times is not. The trace's clock
// starts a little after ours.
const aroundKill = time.Second

// readTrace finds the longest silence between two Data around the kill.
func (r *demoResult) readTrace(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	from, to := (r.killedAt - aroundKill/4).Seconds(), (r.killedAt + aroundKill).Seconds()
	last := -1.0
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		var e struct {
			T    float64 `json:"t"`
			Kind string  `json:"kind"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("the trace of cat: %w", err)
		}
		if e.Kind != "data" {
			continue
		}
		if last >= from && last <= to {
			r.FailoverGapS = max(r.FailoverGapS, e.T-last)
		}
		last = e.T
	}
}

func fileSHA256(path string) (sum [32]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [32]byte(h.Sum(nil)), nil
}

// refresh asks the forwarder about its content store.
func (n *overlayNode) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tr, err := dial.Open("unix://" + n.socket)
	if err != nil {
		return err
	}
	c := client.New(tr, client.Options{})
	defer c.Close()
	b, err := c.Dataset(ctx, "cs", "info", nil)
	if err != nil {
		return err
	}
	cs, err := mgmt.ParseCsInfo(b)
	if err != nil {
		return err
	}
	n.CSHits, n.CSMisses = cs.Hits, cs.Misses
	n.CSBytes, _ = cs.DataBytes.Get()
	return nil
}
