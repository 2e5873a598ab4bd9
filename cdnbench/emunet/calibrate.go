//go:build linux

package emunet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ErrCalibration is wrapped by the error of Calibrate.
var ErrCalibration = errors.New("the network does not do what it was configured for")

// CalibrateConfig says how to calibrate. The zero value is the rule of the
// experiments: 5 %, one repetition.
type CalibrateConfig struct {
	Tolerance float64       // of RTT and loss; 0 is 0.05
	Probes    int           // echo requests per link; 0 is 200
	Spacing   time.Duration // between them; 0 is 1 ms, and twice the jitter where that is more
	Attempts  int           // per link; 0 is 2
}

// Calibration is what was measured on one link.
type Calibration struct {
	Link     string
	Attempts int

	WantRTT      time.Duration // delays and serialisation of a probe, both ways
	RTT, RTT99   time.Duration // median and 99th percentile, by the kernel's clock
	Sent, Echoed int
	// The probability that a probe or its echo is lost: configured, and seen.
	WantLoss, Loss float64
	// Probes that vanished without the emulator having decided so.
	Unexplained int
}

func (m Calibration) String() string {
	return fmt.Sprintf("%s: RTT %v (want %v, p99 %v), loss %.3f %% (want %.3f %%) of %d, %d unexplained",
		m.Link, m.RTT, m.WantRTT, m.RTT99, 100*m.Loss, 100*m.WantLoss, m.Sent, m.Unexplained)
}

// minJudged is the RTT below which the way through the two kernels is more than
// a few per cent: shorter ones are reported, and not judged.
const minJudged = time.Millisecond

// Calibrate sends probes over each link, one link after the other, and compares
// RTT and loss with the parameters. The links must be idle and Up. A link that is
// off by more than the tolerance is measured again, and then refused with an
// error that wraps ErrCalibration. Loss has in addition the four standard
// deviations that so many probes leave; every probe that the emulator did not
// drop on purpose must come back. Afterwards everything is Reset to the seed of
// the options. RTTs below 1 ms are not judged.
func (n *Network) Calibrate(ctx context.Context, c CalibrateConfig) (all []Calibration, err error) {
	if c.Tolerance == 0 {
		c.Tolerance = 0.05
	}
	if c.Probes == 0 {
		c.Probes = 200
	}
	if c.Attempts == 0 {
		c.Attempts = 2
	}
	var errs []error
	for _, l := range n.Links() {
		var m Calibration
		var off error
		for try := 1; try <= c.Attempts; try++ {
			m, err = l.measure(ctx, c)
			if err != nil {
				return all, fmt.Errorf("calibrate %s: %w", l.name(AB), err)
			}
			m.Attempts = try
			if off = m.judge(c.Tolerance, l.Params(AB), l.Params(BA)); off == nil {
				break
			}
		}
		all = append(all, m)
		errs = append(errs, off)
	}
	return all, errors.Join(append(errs, n.Reset(n.opts.Seed))...)
}

// judge compares what was measured with what was wanted.
func (m Calibration) judge(tolerance float64, ab, ba Params) error {
	if d := (m.RTT - m.WantRTT).Abs(); m.WantRTT >= minJudged && float64(d) > tolerance*float64(m.WantRTT) {
		return fmt.Errorf("%w: RTT is off by more than %v %%: %s", ErrCalibration, 100*tolerance, m)
	}
	// Bursts make the number of losses vary more than independent ones would.
	inflate := 1.0
	for _, p := range []Params{ab, ba} {
		if g := p.Burst; g.ToBad+g.ToGood > 0 {
			inflate = max(inflate, 2/(g.ToBad+g.ToGood))
		}
	}
	sigma := math.Sqrt(m.WantLoss * (1 - m.WantLoss) * inflate / float64(m.Sent))
	if math.Abs(m.Loss-m.WantLoss) > tolerance*m.WantLoss+4*sigma {
		return fmt.Errorf("%w: loss: %s", ErrCalibration, m)
	}
	if m.Unexplained > 0 {
		return fmt.Errorf("%w: probes vanished: %s", ErrCalibration, m)
	}
	return nil
}

// probeSize is the size of a probe as an IPv4 packet: 64 bytes of ICMP.
const (
	probeICMP = 64
	probeSize = probeICMP + 20
)

