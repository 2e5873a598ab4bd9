package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

// TestFaults sends a running forwarder what has brought other forwarders down
// or misled them, over UDP and TCP, and checks what it does with it. The
// numbers are those of the list of faults that the project keeps.
func TestFaults(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		for _, f := range []struct {
			name string
			conf nodeConf
			test func(*testbed)
		}{
			{"01 fragment numbers", nodeConf{}, faultFragments},
			{"01 endless reassembly", nodeConf{}, faultReassemblyFlood},
			{"02 foreign token on Data", nodeConf{}, faultForeignToken},
			{"03 length 2^63", nodeConf{}, faultHugeLength},
			{"04 token lengths", nodeConf{}, faultTokenLengths},
			{"05 unsolicited Data", nodeConf{}, faultUnsolicited},
			{"06 implicit digest", nodeConf{}, faultDigest},
			{"07 no Nonce", nodeConf{}, faultNoNonce},
			{"08 no route", nodeConf{}, faultNoRoute},
			{"08 Nack passed on", nodeConf{}, faultNackPassed},
			{"12 first packets of a peer", nodeConf{}, faultFirstPackets},
			{"13 one Data for several Interests", nodeConf{}, faultSeveralInterests},
			{"14 churn in the content store", nodeConf{capacity: "1MB"}, faultChurn},
			{"18 retransmissions that come too soon", nodeConf{}, faultSuppressed},
			{"19 the same Nonce again", nodeConf{}, faultSameNonce},
			{"20 hop limit", nodeConf{}, faultHopLimit},
			{"20 MustBeFresh", nodeConf{}, faultMustBeFresh},
			{"22 hits and misses", nodeConf{}, faultCounters},
			{"23 load of each shard", nodeConf{}, faultShardLoad},
			{"malformed packets", nodeConf{}, faultMalformed},
			{"unknown fields", nodeConf{}, faultUnknownFields},
			{"oversize", nodeConf{}, faultOversize},
		} {
			t.Run(network+"/"+f.name, func(t *testing.T) {
				b := newTestbed(t, network, f.conf)
				f.test(b)
				b.alive()
			})
		}
	}
}

// rawLP encodes a link packet from elements that the encoder would not write.
func rawLP(elements ...[]byte) []byte {
	return ndn.AppendTLV(nil, ndn.TypeLpPacket, bytes.Join(elements, nil))
}

func nat(typ uint32, v uint64) []byte { return ndn.AppendNatTLV(nil, typ, v) }
func seq(v uint64) []byte {
	return ndn.AppendTLV(nil, ndn.TypeLpSequence, binary.BigEndian.AppendUint64(nil, v))
}
func fragment(b []byte) []byte { return ndn.AppendTLV(nil, ndn.TypeLpFragment, b) }

func faultFragments(b *testbed) {
	d := b.dial()
	part := []byte("part of a packet")
	for _, n := range [][2]uint64{{0, 1 << 62}, {0, 1<<64 - 1}, {1<<64 - 1, 1<<64 - 1}, {5, 2}, {2, 2}, {0, 0}, {1, 0}, {0, 401}, {400, 401}, {1 << 62, 2}} {
		d.send(rawLP(seq(1), nat(ndn.TypeLpFragIndex, n[0]), nat(ndn.TypeLpFragCount, n[1]), fragment(part)))
	}
	d.send(rawLP(nat(ndn.TypeLpFragIndex, 0), nat(ndn.TypeLpFragCount, 2), fragment(part))) // no sequence
	b.exchange(d)
	// Sequence numbers wrap around: NFD starts at 2^64-1.
	want := name("/f", "wrapped")
	w := interest(want)
	d.send(rawLP(seq(1<<64-1), nat(ndn.TypeLpFragIndex, 0), nat(ndn.TypeLpFragCount, 2), fragment(w[:10])))
	d.send(rawLP(seq(0), nat(ndn.TypeLpFragIndex, 1), nat(ndn.TypeLpFragCount, 2), fragment(w[10:])))
	b.up.expectInterest(want)
	// Fragments that change their count within a packet, and that repeat.
	d.send(rawLP(seq(100), nat(ndn.TypeLpFragIndex, 0), nat(ndn.TypeLpFragCount, 2), fragment(part)))
	d.send(rawLP(seq(101), nat(ndn.TypeLpFragIndex, 1), nat(ndn.TypeLpFragCount, 3), fragment(part)))
	d.send(rawLP(seq(100), nat(ndn.TypeLpFragIndex, 0), nat(ndn.TypeLpFragCount, 2), fragment(part)))
	b.exchange(d)
}

