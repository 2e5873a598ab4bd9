package dataplane

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"ndnpop/cdnbench/peer"
)

// chain is what one run needs: forwarders, and a producer at the far end.
type chain struct {
	dir  string
	fws  []*peer.Process
	put  *peer.Process
	near string // the first forwarder's socket
	all  []*peer.Process
}

type chainUsage struct{ fw, put peer.Usage }

func (c *chain) usage() (u chainUsage, err error) {
	for _, p := range c.fws {
		one, err := p.Usage()
		if err != nil {
			return u, err
		}
		u.fw.CPU += one.CPU
		u.fw.PeakRSS = max(u.fw.PeakRSS, one.PeakRSS)
	}
	u.put, err = c.put.Usage()
	return u, err
}

func (c *chain) stop() {
	for i := len(c.all) - 1; i >= 0; i-- {
		c.all[i].Stop()
	}
}

func transportEnv(socket string) []string { return []string{"NDN_CLIENT_TRANSPORT=unix://" + socket} }

func (c *chain) consumerEnv() []string { return transportEnv(c.near) }

// storeBytes is the content store where it should not matter, and where it
// should hold the object.
func (b *bench) storeBytes(a arm) int64 {
	if a.cached {
		return b.object(a).size * 6 / 5 // with what a packet takes beside its content
	}
	return 8_000_000
}

// newChain starts everything. The chain is returned with an error too, so
// that what runs can be stopped.
func (b *bench) newChain(ctx context.Context, dir string, a arm) (*chain, error) {
	c := &chain{dir: dir}
	hosts := len(a.chain) + 1
	ports, err := freePorts(hosts)
	if err != nil {
		return nil, err
	}
	socket := func(i int) string { return filepath.Join(dir, fmt.Sprintf("fw%d.sock", i)) }
	c.near = socket(0)
	// From the far end, so that each finds its neighbour.
	for i := hosts - 1; i >= 0; i-- {
		name := fmt.Sprintf("fw%d", i)
		next := ""
		if i < len(a.chain) {
			next = fmt.Sprintf("%s4://127.0.0.1:%d", a.chain[i], ports[i+1])
		}
		var argv []string
		if a.ndnd {
			argv, err = b.ndndForwarder(dir, name, socket(i), ports[i], a)
		} else {
			argv, err = b.ndnpopForwarder(dir, name, socket(i), ports[i], next, a)
		}
		if err != nil {
			return c, err
		}
		p, err := peer.Start(dir, name, nil, nil, nil, argv...)
		if err != nil {
			return c, err
		}
		c.fws, c.all = append(c.fws, p), append(c.all, p)
		err = peer.Until(ctx, 10*time.Second, name+" to listen", func() bool {
			conn, err := net.Dial("unix", socket(i))
			if err == nil {
				conn.Close()
			}
			return err == nil || p.Ended()
		})
		if err == nil && p.Ended() {
			err = p.Wait(ctx)
		}
		if err != nil {
			return c, err
		}
	}
	if a.ndnd {
		for i := range a.chain {
			next := fmt.Sprintf("face=%s://127.0.0.1:%d", a.chain[i], ports[i+1])
			p, err := peer.Start(dir, "route", transportEnv(socket(i)), nil, nil, b.ndnd, "fw", "route-add", "prefix=/bench", next)
			if err != nil {
				return c, err
			}
			if err := p.Wait(ctx); err != nil {
				return c, err
			}
		}
	}
	return c, b.publish(ctx, c, socket(hosts-1), a)
}

func (b *bench) publish(ctx context.Context, c *chain, socket string, a arm) (err error) {
	if a.ndnd {
		in, err := os.Open(b.object(a).file)
		if err != nil {
			return err
		}
		defer in.Close()
		if c.put, err = peer.Start(c.dir, "put", transportEnv(socket), in, nil, b.ndnd, "put", "--expose", objectName); err != nil {
			return err
		}
		c.all = append(c.all, c.put)
		return peer.Until(ctx, time.Minute, "ndnd put to register", func() bool { return c.put.LogHas("Registered route") })
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c.put, err = peer.Start(c.dir, "put", transportEnv(socket), nil, w, b.o.Ndnpop, "put", "-p", "-s", fmt.Sprint(segmentSize), objectName, b.object(a).file)
	w.Close() // the child has its own
	if err != nil {
		return err
	}
	c.all = append(c.all, c.put)
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		return c.put.Wait(ctx)
	}
	return nil
}

func (b *bench) ndnpopForwarder(dir, name, socket string, port int, next string, a arm) ([]string, error) {
	conf := fmt.Sprintf("[faces.udp]\nlisten = [\"127.0.0.1:%d\"]\n[faces.tcp]\nlisten = [\"127.0.0.1:%d\"]\n", port, port) +
		fmt.Sprintf("[faces.unix]\npath = %q\n[admin]\nlisten = \"\"\n[cs]\ncapacity = \"%dB\"\n", socket, b.storeBytes(a))
	if next != "" {
		conf += fmt.Sprintf("[[face]]\nuri = %q\nname = \"next\"\n[[route]]\nprefix = \"/bench\"\nface = \"next\"\n", next)
	}
	path := filepath.Join(dir, name+".toml")
	return []string{b.o.Ndnpop, "run", "-c", path}, os.WriteFile(path, []byte(conf), 0o600)
}

// ndndForwarder configures ndnd as does best in each case: two forwarding
// threads, and from the content store its default of eight.
func (b *bench) ndndForwarder(dir, name, socket string, port int, a arm) ([]string, error) {
	threads := 2
	if a.cached {
		threads = 8
	}
	conf := fmt.Sprintf(`core:
  log_level: WARN
faces:
  udp: {enabled_unicast: true, enabled_multicast: false, port_unicast: %d, default_mtu: 8800}
  tcp: {enabled: true, port_unicast: %d}
  unix: {enabled: true, socket_path: %s}
  websocket: {enabled: false}
fw: {threads: %d}
tables:
  content_store: {capacity: %d}
`, port, port, socket, threads, min(b.storeBytes(a)/segmentSize, 65535))
	path := filepath.Join(dir, name+".yml")
	return []string{b.ndnd, "fw", "run", path}, os.WriteFile(path, []byte(conf), 0o600)
}

// freePorts finds ports that neither UDP nor TCP uses now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		t, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer t.Close() // at the end, so that no port is found twice
		ports = append(ports, t.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
