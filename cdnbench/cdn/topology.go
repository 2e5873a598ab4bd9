//go:build linux

package cdn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"ndnpop/cdnbench"
	"ndnpop/cdnbench/emunet"
)

// Node is a place in the topology.
type Node int

// The nodes of S3's figure 1.
const (
	Client Node = iota
	Edge        // the client-side cache
	Mid1        // intermediate caches
	Mid2
	Origin1
	Origin2
	nodes
)

func (n Node) String() string {
	return [...]string{"client", "edge", "mid1", "mid2", "origin1", "origin2"}[n]
}

// Object is a file that both origins serve.
type Object struct {
	Name   string // of the file in Topology.Objects, "5000000.bin"
	Size   int64  // bytes
	SHA256 string // hex
}

// Path is where the object lies on this machine.
func (o Object) Path(t *Topology) string { return filepath.Join(t.ObjectDir, o.Name) }

// Layout says what to build.
type Layout struct {
	// OneWay reads the paper's delays as one way instead of round trip.
	OneWay   bool
	Lossless bool
	Seed     uint64
	Sizes    []int64 // of the objects, in bytes
	// CacheBytes is the capacity of each cache; 0 is the 2 GB of the paper.
	CacheBytes int64
}

// Topology is S3's figure 1 over emulated links:
//
//	client – 50 ms – edge – 10 ms – mid1, mid2 – 20 ms – origin1
//	                                           – 50 ms – origin2
//
// Both intermediates reach both origins. All links carry 100 Mbit/s.
type Topology struct {
	Layout
	Net   *emunet.Network
	Hosts [nodes]*emunet.Host

	Access  *emunet.Link       // from Client to Edge
	Mids    [2]*emunet.Link    // from Edge to Mid1, Mid2
	Origins [2][2]*emunet.Link // [mid][origin], from the intermediate to the origin

	ObjectDir string // holds the objects, and nothing else
	Objects   []Object
	Scratch   string // for files of the arms
	Options   cdnbench.Options

	calibration []emunet.Calibration
}

const (
	linkRate    = 100_000_000 // bit/s
	accessQueue = 625_000     // bytes: one bandwidth-delay product of the client's RTT
	coreQueue   = 250_000
	accessLoss  = 0.0008 // per packet and direction
	coreLoss    = 0.0001
	paperCache  = 2_000_000_000 // bytes
)

// delays of the paper, read as round trips.
const (
	accessRTT  = 50 * time.Millisecond
	midRTT     = 10 * time.Millisecond
	originRTT  = 20 * time.Millisecond
	origin2RTT = 50 * time.Millisecond
)

// NewTopology builds hosts, links and objects below dir. Close it.
func NewTopology(dir string, o cdnbench.Options, l Layout) (_ *Topology, err error) {
	if l.CacheBytes == 0 {
		l.CacheBytes = paperCache
	}
	t := &Topology{Layout: l, Options: o, ObjectDir: filepath.Join(dir, "objects"), Scratch: filepath.Join(dir, "scratch")}
	for _, d := range []string{t.ObjectDir, t.Scratch} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	for _, size := range l.Sizes {
		x, err := writeObject(t.ObjectDir, size, l.Seed)
		if err != nil {
			return nil, err
		}
		t.Objects = append(t.Objects, x)
	}
	// The user-space emulator everywhere: its losses follow the seed, so that
	// all arms of a run meet the same dice.
	if t.Net, err = emunet.New(emunet.Options{Emulator: emunet.TUN, Seed: l.Seed}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Net.Close())
		}
	}()
	for n := range nodes {
		if t.Hosts[n], err = t.Net.AddHost(n.String()); err != nil {
			return nil, err
		}
	}
	if t.Access, err = t.link(Client, Edge, accessRTT, accessQueue, accessLoss); err != nil {
		return nil, err
	}
	for i, mid := range []Node{Mid1, Mid2} {
		if t.Mids[i], err = t.link(Edge, mid, midRTT, coreQueue, coreLoss); err != nil {
			return nil, err
		}
	}
	for i, mid := range []Node{Mid1, Mid2} {
		for k, origin := range []Node{Origin1, Origin2} {
			rtt := []time.Duration{originRTT, origin2RTT}[k]
			if t.Origins[i][k], err = t.link(mid, origin, rtt, coreQueue, coreLoss); err != nil {
				return nil, err
			}
		}
	}
	for _, h := range t.Hosts {
		// The kernel's caps would be the limit instead of the links.
		if err := h.SetTCPBuffers(16<<20, 16<<20); err != nil {
			return nil, err
		}
	}
	return t, t.Net.RouteAll()
}

// link adds one of the paper's links.
func (t *Topology) link(a, b Node, rtt time.Duration, queue int64, loss float64) (*emunet.Link, error) {
	p := emunet.Params{Delay: t.Read(rtt) / 2, Rate: linkRate, Queue: queue, Loss: loss}
	if t.Lossless {
		p.Loss = 0
	}
	return t.Net.AddLink(t.Hosts[a], t.Hosts[b], emunet.LinkConfig{AB: p, BA: p})
}

// Read is the round trip that a delay of the paper means in this topology.
func (t *Topology) Read(delay time.Duration) time.Duration {
	if t.OneWay {
		return 2 * delay
	}
	return delay
}

// Calibrate measures the links before a run; what is off by more than 5 % is
// measured again, and then refused.
func (t *Topology) Calibrate(ctx context.Context) (err error) {
	t.calibration, err = t.Net.Calibrate(ctx, emunet.CalibrateConfig{})
	return err
}

// Carried is how many bytes a link has delivered in both directions since the
// last Reset of the network.
func Carried(l *emunet.Link) (int64, error) {
	a, err := l.Counters(emunet.AB)
	if err != nil {
		return 0, err
	}
	b, err := l.Counters(emunet.BA)
	return a.OutBytes + b.OutBytes, err
}

// Close ends everything that runs in the topology.
func (t *Topology) Close() error { return t.Net.Close() }

func writeObject(dir string, size int64, seed uint64) (Object, error) {
	o := Object{Name: fmt.Sprintf("%d.bin", size), Size: size}
	f, err := os.Create(filepath.Join(dir, o.Name))
	if err != nil {
		return o, err
	}
	h := sha256.New()
	var key [32]byte
	for i := range 8 {
		key[i], key[8+i] = byte(seed>>(8*i)), byte(size>>(8*i))
	}
	_, err = io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8(key), size)
	o.SHA256 = hex.EncodeToString(h.Sum(nil))
	return o, errors.Join(err, f.Close())
}