func faultReassemblyFlood(b *testbed) {
	d := b.dial()
	part := bytes.Repeat([]byte{1}, 1200)
	for i := range uint64(5000) {
		d.send(rawLP(seq(i*400), nat(ndn.TypeLpFragIndex, 0), nat(ndn.TypeLpFragCount, 400), fragment(part)))
		if i%100 == 99 {
			b.exchange(d) // keeps a UDP socket's buffer from overflowing
		}
	}
	if now, _ := b.n.RSS(b.T); now > 80*mb {
		b.Errorf("%d MB after 6 MB of fragments that complete nothing", now/mb)
	}
}

func faultForeignToken(b *testbed) {
	for i, token := range []string{"", "\xff", "\xff\xff\xff\xff", strings.Repeat("\xff", 6), strings.Repeat("\xff", 8), strings.Repeat("\x00", 8), strings.Repeat("\xff", 32)} {
		d := b.dial()
		n := name("/f", "token", fmt.Sprint(i))
		d.send(interest(n))
		b.up.expectInterest(n)
		b.up.send(link(ndn.LpFields{PitToken: []byte(token)}, data(n, "x", 0)))
		d.expectData(n)
	}
}

func faultHugeLength(b *testbed) {
	for _, head := range []string{
		"\x06\xff\x80\x00\x00\x00\x00\x00\x00\x00", "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x64\xff\x7f\xff\xff\xff\xff\xff\xff\xff", "\x06\xfe\xff\xff\xff\xff", "\x06\xfd\x22\x5d",
		"\x06\xfd\x00\x01", "\x00\x00",
	} {
		d, other := b.dial(), b.dial()
		b.exchange(other)
		d.send([]byte(head + strings.Repeat("x", 100)))
		if b.network == "tcp" {
			d.expectClosed()
		} else {
			b.exchange(d) // only that datagram is lost
		}
		b.exchange(other) // nobody else notices
	}
}

func faultTokenLengths(b *testbed) {
	for _, n := range []int{1, 4, 8, 31, 32} {
		d := b.dial()
		token := bytes.Repeat([]byte{byte(n)}, n)
		for _, with := range []string{"Data", "Nack"} {
			nm := name("/f", "len", fmt.Sprint(n), with)
			d.send(link(ndn.LpFields{PitToken: token}, interest(nm)))
			up := b.up.expectInterest(nm)
			answer := data(nm, "x", 0)
			f := ndn.LpFields{PitToken: up.PitToken}
			kind := ndn.KindData
			if with == "Nack" {
				f.IsNack, f.NackReason = true, ndn.NackNoRoute
				answer, kind = up.Wire(), ndn.KindNack
			}
			b.up.send(link(f, answer))
			if got := d.expect(kind, nm); !bytes.Equal(got.PitToken, token) {
				b.Errorf("token %x came back as %x with a %s", token, got.PitToken, with)
			}
		}
	}
	d := b.dial()
	for _, n := range []int{0, 33, 200} { // not tokens
		d.send(rawLP(ndn.AppendTLV(nil, ndn.TypeLpPitToken, make([]byte, n)), fragment(interest(name("/f", "bad")))))
	}
	b.exchange(d)
}

