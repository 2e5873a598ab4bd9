//go:build linux

package emunet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ndnpop/internal/testbin"
	"ndnpop/ndn"
	"ndnpop/sim/line"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// childEnv makes the test binary play a process of its own.
const childEnv = "EMUNET_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "owner":
		ownerChild()
	case "supported":
		fmt.Println(Supported())
	}
}

var supported = sync.OnceValue(Supported)

// network returns a network that is closed with the test.
func network(t *testing.T, o Options) *Network {
	t.Helper()
	testbin.Need(t, supported())
	n, err := New(o)
	must(t, err)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func host(t *testing.T, n *Network, name string) *Host {
	t.Helper()
	h, err := n.AddHost(name)
	must(t, err)
	return h
}

// pair is two hosts and a link.
func pair(t *testing.T, o Options, p Params) (*Network, *Link) {
	t.Helper()
	n := network(t, o)
	l, err := n.AddLink(host(t, n, "a"), host(t, n, "b"), LinkConfig{AB: p, BA: p})
	must(t, err)
	return n, l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func listenUDP(t *testing.T, h *Host, a netip.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	must(t, h.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

func dialUDP(t *testing.T, h *Host, to net.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	must(t, h.Do(func() (err error) {
		c, err = net.DialUDP("udp", nil, to.(*net.UDPAddr))
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

// echo answers every datagram until the socket is closed.
func echo(c *net.UDPConn) {
	b := make([]byte, 2000)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		c.WriteToUDPAddrPort(b[:n], from)
	}
}

// rtt is the least of some round trips: what the machine's load adds is not the
// link's.
func rtt(t *testing.T, c *net.UDPConn) time.Duration {
	t.Helper()
	best := time.Hour
	b := make([]byte, 100)
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for range 10 {
		start := time.Now()
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	return best
}

// quiet repeats a run until the emulator was not disturbed in it, as users do.
// It reports whether there was such a run.
func quiet(t *testing.T, n *Network, run func()) bool {
	t.Helper()
	for range 8 {
		must(t, n.Reset(1))
		run()
		err := n.Verify()
		if err == nil {
			return true
		}
		t.Log("run discarded: ", err)
	}
	return false
}

// ratio fails unless got/want is within [lo, hi].
func ratio(t *testing.T, what string, got, want time.Duration, lo, hi float64) {
	t.Helper()
	r := float64(got) / float64(want)
	t.Logf("%s: %v, nominal %v, ratio %.3f", what, got, want, r)
	if r < lo || r > hi {
		t.Errorf("%s: %v is %.3f of %v, want %v to %v", what, got, r, want, lo, hi)
	}
}

func TestDelayAndItsChangeInMidRun(t *testing.T) {
	_, l := pair(t, Options{}, Params{Delay: 10 * time.Millisecond})
	s := listenUDP(t, l.B.Host, l.B.Prefix.Addr())
	go echo(s)
	c := dialUDP(t, l.A.Host, s.LocalAddr())
	ratio(t, "RTT", rtt(t, c), 20*time.Millisecond, 1, 1.2)
	must(t, l.Set(BA, Params{Delay: 30 * time.Millisecond}))
	ratio(t, "RTT after the change", rtt(t, c), 40*time.Millisecond, 1, 1.2)
	if l.Params(AB).Delay != 10*time.Millisecond || l.Params(BA).Delay != 30*time.Millisecond {
		t.Error("Params do not tell what was set")
	}
	if err := l.Set(AB, Params{Loss: 2}); !errors.Is(err, line.ErrParams) {
		t.Errorf("bad parameters: %v", err)
	}
}

// transfer sends bytes over TCP from b to a and returns the time from the first
// byte to the last.
func transfer(t *testing.T, l *Link, bytes int) time.Duration {
	t.Helper()
	var ln net.Listener
	must(t, l.B.Host.Do(func() (err error) {
		ln, err = net.Listen("tcp", netip.AddrPortFrom(l.B.Prefix.Addr(), 0).String())
		return err
	}))
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 64<<10)
		for left := bytes; left > 0; left -= len(b) {
			if _, err := c.Write(b[:min(left, len(b))]); err != nil {
				return
			}
		}
	}()
	var c net.Conn
	must(t, l.A.Host.Do(func() (err error) {
		c, err = net.Dial("tcp", ln.Addr().String())
		return err
	}))
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	var start time.Time
	got := 0
	for b := make([]byte, 64<<10); got < bytes; {
		n, err := c.Read(b)
		if start.IsZero() {
			start = time.Now()
		}
		if got += n; err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
	}
	return time.Since(start)
}

func TestTCPFillsTheLinkAndNoMore(t *testing.T) {
	const rate, bytes = 80e6, 4 << 20
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			n, l := pair(t, Options{Plain: plain}, Params{Delay: 2 * time.Millisecond, Rate: rate, Queue: 100_000})
			must(t, l.A.Host.SetCongestionControl("reno"))
			must(t, l.B.Host.SetCongestionControl("reno"))
			wire := bytes * 8.0 * 1500 / 1448 // bits: 1448 bytes of each 1500 are payload
			nominal := time.Duration(wire / rate * float64(time.Second))
			var took time.Duration
			hi := 1.3
			if !quiet(t, n, func() { took = transfer(t, l, bytes) }) {
				hi = 100 // a busy machine: the link is late, and still not too fast
			}
			ratio(t, "transfer", took, nominal, 0.93, hi)
			c, err := l.Counters(BA)
			must(t, err)
			t.Logf("%+v", c)
			if c.OutBytes < bytes || c.InPackets != c.OutPackets+c.QueueDrops+c.WaitingPackets+c.InFlightPackets {
				t.Errorf("counters %+v", c)
			}
		})
	}
}

func TestTCPSurvivesSplitSuperPackets(t *testing.T) {
	_, l := pair(t, Options{}, Params{Delay: time.Millisecond, Loss: 0.02})
	transfer(t, l, 2<<20)
	c, err := l.Counters(BA)
	must(t, err)
	if c.LossDrops == 0 {
		t.Errorf("nothing was lost: %+v", c)
	}
}

// TestLossIsExactAtASeed sends numbered datagrams and compares which ones are
// missing with what package line says for the seed.
func TestLossIsExactAtASeed(t *testing.T) {
	const packets, burst = 4000, 200
	p := Params{Delay: time.Millisecond, Loss: 0.03}
	n, l := pair(t, Options{Seed: 42}, p)
	s := listenUDP(t, l.B.Host, l.B.Prefix.Addr())
	must(t, s.SetReadBuffer(4<<20))
	c := dialUDP(t, l.A.Host, s.LocalAddr())
	predict := func(seed uint64) (lost []int) {
		pool := new(line.Pool)
		v, err := line.New(p, pool, seed, 0)
		must(t, err)
		b := make([]byte, 40)
		for i := range packets {
			before := v.Counters().LossDrops
			v.Push(ndn.Time(i+1), pool.Packet(b, false))
			if v.Counters().LossDrops > before {
				lost = append(lost, i)
			}
		}
		return lost
	}
	for _, seed := range []uint64{42, 43, 42} {
		must(t, n.Reset(seed))
		b := make([]byte, 8)
		for i := range packets {
			binary.BigEndian.PutUint64(b, uint64(i))
			if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
			if i%burst == burst-1 {
				eventually(t, "arrival in the emulator", func() bool {
					k, err := l.Counters(AB)
					must(t, err)
					return k.InPackets == int64(i+1)
				})
			}
		}
		want := predict(seed)
		var lost []int
		next := 0
		s.SetReadDeadline(time.Now().Add(20 * time.Second))
		for range packets - len(want) {
			if _, err := s.Read(b); err != nil {
				t.Fatal(err)
			}
			for id := int(binary.BigEndian.Uint64(b)); next < id; next++ {
				lost = append(lost, next)
			}
			next++
		}
		for ; next < packets; next++ {
			lost = append(lost, next)
		}
		if !slices.Equal(lost, want) {
			t.Errorf("seed %d: lost %v, want %v", seed, lost, want)
		}
		if k, _ := l.Counters(AB); k.DeviceDrops != 0 || k.LossDrops != int64(len(want)) {
			t.Errorf("counters %+v, want %d lost", k, len(want))
		}
	}
}

func TestBlackHoleIsSilentAndDownIsNot(t *testing.T) {
	_, l := pair(t, Options{}, Params{Delay: time.Millisecond})
	s := listenUDP(t, l.B.Host, l.B.Prefix.Addr())
	go echo(s)
	c := dialUDP(t, l.A.Host, s.LocalAddr())
	rtt(t, c)

	must(t, l.BlackHole())
	for range 5 {
		if _, err := c.Write([]byte("into the void")); err != nil {
			t.Fatalf("the sender of a black hole learned of it: %v", err)
		}
	}
	eventually(t, "loss in the black hole", func() bool {
		k, err := l.Counters(AB)
		must(t, err)
		return k.CutDrops == 5
	})
	must(t, l.Up())
	rtt(t, c)

	must(t, l.Down())
	eventually(t, "refusal over a link that is down", func() bool {
		_, err := c.Write([]byte("no carrier"))
		return errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETDOWN)
	})
	must(t, l.Up())
	eventually(t, "recovery", func() bool {
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		c.Write([]byte("again"))
		_, err := c.Read(make([]byte, 100))
		return err == nil
	})
}

func TestTwoHopsAndAnAlternative(t *testing.T) {
	n := network(t, Options{})
	a, r1, r2, b := host(t, n, "a"), host(t, n, "r1"), host(t, n, "r2"), host(t, n, "b")
	link := func(x, y *Host, delay time.Duration) *Link {
		p := Params{Delay: delay}
		l, err := n.AddLink(x, y, LinkConfig{AB: p, BA: p})
		must(t, err)
		return l
	}
	link(a, r1, 5*time.Millisecond)
	l := link(r1, b, 5*time.Millisecond)
	alt := link(a, r2, 15*time.Millisecond)
	back := link(b, r2, 15*time.Millisecond)
	must(t, n.RouteAll())
	s := listenUDP(t, b, l.B.Prefix.Addr())
	go echo(s)
	c := dialUDP(t, a, s.LocalAddr())
	ratio(t, "two hops", rtt(t, c), 20*time.Millisecond, 1, 1.2)

	must(t, a.AddRoute(Route{Dst: l.A.Prefix, Via: alt.B.Prefix.Addr()}))
	must(t, r2.AddRoute(Route{Dst: l.A.Prefix, Via: back.A.Prefix.Addr()}))
	must(t, b.AddRoute(Route{Dst: alt.A.Prefix, Via: back.B.Prefix.Addr()}))
	c = dialUDP(t, a, s.LocalAddr())
	ratio(t, "the other way", rtt(t, c), 60*time.Millisecond, 1, 1.2)
	k, err := back.Counters(BA)
	must(t, err)
	if k.OutPackets == 0 {
		t.Error("nothing took the other way")
	}
}

func TestCongestionControlOfBothSides(t *testing.T) {
	_, l := pair(t, Options{}, Params{})
	err := l.A.Host.SetCongestionControl("no-such-thing")
	if err == nil || !strings.Contains(err.Error(), "reno") {
		t.Errorf("unknown algorithm: %v", err)
	}
	for _, h := range []*Host{l.A.Host, l.B.Host} {
		must(t, h.SetCongestionControl("reno"))
		must(t, h.SetTCPBuffers(8<<20, 8<<20))
		must(t, h.SetInitCwnd(55))
	}
	var ln net.Listener
	must(t, l.B.Host.Do(func() (err error) {
		ln, err = net.Listen("tcp", netip.AddrPortFrom(l.B.Prefix.Addr(), 0).String())
		return err
	}))
	defer ln.Close()
	var c net.Conn
	must(t, l.A.Host.Do(func() (err error) {
		c, err = net.Dial("tcp", ln.Addr().String())
		return err
	}))
	defer c.Close()
	d, err := ln.Accept()
	must(t, err)
	defer d.Close()
	for _, c := range []net.Conn{c, d} {
		raw, err := c.(*net.TCPConn).SyscallConn()
		must(t, err)
		raw.Control(func(fd uintptr) {
			if cc, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || strings.TrimRight(cc, "\x00") != "reno" {
				t.Errorf("congestion control %q, %v", cc, err)
			}
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err != nil || info.Snd_cwnd != 55 {
				t.Errorf("first window: %v, %+v", err, info)
			}
		})
	}
}

func TestIPv6(t *testing.T) {
	n := network(t, Options{})
	p := Params{Delay: 5 * time.Millisecond}
	l, err := n.AddLink(host(t, n, "a"), host(t, n, "b"), LinkConfig{AB: p, BA: p,
		AddrA: netip.MustParsePrefix("fd00:1::1/64"), AddrB: netip.MustParsePrefix("fd00:1::2/64")})
	if errors.Is(err, os.ErrNotExist) {
		testbin.Need(t, fmt.Errorf("no IPv6 here: %w", err))
	}
	must(t, err)
	got, err := n.Calibrate(t.Context(), CalibrateConfig{Probes: 50, Tolerance: 0.2, Attempts: 8})
	t.Log(got)
	must(t, err)
	must(t, l.A.Host.SetCongestionControl("reno"))
	transfer(t, l, 1<<20)
}

func TestCalibrate(t *testing.T) {
	n, l := pair(t, Options{Seed: 5}, Params{Delay: 10 * time.Millisecond, Loss: 0.02, Rate: 100e6})
	got, err := n.Calibrate(t.Context(), CalibrateConfig{Tolerance: 0.1, Attempts: 8})
	t.Log(got, err)
	must(t, err)
	if len(got) != 1 || got[0].Sent != 200 || got[0].Echoed == 200 || got[0].Echoed < 150 || got[0].Unexplained != 0 {
		t.Errorf("%+v", got)
	}
	if c, err := l.Counters(AB); err != nil || c.InPackets != 0 {
		t.Errorf("calibration left traces: %+v, %v", c, err)
	}
	got, err = n.Calibrate(t.Context(), CalibrateConfig{Tolerance: 1e-9, Probes: 5})
	if !errors.Is(err, ErrCalibration) || got[0].Attempts != 2 {
		t.Errorf("a network that is off: %v, %+v", err, got)
	}
	must(t, l.BlackHole())
	if got, err = n.Calibrate(t.Context(), CalibrateConfig{Probes: 5}); !errors.Is(err, ErrCalibration) {
		t.Errorf("a black hole: %v, %+v", err, got)
	}
}

func TestLate(t *testing.T) {
	for _, c := range []struct {
		packets int64
		p99     time.Duration
		want    bool
	}{{1000, 2 * time.Millisecond, true}, {1000, time.Millisecond, false}, {100, time.Second, true}, {99, time.Second, false}} {
		got := Counters{Counters: line.Counters{OutPackets: c.packets, LateP99: c.p99}}.late(lateLimit(20 * time.Millisecond))
		if got != c.want {
			t.Errorf("%+v: late %v", c, got)
		}
	}
}

func TestVerifyRefusesOverload(t *testing.T) {
	n, l := pair(t, Options{}, Params{Delay: time.Second})
	s := listenUDP(t, l.B.Host, l.B.Prefix.Addr())
	c := dialUDP(t, l.A.Host, s.LocalAddr())
	if !quiet(t, n, func() { c.Write([]byte("x")) }) {
		t.Skip("too busy a machine")
	}
	// Hold the emulator while more is sent than the device keeps.
	n.driver.do(func(ndn.Time) {
		for range 2 * tunQueue {
			c.Write([]byte("x"))
		}
	})
	if err := n.Verify(); !errors.Is(err, ErrOverload) {
		t.Errorf("after an overload: %v", err)
	}
	must(t, n.Reset(1))
	if err := n.Verify(); err != nil {
		t.Errorf("after a reset: %v", err)
	}
}
