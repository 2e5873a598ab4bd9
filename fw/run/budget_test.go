package run

import (
	"fmt"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndnpop/face"
	"ndnpop/fw"
	"ndnpop/ndn"
	"ndnpop/table"
)

func testBudget(a Allowance) *budget {
	a.defaults()
	return newBudget(a, &shared{bucket: bucket{rate: a.Total, burst: max(a.Total, a.Burst)}})
}

// TestAllowanceHolds: whatever is asked for and whenever, an unproven peer
// gets no more than the burst and what was bought or what the time allows, and
// all peers of a listener together no more than the total.
func TestAllowanceHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Allowance{
			Rate: rapid.Int64Range(1, 1e7).Draw(t, "rate"), Total: rapid.Int64Range(1, 1e7).Draw(t, "total"),
			Factor: rapid.Int64Range(1, 300).Draw(t, "factor"), Burst: rapid.Int64Range(1, 1e6).Draw(t, "burst"),
		}
		first := testBudget(a)
		peers := []*budget{first, newBudget(a, first.total), newBudget(a, first.total)}
		start := ndn.Time(rapid.Int64Range(1, 1e15).Draw(t, "start"))
		now := start
		in, out := make([]int64, len(peers)), make([]int64, len(peers))
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, len(peers)-1).Draw(t, "peer")
			now = now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 1000, 1e6, 1e8, 1e10}).Draw(t, "wait")))
			if n := rapid.IntRange(0, 8800).Draw(t, "received"); rapid.Bool().Draw(t, "receives") {
				peers[i].received(n)
				in[i] += int64(n)
				peers[i].response(now, rapid.Uint64().Draw(t, "guess"))
			}
			n := rapid.IntRange(1, 8800).Draw(t, "size")
			if v := peers[i].spend(now, n); v.pass {
				out[i] += int64(n)
			}
			elapsed := now.Sub(start).Seconds()
			sum := int64(0)
			for i := range peers {
				sum += out[i]
				if limit := float64(a.Burst) + elapsed*float64(a.Rate) + 1; float64(out[i]) > limit {
					t.Fatalf("peer %d got %d bytes in %v s, at most %v", i, out[i], elapsed, limit)
				}
				if limit := a.Burst + a.Factor*in[i]; out[i] > limit {
					t.Fatalf("peer %d got %d bytes for %d, at most %d", i, out[i], in[i], limit)
				}
			}
			if limit := float64(max(a.Total, a.Burst)) + elapsed*float64(a.Total) + 1; float64(sum) > limit {
				t.Fatalf("all got %d bytes in %v s, at most %v", sum, elapsed, limit)
			}
		}
	})
}