func faultUnsolicited(b *testbed) {
	d := b.dial()
	fromDown, fromUp := name("/f", "unsolicited", "down"), name("/f", "unsolicited", "up")
	d.send(data(fromDown, "evil", time.Hour))
	b.exchange(d)
	b.up.send(data(fromUp, "evil", time.Hour))
	for _, n := range []ndn.Name{fromDown, fromUp} {
		d.send(interest(n))
		b.up.expectInterest(n) // the content store did not have it
		b.up.send(data(n, "good", time.Hour))
		if got := d.expectData(n); string(got.Data.Content) != "good" {
			b.Errorf("%s: %q", n, got.Data.Content)
		}
	}
	// Nor is there anything for it in the tables.
	if v := b.n.metric(b.T, "ndnpop_data_unsolicited_total"); v != 2 {
		b.Errorf("%v unsolicited Data counted, not 2", v)
	}
}

// fullName is a Data's name with its implicit digest.
func fullName(n ndn.Name, wire []byte) ndn.Name {
	sum := sha256.Sum256(wire)
	return n.Clone().Append(ndn.Component{Type: ndn.TypeImplicitDigest, Value: sum[:]})
}

func faultDigest(b *testbed) {
	n := name("/f", "digest")
	right, wrong := data(n, "right", time.Hour), data(n, "wrong", time.Hour)
	d := b.dial()
	d.send(interest(fullName(n, right)))
	b.up.expectInterest(fullName(n, right))
	b.up.send(wrong)
	b.up.send(right)
	if got := d.expectData(n); string(got.Data.Content) != "right" {
		b.Errorf("%q was delivered for another digest", got.Data.Content)
	}
	// The right one answers from the content store, the wrong one does not,
	// also when the name without digest is asked for first.
	d.send(interest(fullName(n, right)))
	d.expectData(n)
	d.send(interest(n))
	d.expectData(n)
	d.send(interest(fullName(n, wrong)))
	b.up.expectInterest(fullName(n, wrong))
	b.up.send(wrong)
	if got := d.expectData(n); string(got.Data.Content) != "wrong" {
		b.Errorf("%q was delivered for another digest", got.Data.Content)
	}
}

func faultNoNonce(b *testbed) {
	n := name("/f", "nononce")
	d := b.dial()
	w := interest(n, func(f *ndn.InterestFields) { f.OmitNonce = true })
	d.send(w)
	up := b.up.expectInterest(n)
	if !up.Interest.HasNonce || len(up.Interest.Wire) != len(w)+6 {
		b.Errorf("% x forwarded as % x", w, up.Interest.Wire)
	}
	b.up.send(data(n, "x", 0))
	d.expectData(n)
}

func faultNoRoute(b *testbed) {
	d := b.dial()
	n := name("/nowhere", "x")
	w := interest(n)
	d.send(w)
	if got := d.expectNack(n, ndn.NackNoRoute); !bytes.Equal(got.Interest.Wire, w) {
		b.Errorf("the Nack returns % x, not the Interest % x", got.Interest.Wire, w)
	}
}

func faultNackPassed(b *testbed) {
	d := b.dial()
	for _, r := range []ndn.NackReason{ndn.NackCongestion, ndn.NackNoRoute, ndn.NackNone} {
		n := name("/f", "nacked", r.String())
		w := interest(n)
		d.send(w)
		up := b.up.expectInterest(n)
		b.up.send(link(ndn.LpFields{IsNack: true, NackReason: r, PitToken: up.PitToken}, up.Wire()))
		d.expectNack(n, r)
		// A Nack of another Nonce, or of something never asked for, is nothing.
		b.up.send(link(ndn.LpFields{IsNack: true, NackReason: r}, up.Wire()))
		b.up.send(link(ndn.LpFields{IsNack: true, NackReason: r}, interest(name("/f", "never"))))
		b.exchange(d)
	}
}

func faultFirstPackets(b *testbed) {
	for range 5 {
		d := b.dial() // a face that the node does not have yet
		var names []ndn.Name
		for i := range 20 {
			n := name("/f", "first", d.conn.LocalAddr().String(), fmt.Sprint(i))
			names = append(names, n)
			d.send(interest(n))
		}
		for _, n := range names {
			b.up.expectInterest(n)
		}
	}
}

