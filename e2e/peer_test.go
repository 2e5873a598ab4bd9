package e2e

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ndnpop/face/lp"
	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

// peer is the other end of one of a node's faces, written and read by the
// test byte by byte.
type peer struct {
	t    *testing.T
	conn net.Conn // of a stream or a connected UDP socket
	// For a UDP socket that waits for the node:
	sock   *net.UDPConn
	remote netip.AddrPort

	link   *lp.Link
	ignore []ndn.Name  // packets of these names are skipped
	frames chan []byte // what arrived; closed at the end of a stream
}

// dial connects to a node over "udp" or "tcp", as a neighbour or a consumer.
func dial(t *testing.T, n *node, network string) *peer {
	t.Helper()
	addr := n.udp
	if network == "tcp" {
		addr = n.tcp
	}
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, conn: conn}
	p.start()
	return p
}

// dialUnix connects to a node's Unix socket, as an application.
func dialUnix(t *testing.T, n *node) *peer {
	t.Helper()
	conn, err := net.Dial("unix", n.sock)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, conn: conn}
	p.start()
	return p
}

func (p *peer) start() {
	p.link = lp.New(lp.Config{})
	p.frames = make(chan []byte, 1<<16)
	p.t.Cleanup(p.close)
	if p.conn != nil && p.conn.LocalAddr().Network() != "udp" {
		go p.readStream()
	} else {
		go p.readDatagrams()
	}
}

func (p *peer) close() {
	if p.conn != nil {
		p.conn.Close()
	}
	if p.sock != nil {
		p.sock.Close()
	}
}

func (p *peer) readStream() {
	defer close(p.frames)
	var b []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := p.conn.Read(chunk)
		b = append(b, chunk[:n]...)
		for {
			size, err := ndn.PacketSize(b, ndn.MaxPacketSize)
			if err != nil || size == 0 || size > len(b) {
				break
			}
			p.frames <- bytes.Clone(b[:size])
			b = b[size:]
		}
		if err != nil {
			return
		}
	}
}

func (p *peer) readDatagrams() {
	b := make([]byte, 64<<10)
	for {
		var n int
		var err error
		if p.sock != nil {
			n, err = p.sock.Read(b)
		} else {
			n, err = p.conn.Read(b)
		}
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil && !idle(b[:n]):
			p.frames <- bytes.Clone(b[:n])
		}
	}
}

// idle reports whether a frame is a link packet without a packet: a forwarder
// greets whom it was told to have a face to.
func idle(frame []byte) bool {
	var in ndn.LpPacket
	return in.Parse(frame) == nil && in.Fragment == nil
}

// send writes bytes as they are: one datagram, or on a stream whatever they
// begin.
func (p *peer) send(b []byte) {
	p.t.Helper()
	var err error
	if p.sock != nil {
		_, err = p.sock.WriteToUDPAddrPort(b, p.remote)
	} else {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next network packet. Idle link packets are skipped, and
// Interests that want to know whether the peer is where it seems are answered.
func (p *peer) receive(what string) *ndn.Packet {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				p.t.Fatalf("waiting for %s: the node closed the connection", what)
			}
			pkt := new(ndn.Packet)
			ok, err := p.link.Receive(1, f, pkt)
			if err != nil {
				p.t.Fatalf("waiting for %s: % x: %v", what, f, err)
			}
			if ok && pkt.Kind == ndn.KindInterest && pkt.Interest.Name.HasPrefix(ndn.MustName("/localhop/ndnpop/echo")) {
				// As NFD, which has no route for it.
				h := ndn.LpHeader{LpFields: &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}}
				p.send(ndn.AppendLpPacket(nil, &h, pkt.Wire()))
				continue
			}
			if ok && !p.ignored(pkt) {
				// The view of a reassembled packet lasts until the next one.
				fields := pkt.LpFields
				fields.PitToken, fields.Announcement = bytes.Clone(fields.PitToken), bytes.Clone(fields.Announcement)
				if err := pkt.Parse(bytes.Clone(pkt.Wire()), &fields); err != nil {
					p.t.Fatal(err)
				}
				return pkt
			}
		case <-deadline.C:
			p.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// expect returns the next packet, which must be of a kind and name.
func (p *peer) expect(kind ndn.Kind, name ndn.Name) *ndn.Packet {
	p.t.Helper()
	what := kindName(kind) + " " + name.String()
	pkt := p.receive(what)
	got := pkt.Interest.Name
	if pkt.Kind == ndn.KindData {
		got = pkt.Data.Name
	}
	if pkt.Kind != kind || !got.Equal(name) {
		p.t.Fatalf("waiting for %s, got %s %s", what, kindName(pkt.Kind), got)
	}
	return pkt
}

// echo begins the names by which our forwarder finds out whether a neighbour
// that is silent gets what it sends.
var echo = ndn.MustName("/localhop/ndnpop/echo")

func (p *peer) ignored(pkt *ndn.Packet) bool {
	n := pkt.Interest.Name
	if pkt.Kind == ndn.KindData {
		n = pkt.Data.Name
	}
	return n.HasPrefix(echo) || slices.ContainsFunc(p.ignore, n.Equal)
}

func (p *peer) expectInterest(name ndn.Name) *ndn.Packet {
	p.t.Helper()
	return p.expect(ndn.KindInterest, name)
}
func (p *peer) expectData(name ndn.Name) *ndn.Packet {
	p.t.Helper()
	return p.expect(ndn.KindData, name)
}
func (p *peer) expectNack(name ndn.Name, r ndn.NackReason) *ndn.Packet {
	p.t.Helper()
	pkt := p.expect(ndn.KindNack, name)
	if pkt.NackReason != r {
		p.t.Fatalf("Nack %s of %s, want %s", pkt.NackReason, name, r)
	}
	return pkt
}

// expectClosed waits until the node closes the stream.
func (p *peer) expectClosed() {
	p.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case _, ok := <-p.frames:
			if !ok {
				return
			}
		case <-deadline.C:
			p.t.Fatalf("waited %v for the node to close the connection", patience)
		}
	}
}

