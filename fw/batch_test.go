package fw

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/strategy/strategies"
	"ndnpop/table"
)

// transcript is a Sender that notes what was sent.
type transcript struct{ lines []string }

func (t *transcript) Send(to ndn.FaceID, wire []byte, f *ndn.LpFields) bool {
	t.lines = append(t.lines, fmt.Sprintf("%d %x %+v", to, wire, *f))
	return true
}

// TestBatchIsOneByOne: a batch has the effect of its packets one by one, in
// tables that are small and in such that are read ahead.
func TestBatchIsOneByOne(t *testing.T) {
	set, err := strategy.NewSet(strategies.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{10, 20_000} {
		var shards [2]*Shard
		var sent [2]transcript
		for k := range shards {
			if shards[k], err = New(Config{Seed: 1, CS: table.CSConfig{Capacity: 16 << 20}}, set, &sent[k]); err != nil {
				t.Fatal(err)
			}
			_ = shards[k].AddFace(0, FaceInfo{ID: local1, Local: true})
			_ = shards[k].AddFace(0, FaceInfo{ID: remote1})
			if err := shards[k].SetNextHop(0, ndn.MustName("/a"), remote1, 1); err != nil {
				t.Fatal(err)
			}
			for i := range size {
				if err := shards[k].SetNextHop(0, ndn.MustName(fmt.Sprintf("/a/%d", i)), remote1, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		rng := rand.New(rand.NewPCG(1, uint64(size)))
		name := func() ndn.Name {
			n := ndn.MustName(fmt.Sprintf("/a/%d", rng.IntN([2]int{20, 2 * size}[rng.IntN(2)])))
			for rng.IntN(3) == 0 {
				n = n.AppendNumber(ndn.TypeSegment, uint64(rng.IntN(3)))
			}
			if rng.IntN(50) == 0 { // more components than the tables hold
				for range ndn.MaxComponents + rng.IntN(3) {
					n = n.AppendGeneric("x")
				}
			}
			return n
		}
		batch := make([]ndn.Packet, 100)
		now := ndn.Time(1)
		pending, far := 0, 3*size/100
		for round := range 60 + far {
			step := 50 * time.Millisecond
			if round < far {
				step /= 50
			}
			now = now.Add(time.Duration(rng.Int64N(int64(step))))
			in := []ndn.FaceID{local1, remote1, 99}[rng.IntN(41)/20]
			if round < far {
				in = local1 // until many are pending
			}
			for i := range batch {
				f := ndn.LpFields{}
				var wire []byte
				if in == local1 && rng.IntN(10) > 0 || rng.IntN(20) == 0 {
					wire = ndn.AppendInterest(nil, &ndn.InterestFields{
						Name: name(), Nonce: rng.Uint32(), Lifetime: 4 * time.Second, CanBePrefix: rng.IntN(4) == 0, MustBeFresh: rng.IntN(4) == 0,
					})
					f.IsNack = in == remote1
				} else if wire, err = ndn.AppendData(nil, &ndn.DataFields{Name: name(), Freshness: time.Second}, ndn.DigestSigner{}); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(3) == 0 {
					f.PitToken = []byte{0, 0, 0, byte(rng.IntN(size>>8 + 1)), byte(rng.Uint32()), 0}
				}
				if err := batch[i].Parse(wire, &f); err != nil {
					t.Fatal(err)
				}
			}
			n := 1 + rng.IntN(len(batch))
			for i := range n {
				shards[0].Receive(now, in, &batch[i])
			}
			shards[1].ReceiveBatch(now, in, batch[:n])
			shards[0].Tick(now)
			shards[1].Tick(now)
			pending = max(pending, shards[0].Counters().PitEntries)
			if len(sent[0].lines) != len(sent[1].lines) || shards[0].Counters() != shards[1].Counters() || shards[0].CSInfo() != shards[1].CSInfo() {
				t.Fatalf("%d routes, round %d: one by one\n%+v\nas a batch\n%+v", size, round, shards[0].Counters(), shards[1].Counters())
			}
			for i, l := range sent[0].lines {
				if l != sent[1].lines[i] {
					t.Fatalf("%d routes, round %d: one by one\n%s\nas a batch\n%s", size, round, l, sent[1].lines[i])
				}
			}
			sent[0].lines, sent[1].lines = sent[0].lines[:0], sent[1].lines[:0]
		}
		c := shards[0].Counters()
		t.Logf("%d routes, up to %d pending, %d satisfied, %d from the content store", size, pending, c.Satisfied, shards[0].CSInfo().Hits)
		if c.Satisfied == 0 || c.BadName == 0 || c.BadFace == 0 || c.InNacks == 0 || shards[0].CSInfo().Hits == 0 {
			t.Errorf("too little happened: %+v", c)
		}
	}
}