func faultSeveralInterests(b *testbed) {
	d1, d2, d3 := b.dial(), b.dial(), b.dial()
	prefix, n := name("/f", "several"), name("/f", "several", "one")
	d1.send(interest(prefix, canBePrefix, mustBeFresh, nonce(0xa1)))
	b.up.expectInterest(prefix)
	d2.send(interest(n, mustBeFresh, nonce(0xa2)))
	b.up.expectInterest(n)
	d3.send(interest(n, canBePrefix, mustBeFresh, nonce(0xa3)))
	b.up.expectInterest(n)
	// One Data satisfies all three, even without freshness: that is a matter
	// of content stores.
	b.up.send(data(n, "x", 0))
	for _, d := range []*peer{d1, d2, d3} {
		d.expectData(n)
	}
	// Every one's Nonce counts: each is a loop when it comes back.
	back := b.dial()
	back.send(interest(prefix, canBePrefix, mustBeFresh, nonce(0xa1)))
	back.expectNack(prefix, ndn.NackDuplicate)
	back.send(interest(n, mustBeFresh, nonce(0xa2)))
	back.expectNack(n, ndn.NackDuplicate)
	back.send(interest(n, canBePrefix, mustBeFresh, nonce(0xa3)))
	back.expectNack(n, ndn.NackDuplicate)
}

func faultChurn(b *testbed) {
	d := b.dial()
	const count, size = 600, 1000
	for i := range count {
		n := name("/f", "churn", fmt.Sprint(i))
		d.send(interest(n))
		b.up.expectInterest(n)
		b.up.send(data(n, strings.Repeat("x", size+i), time.Hour))
		d.expectData(n)
	}
	for i := range 3 * count { // and hits, in an order that moves entries about
		n := name("/f", "churn", fmt.Sprint(count-1-i%50))
		d.send(interest(n))
		d.expectData(n)
	}
	m := b.n.metrics(b.T)
	used, capacity := m["ndnpop_cs_used_bytes"], m["ndnpop_cs_capacity_bytes"]
	entries, inserts, evictions := m["ndnpop_cs_entries"], m["ndnpop_cs_inserts_total"], m["ndnpop_cs_evictions_total"]
	if used > capacity || capacity != 1e6 {
		b.Errorf("%v bytes of %v", used, capacity)
	}
	if entries < capacity/float64(2*(size+count)) || entries > capacity/size {
		b.Errorf("%v entries of 1000 to 1600 bytes in %v bytes", entries, capacity)
	}
	if inserts != entries+evictions {
		b.Errorf("%v inserted, %v evicted, %v left", inserts, evictions, entries)
	}
	if now, _ := b.n.RSS(b.T); now > 60*mb {
		b.Errorf("%d MB of memory", now/mb)
	}
}

// faultSuppressed: of retransmissions that come faster than the suppression
// interval, which doubles, next to none are forwarded; one that comes later is,
// and the Data arrives.
func faultSuppressed(b *testbed) {
	d := b.dial()
	n := name("/f", "impatient")
	d.send(interest(n))
	b.up.expectInterest(n)
	b.up.ignore = append(b.up.ignore, n)
	const out, suppressed = `ndnpop_packets_total{direction="out",kind="interest"}`, "ndnpop_interests_suppressed_total"
	before := b.n.metrics(b.T)
	const many = 300
	for range many {
		d.send(interest(n))
	}
	b.exchange(d)
	after := b.n.metrics(b.T)
	// From 10 ms on the interval doubles: 2 s have room for eight.
	forwarded := after[out] - before[out] - 1 // that of the exchange
	if s := after[suppressed] - before[suppressed]; s+forwarded != many || forwarded > 20 {
		b.Errorf("of %d retransmissions %v were suppressed and %v forwarded", many, s, forwarded)
	}
	testbin.Eventually(b.T, patience, "a retransmission to be forwarded", func() bool {
		d.send(interest(n))
		return b.n.metric(b.T, out) > after[out]
	})
	b.up.send(data(n, "x", 0))
	d.expectData(n)
}