func kindName(k ndn.Kind) string {
	return map[ndn.Kind]string{ndn.KindInterest: "Interest", ndn.KindData: "Data", ndn.KindNack: "Nack"}[k]
}

// upstream is a peer that a node has a permanent face to, and routes.
type upstream struct {
	*peer
	uri    string
	listen net.Listener // tcp, until the node has connected
}

// newUpstream takes an address for the node to send to.
func newUpstream(t *testing.T, network string) *upstream {
	t.Helper()
	u := &upstream{peer: &peer{t: t}}
	if network == "udp" {
		sock, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		u.sock, u.uri = sock, "udp4://"+sock.LocalAddr().String()
		u.start()
		return u
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.listen, u.uri = l, "tcp4://"+l.Addr().String()
	t.Cleanup(func() { l.Close() })
	return u
}

// attach is called when the node runs: a TCP upstream takes its connection, a
// UDP one learns its address.
func (u *upstream) attach(n *node) {
	u.t.Helper()
	if u.listen == nil {
		u.remote = netip.MustParseAddrPort(n.udp)
		return
	}
	if err := u.listen.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		u.t.Fatal(err)
	}
	conn, err := u.listen.Accept()
	if err != nil {
		u.t.Fatal(err)
	}
	u.conn = conn
	u.start()
	// The node may learn later than we that it is connected.
	testbin.Eventually(u.t, patience, "the face to be up", func() bool {
		for line := range strings.Lines(n.Stderr.String()) {
			if strings.Contains(line, u.uri) && strings.Contains(line, "face up") {
				return true
			}
		}
		return false
	}, n.Proc)
}

// interest encodes an Interest with a random Nonce; change adapts it.
func interest(name ndn.Name, change ...func(*ndn.InterestFields)) []byte {
	f := ndn.InterestFields{Name: name, Nonce: rand.Uint32(), Lifetime: patience}
	for _, c := range change {
		c(&f)
	}
	return ndn.AppendInterest(nil, &f)
}

func canBePrefix(f *ndn.InterestFields) { f.CanBePrefix = true }
func mustBeFresh(f *ndn.InterestFields) { f.MustBeFresh = true }
func nonce(v uint32) func(*ndn.InterestFields) {
	return func(f *ndn.InterestFields) { f.Nonce = v }
}
func hopLimit(v uint8) func(*ndn.InterestFields) {
	return func(f *ndn.InterestFields) { f.HopLimit = v }
}

// data encodes a Data with a digest signature.
func data(name ndn.Name, content string, freshness time.Duration) []byte {
	b, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: []byte(content), Freshness: freshness}, ndn.DigestSigner{})
	if err != nil {
		panic(err)
	}
	return b
}

// link wraps a packet with link header fields.
func link(f ndn.LpFields, packet []byte) []byte {
	return ndn.AppendLpPacket(nil, &ndn.LpHeader{LpFields: &f}, packet)
}

// name builds a name below a prefix.
func name(prefix string, parts ...string) ndn.Name {
	return ndn.MustName(prefix + "/" + strings.Join(parts, "/"))
}

// testbed is one node between an upstream and whoever dials it.
type testbed struct {
	*testing.T
	n       *node
	up      *upstream
	network string
	marks   int
}

// newTestbed starts a node that sends /f to an upstream over the network.
func newTestbed(t *testing.T, network string, c nodeConf) *testbed {
	t.Helper()
	b := &testbed{T: t, network: network, up: newUpstream(t, network)}
	c.faces = append(slices.Clone(c.faces), faceConf{"up", b.up.uri})
	c.routes = append(slices.Clone(c.routes), routeConf{"/f", "up", 0})
	b.n = startNode(t, c)
	b.up.attach(b.n)
	return b
}

func (b *testbed) dial() *peer { b.Helper(); return dial(b.T, b.n, b.network) }

// exchange fetches one Data that only the upstream has. It also shows that
// nothing sent before is still under way: packets of one peer are handled in
// order.
func (b *testbed) exchange(down *peer) {
	b.Helper()
	b.marks++
	n := ndn.MustName("/f/mark").AppendNumber(ndn.TypeSequenceNum, uint64(b.marks)).AppendNumber(ndn.TypeTimestamp, uint64(rand.Uint32()))
	down.send(interest(n))
	b.up.expectInterest(n)
	b.up.send(data(n, "mark", 0))
	down.expectData(n)
}

// alive fails the test unless the node serves a new consumer.
func (b *testbed) alive() {
	b.Helper()
	if !b.n.Running() {
		b.Fatalf("the node has died: %s", b.n.Stderr)
	}
	d := b.dial()
	b.exchange(d)
	d.close()
}