func TestProof(t *testing.T) {
	b := testBudget(Allowance{Rate: 1000, Burst: 10000})
	now := ndn.Time(1)
	for range 20 {
		b.spend(now, 1000)
	}
	if v := b.spend(now, 1000); v.pass || !v.challenge {
		t.Fatalf("over the burst: %+v", v)
	}
	b.response(now, b.secret+1)
	if b.spend(now, 1000).pass {
		t.Fatal("a guess was taken for a proof")
	}
	b.response(now, b.secret)
	for i := range 1000 {
		v := b.spend(now, 8800)
		if !v.pass || v.echo {
			t.Fatalf("packet %d after the proof: %+v", i, v)
		}
		if v.challenge {
			t.Fatalf("challenge %d at once", i)
		}
	}
	// It is renewed while there is traffic, and ends without an answer.
	now = now.Add(proofAgain)
	if v := b.spend(now, 8800); !v.pass || !v.challenge {
		t.Fatalf("%+v", v)
	}
	if v := b.spend(now, 8800); !v.pass || v.challenge {
		t.Fatalf("%+v", v)
	}
	now = now.Add(proofTime)
	for range 20 {
		b.spend(now, 1000)
	}
	if b.spend(now, 1000).pass {
		t.Fatal("the proof did not end")
	}
	if n := testing.AllocsPerRun(100, func() { now++; b.spend(now, 100); b.received(60) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestForgedAddressBuysLittle: somebody who asks for large Data in the name of
// an address that does not answer gets the burst and the rate, and no more;
// what was held back is counted.
func TestForgedAddressBuysLittle(t *testing.T) {
	f := start(t, Options{Shard: fw.Config{CS: table.CSConfig{Capacity: 1 << 20}}})
	a := Allowance{Rate: 10000, Burst: 50000}
	addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{Allowance: a})
	_, id := memApp(t, f, echo(t, 8000))
	addRoute(t, f, "/a", id)
	c, err := net.Dial("udp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The Data are in the content store, and asked for again and again.
	warm, _ := memApp(t, f, nil)
	for i := range 20 {
		warm.interest(fmt.Sprintf("/a/%d", i), uint32(i+1))
		warm.expect(ndn.KindData, fmt.Sprintf("/a/%d", i))
	}
	begin := time.Now()
	const asked = 2000
	for i := range asked {
		if _, err := c.Write(interestWire(fmt.Sprintf("/a/%d", i%20), uint32(i+1000))); err != nil {
			t.Fatal(err)
		}
		if i%20 == 19 { // within the socket's buffer
			eventually(t, "the Interests to arrive", func() bool {
				u, ok := byScheme(f, "udp4")
				return ok && u.Counters.InInterests == uint64(i+1)
			})
		}
	}
	u, _ := byScheme(f, "udp4")
	eventually(t, "an answer or its refusal", func() bool {
		u, _ = byScheme(f, "udp4")
		return u.Counters.Drops.OutBudget+u.Counters.OutData == asked
	})
	limit := float64(a.Burst) + time.Since(begin).Seconds()*float64(a.Rate) + 8800
	if got := float64(u.Counters.OutBytes); got > limit || got < 8000 {
		t.Errorf("%v bytes were sent for %d Interests, at most %v", got, asked, limit)
	}
	// A face that was asked for is not bounded.
	if _, err := f.CreateFace(FaceSpec{URI: u.RemoteURI}); err == nil {
		t.Fatal("a second face")
	}
	before := u.Counters.OutData
	for i := range 20 {
		if _, err := c.Write(interestWire(fmt.Sprintf("/a/%d", i), uint32(i+5000))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all Data", func() bool { u, _ := byScheme(f, "udp4"); return u.Counters.OutData == before+20 })
}

// TestPeersProveThemselves: a peer with our link service, and one that only
// answers Interests without route by Nacks (as NFD), get beyond the allowance.
func TestPeersProveThemselves(t *testing.T) {
	a := Allowance{Rate: 1000, Burst: 50000}
	get := func(t *testing.T, c *app, f *Forwarder, from int) {
		for i := from; i < from+200; i++ {
			name := fmt.Sprintf("/a/%d", i)
			eventually(t, name, func() bool {
				c.interest(name, uint32(i+1))
				select {
				case p := <-c.in:
					return p.kind == ndn.KindData && p.name.Equal(ndn.MustName(name))
				case <-time.After(20 * time.Millisecond):
					return false
				}
			})
		}
	}
	t.Run("link", func(t *testing.T) {
		f := start(t, Options{})
		addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{Allowance: a})
		_, id := memApp(t, f, echo(t, 8000))
		addRoute(t, f, "/a", id)
		get(t, newApp(t, dialUDP(t, addr), nil), f, 0)
		if u, _ := byScheme(f, "udp4"); u.Counters.Drops.OutBudget != 0 {
			t.Errorf("%d packets were held back", u.Counters.Drops.OutBudget)
		}
	})
	t.Run("nack", func(t *testing.T) {
		f := start(t, Options{})
		addr := listenUDP(t, f, "127.0.0.1:0", ListenOptions{Allowance: a})
		_, id := memApp(t, f, echo(t, 8000))
		addRoute(t, f, "/a", id)
		conn := &deaf{Server: dialUDP(t, addr)}
		c := newApp(t, conn, func(p *ndn.Packet, reply func([]byte, *ndn.LpFields)) {
			reply(p.Interest.Wire, &ndn.LpFields{IsNack: true, NackReason: ndn.NackNoRoute})
		})
		get(t, c, f, 0)
		u, _ := byScheme(f, "udp4")
		if u.Counters.InNacks != 0 || f.Counters().UnknownNacks != 0 {
			t.Errorf("the answers reached the shard")
		}
	})
}

// deaf is a transport of a peer that does not know our link header fields.
type deaf struct{ face.Server }

func (d *deaf) Send(b *face.Frames) int {
	var out face.Frames
	for i := range b.Len() {
		var in ndn.LpPacket
		if in.Parse(b.Frame(i)) == nil {
			h := ndn.LpHeader{LpFields: &in.LpFields}
			out.Buf = ndn.AppendLpPacket(out.Buf, &h, in.Fragment)
			out.End()
		}
	}
	return d.Server.Send(&out)
}