// faultShardLoad: what each shard does is a metric, and ctl status tells it.
func faultShardLoad(b *testbed) {
	d := b.dial()
	total := func(m map[string]float64, prefix string) (v float64) {
		for k, x := range m {
			if strings.HasPrefix(k, prefix) {
				v += x
			}
		}
		return v
	}
	const busy, packets, in = "ndnpop_shard_busy_seconds_total{", "ndnpop_shard_packets_total{", `ndnpop_packets_total{direction="in"`
	before := b.n.metrics(b.T)
	const rounds = 20
	for range rounds {
		b.exchange(d)
	}
	after := b.n.metrics(b.T)
	if got := total(after, packets) - total(before, packets); got < 2*rounds || total(after, packets) != total(after, in) {
		b.Errorf("the shards counted %v packets of %d, in all %v of %v", got, 2*rounds, total(after, packets), total(after, in))
	}
	if total(before, busy) <= 0 || total(after, busy) <= total(before, busy) {
		b.Errorf("busy for %v s, then %v s", total(before, busy), total(after, busy))
	}
	p, code := run(b.T, b.n.unix(), "ctl", "status", "--json")
	var status struct {
		Shards []struct {
			Busy    float64 `json:"busy_s"`
			Load    *float64
			Packets float64
		}
	}
	if err := json.Unmarshal(p.Stdout.Bytes(), &status); code != 0 || err != nil {
		b.Fatalf("ctl status ended with %d, %v: %s", code, err, p.Stderr)
	}
	if len(status.Shards) != 1 || status.Shards[0].Packets < total(after, packets) || status.Shards[0].Busy <= 0 || status.Shards[0].Load == nil {
		b.Errorf("ctl status tells %s", p.Stdout)
	}
}

func faultSameNonce(b *testbed) {
	d, other := b.dial(), b.dial()
	n := name("/f", "again")
	w := interest(n, nonce(0x1234))
	d.send(w)
	b.up.expectInterest(n)
	// From another face it is a loop; from the same one a retransmission.
	other.send(w)
	other.expectNack(n, ndn.NackDuplicate)
	// It is passed on again, unless it comes within the suppression interval.
	b.up.ignore = append(b.up.ignore, n)
	d.send(w)
	b.exchange(other)
	b.up.send(data(n, "x", 0))
	d.expectData(n) // and no Nack before it
}

func faultHopLimit(b *testbed) {
	d := b.dial()
	d.send(interest(name("/f", "zero"), hopLimit(0), func(f *ndn.InterestFields) {
		// The encoder leaves out a hop limit of 0; this puts it in.
		f.Params = []byte{byte(ndn.TypeHopLimit), 1, 0}
	}))
	b.exchange(d) // the upstream got this one next, so the other was dropped
	n := name("/f", "one")
	d.send(interest(n, hopLimit(1)))
	if b.network == "tcp" { // on this host: a local application may have it
		if up := b.up.expectInterest(n); up.Interest.HopLimit != 0 || !up.Interest.HasHopLimit {
			b.Errorf("hop limit %d", up.Interest.HopLimit)
		}
	}
	b.exchange(b.dial())
	n = name("/f", "five")
	d.send(interest(n, hopLimit(5)))
	if up := b.up.expectInterest(n); up.Interest.HopLimit != 4 {
		b.Errorf("hop limit %d, not 4", up.Interest.HopLimit)
	}
	n = name("/f", "none")
	d.send(interest(n))
	if up := b.up.expectInterest(n); up.Interest.HasHopLimit {
		b.Error("a hop limit out of nowhere")
	}
}