// measure sends the probes of one attempt: ICMP echo requests, which the other
// kernel answers in the emulator's own system call.
func (l *Link) measure(ctx context.Context, c CalibrateConfig) (Calibration, error) {
	ab, ba := l.Params(AB), l.Params(BA)
	m := Calibration{Link: l.A.Host.name + " to " + l.B.Host.name, WantLoss: 1 - (1-ab.MeanLoss())*(1-ba.MeanLoss())}
	v6 := l.A.Prefix.Addr().Is6()
	size := probeSize
	if v6 {
		size += 20
	}
	for _, p := range []Params{ab, ba} {
		m.WantRTT += p.Delay
		if p.Rate > 0 {
			m.WantRTT += time.Duration(int64(size+p.Overhead) * 8e9 / p.Rate)
		}
	}
	if c.Spacing == 0 {
		c.Spacing = max(time.Millisecond, 2*ab.Jitter, 2*ba.Jitter)
	}
	before, err := l.dropped()
	if err != nil {
		return m, err
	}
	p, err := newProber(l, v6)
	if err != nil {
		return m, err
	}
	defer p.conn.Close()
	wait := m.WantRTT + ab.Jitter + ba.Jitter + 200*time.Millisecond
	rtts := make(chan []time.Duration, 1)
	p.conn.SetReadDeadline(time.Now().Add(time.Duration(c.Probes)*c.Spacing + 10*wait))
	go func() { rtts <- p.receive(c.Probes) }()
	tick := time.NewTicker(c.Spacing)
	defer tick.Stop()
	for m.Sent < c.Probes && ctx.Err() == nil {
		if err := p.send(m.Sent); err != nil {
			p.conn.SetReadDeadline(time.Now())
			<-rtts
			return m, err
		}
		m.Sent++
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	p.conn.SetReadDeadline(time.Now().Add(wait))
	if ctx.Err() != nil {
		p.conn.SetReadDeadline(time.Now())
	}
	got := <-rtts
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	after, err := l.dropped()
	if err != nil {
		return m, err
	}
	slices.Sort(got)
	m.Echoed = len(got)
	if len(got) > 0 {
		m.RTT, m.RTT99 = got[len(got)/2], got[len(got)*99/100]
	}
	m.Loss = float64(m.Sent-m.Echoed) / float64(m.Sent)
	m.Unexplained = max(0, m.Sent-m.Echoed-int(after-before))
	return m, nil
}

// dropped counts what the emulator dropped because the parameters say so.
func (l *Link) dropped() (int64, error) {
	a, err := l.Counters(AB)
	if err != nil {
		return 0, err
	}
	b, err := l.Counters(BA)
	return a.LossDrops + b.LossDrops, err
}

// prober sends echo requests from host a to host b.
type prober struct {
	conn   *net.IPConn
	to     *net.IPAddr
	kind   byte // of a request
	answer byte // of its echo
}

func newProber(l *Link, v6 bool) (*prober, error) {
	p := &prober{kind: 8, to: &net.IPAddr{IP: l.B.Prefix.Addr().AsSlice()}}
	network := "ip4:icmp"
	if v6 {
		p.kind, p.answer, network = 128, 129, "ip6:ipv6-icmp"
	}
	err := l.A.Host.Do(func() (err error) {
		p.conn, err = net.ListenIP(network, &net.IPAddr{IP: l.A.Prefix.Addr().AsSlice()})
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := p.conn.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		})
		err = errors.Join(err, cerr)
	}
	if err != nil {
		p.conn.Close()
		return nil, fmt.Errorf("timestamps: %w", err)
	}
	return p, nil
}

// send sends request i with the time in it.
func (p *prober) send(i int) error {
	b := make([]byte, probeICMP)
	b[0] = p.kind
	binary.BigEndian.PutUint16(b[4:], 0xca1b)
	binary.BigEndian.PutUint16(b[6:], uint16(i))
	binary.BigEndian.PutUint64(b[8:], uint64(time.Now().UnixNano()))
	if p.kind == 8 { // for ICMPv6 the kernel does it
		var s uint32
		for k := 0; k < len(b); k += 2 {
			s += uint32(binary.BigEndian.Uint16(b[k:]))
		}
		for s > 0xffff {
			s = s&0xffff + s>>16
		}
		binary.BigEndian.PutUint16(b[2:], ^uint16(s))
	}
	_, err := p.conn.WriteToIP(b, p.to)
	return err
}

// receive collects the round-trip times of up to n echoes until the deadline.
func (p *prober) receive(n int) (rtts []time.Duration) {
	b, oob := make([]byte, 1500), make([]byte, 128)
	for len(rtts) < n {
		k, ok, _, _, err := p.conn.ReadMsgIP(b, oob)
		if err != nil {
			return rtts
		}
		got := b[:k]
		if p.kind == 8 && k >= 20 && got[0]>>4 == 4 { // raw IPv4 sockets give the header too
			got = got[min(k, int(got[0]&15)*4):]
		}
		if len(got) != probeICMP || got[0] != p.answer || binary.BigEndian.Uint16(got[4:]) != 0xca1b {
			continue
		}
		at := time.Now().UnixNano()
		if t, ok := timestamp(oob[:ok]); ok {
			at = t
		}
		rtts = append(rtts, time.Duration(at-int64(binary.BigEndian.Uint64(got[8:]))))
	}
	return rtts
}

// timestamp finds when the kernel received a packet, in Unix nanoseconds.
func timestamp(oob []byte) (ns int64, ok bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:])), true
		}
	}
	return 0, false
}