func faultMustBeFresh(b *testbed) {
	d := b.dial()
	stale, fresh := name("/f", "stale"), name("/f", "fresh")
	for _, n := range []ndn.Name{stale, fresh} {
		d.send(interest(n, mustBeFresh))
		b.up.expectInterest(n)
		freshness := time.Duration(0)
		if n.Equal(fresh) {
			freshness = time.Hour
		}
		b.up.send(data(n, "x", freshness)) // satisfies, fresh or not
		d.expectData(n)
		d.send(interest(n)) // from the content store
		d.expectData(n)
	}
	d.send(interest(fresh, mustBeFresh))
	d.expectData(fresh)
	d.send(interest(stale, mustBeFresh))
	b.up.expectInterest(stale) // never fresh, so not from the content store
	// Data outlives its freshness.
	short := name("/f", "short")
	d.send(interest(short))
	b.up.expectInterest(short)
	b.up.send(data(short, "x", time.Millisecond))
	d.expectData(short)
	testbin.Eventually(b.T, patience, "the Data to become stale", func() bool {
		before := b.n.metric(b.T, "ndnpop_cs_misses_total")
		d.send(interest(short, mustBeFresh))
		missed := false
		testbin.Eventually(b.T, patience, "the answer", func() bool {
			missed = b.n.metric(b.T, "ndnpop_cs_misses_total") > before
			return missed || len(d.frames) > 0
		})
		if !missed {
			d.expectData(short)
		}
		return missed
	})
	b.up.expectInterest(short)
}

func faultCounters(b *testbed) {
	d := b.dial()
	n := name("/f", "counted")
	before := b.n.metrics(b.T)
	d.send(interest(n))
	b.up.expectInterest(n)
	b.up.send(data(n, "x", time.Hour))
	d.expectData(n)
	for range 9 {
		d.send(interest(n))
		d.expectData(n)
	}
	after := b.n.metrics(b.T)
	diff := func(name string) float64 { return after[name] - before[name] }
	hits, misses := diff("ndnpop_cs_hits_total"), diff("ndnpop_cs_misses_total")
	if hits != 9 || misses != 1 || hits+misses != diff(`ndnpop_packets_total{direction="in",kind="interest"}`) {
		b.Errorf("%v hits and %v misses of %v Interests", hits, misses, diff(`ndnpop_packets_total{direction="in",kind="interest"}`))
	}
}

// faultMalformed: what is well framed but no packet is dropped, and the face
// lives.
func faultMalformed(b *testbed) {
	d := b.dial()
	n := ndn.MustName("/f/m")
	good := interest(n)
	for _, w := range [][]byte{
		{0x05, 0x00}, {0x06, 0x00}, {0x64, 0x00}, {0x99, 0x00}, // empty, idle, unknown
		ndn.AppendTLV(nil, ndn.TypeInterest, []byte{0x07, 0x00}),                                      // no component
		ndn.AppendTLV(nil, ndn.TypeInterest, []byte("\x07\xff\x80\x00\x00\x00\x00\x00\x00\x00\x08a")), // 2^63 inside
		ndn.AppendTLV(nil, ndn.TypeInterest, []byte("\x07\x0c\x08\xff\x80\x00\x00\x00\x00\x00\x00\x00ab")),
		ndn.AppendTLV(nil, ndn.TypeInterest, append(n.AppendTLVTo(nil), 0x0a, 0x01, 0x01)), // Nonce of 1 byte
		ndn.AppendTLV(nil, ndn.TypeInterest, append(n.AppendTLVTo(nil), 0xf1, 0x00)),       // critical unknown
		ndn.AppendTLV(nil, ndn.TypeData, n.AppendTLVTo(nil)),                               // unsigned
		rawLP(fragment([]byte("no packet"))),
		rawLP(fragment(rawLP(fragment(good)))),                                              // a link packet within one
		rawLP(ndn.AppendTLV(nil, ndn.TypeLpNack, nil), fragment(data(n, "x", 0))),           // a Nack of a Data
		rawLP(ndn.AppendTLV(nil, 0x323, nil), fragment(good)),                               // unknown field, not ignorable
		rawLP(nat(ndn.TypeLpCongestion, 1), nat(ndn.TypeLpIncomingFace, 1), fragment(good)), // out of order
		interest(deep(100)), // more components than the tables hold
	} {
		d.send(w)
		b.exchange(d)
	}
}

// deep is a name of n components.
func deep(n int) ndn.Name {
	nm := ndn.MustName("/f")
	for nm.Len() < n {
		nm = nm.AppendGeneric("x")
	}
	return nm
}

// faultUnknownFields: what may be ignored is, and survives in the packet.
func faultUnknownFields(b *testbed) {
	d := b.dial()
	n := name("/f", "unknown")
	unknown := []byte{0xf0, 0x03, 1, 2, 3}
	w := ndn.AppendTLV(nil, ndn.TypeInterest, bytes.Join([][]byte{n.AppendTLVTo(nil), unknown, {0x0a, 4, 1, 2, 3, 4}, unknown}, nil))
	// 804 and 936 are unknown link header fields that peers ignore.
	d.send(rawLP(ndn.AppendTLV(nil, 804, []byte{1}), ndn.AppendTLV(nil, 936, nil), fragment(w)))
	if up := b.up.expectInterest(n); !bytes.Equal(up.Interest.Wire, w) {
		b.Errorf("% x forwarded as % x", w, up.Interest.Wire)
	}
	plain := data(n, "x", 0)
	e, _, err := ndn.NextElement(plain)
	if err != nil {
		b.Fatal(err)
	}
	answer := ndn.AppendTLV(nil, ndn.TypeData, append(bytes.Clone(e.Value), unknown...))
	b.up.send(rawLP(ndn.AppendTLV(nil, 804, nil), fragment(answer)))
	if got := d.expectData(n); !bytes.Equal(got.Data.Wire, answer) {
		b.Errorf("% x forwarded as % x", answer, got.Data.Wire)
	}
}

// faultOversize: the largest packet passes, a larger one does not and harms
// nobody.
func faultOversize(b *testbed) {
	d := b.dial()
	n := name("/f", "large")
	sized := func(size int) []byte {
		w := data(n, "", 0)
		for len(w) < size {
			w = data(n, strings.Repeat("x", size-len(w)+len(w)/size), 0)
			break
		}
		for len(w) != size {
			w = data(n, strings.Repeat("x", len(contentOf(b.T, w))+size-len(w)), 0)
		}
		return w
	}
	largest := sized(ndn.MaxPacketSize)
	d.send(interest(n))
	b.up.expectInterest(n)
	b.up.send(largest)
	if got := d.expectData(n); !bytes.Equal(got.Data.Wire, largest) {
		b.Errorf("%d bytes became %d", len(largest), len(got.Data.Wire))
	}
	if b.network == "udp" { // a stream would be closed, see faultHugeLength
		d.send(sized(ndn.MaxPacketSize + 1))
		d.send(bytes.Repeat([]byte{0x06}, 60_000))
		b.exchange(d)
	}
}

func contentOf(t *testing.T, wire []byte) []byte {
	var d ndn.Data
	if err := d.Parse(wire); err != nil {
		t.Fatal(err)
	}
	return d.Content
}

// TestNacksCollected: best-route passes a Nack down when all its upstreams
// have sent one, and the least severe (8).
func TestNacksCollected(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			second := newUpstream(t, network)
			b := newTestbed(t, network, nodeConf{faces: []faceConf{{"second", second.uri}}, routes: []routeConf{{"/f", "second", 10}}})
			second.attach(b.n)
			d := b.dial()
			n := name("/f", "both")
			d.send(interest(n))
			first := b.up.expectInterest(n)
			// A retransmission goes to the next upstream, once the suppression
			// interval is over; until then it is swallowed.
			for len(second.frames) == 0 {
				before := b.n.metric(t, "ndnpop_interests_suppressed_total")
				d.send(interest(n))
				testbin.Eventually(t, patience, "the retransmission to be swallowed or sent", func() bool {
					return len(second.frames) > 0 || b.n.metric(t, "ndnpop_interests_suppressed_total") > before
				})
			}
			other := second.expectInterest(n)
			b.up.send(link(ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute}, first.Wire()))
			b.exchange(b.dial()) // one Nack of two: nothing is passed down yet
			if len(d.frames) != 0 {
				t.Fatalf("passed down after one Nack of two: %v", d.receive("nothing"))
			}
			second.send(link(ndn.LpFields{IsNack: true, NackReason: ndn.NackCongestion}, other.Wire()))
			d.expectNack(n, ndn.NackCongestion)
		})
	}
}
