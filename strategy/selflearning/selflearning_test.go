package selflearning

import (
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy/strategytest"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func recorder(t *testing.T) *strategytest.Recorder {
	t.Helper()
	r, err := strategytest.New(1, Factory())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDiscoversAndLearns(t *testing.T) {
	r := recorder(t)
	r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, Silent: true})
	b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, RTT: 10 * ms, Announce: true})
	r.AddHop(strategytest.Hop{Name: "c", NoRoute: true, Silent: true})
	con := r.AddConsumer(strategytest.Consumer{Segments: 3})
	r.Run(sec)
	if len(con.Arrivals) != 3 || r.Announced() != 1 {
		t.Fatalf("%d arrivals, %d announcements", len(con.Arrivals), r.Announced())
	}
	// All faces, then the one that is learnt, without discovery.
	for i, s := range r.Sends {
		if discovery := i < 3; s.NonDiscovery == discovery || !discovery && s.Hop != b {
			t.Errorf("%v, non-discovery %v", s, s.NonDiscovery)
		}
	}
	if len(r.Sends) != 5 {
		t.Errorf("%v", r.Sends)
	}
}

func TestRemoteDiscoveryFollowsTheRouteAndGetsTheAnnouncement(t *testing.T) {
	r := recorder(t)
	b := r.AddHop(strategytest.Hop{Name: "b", RTT: 10 * ms, Announce: true})
	r.AddHop(strategytest.Hop{Name: "c", NoRoute: true, Silent: true})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: true})
	r.Run(sec)
	if len(con.Arrivals) != 1 || !con.Arrivals[0].Announced || len(r.Sends) != 1 || r.Sends[0].Hop != b || r.Sends[0].NonDiscovery {
		t.Errorf("%+v, %v", con.Arrivals, r.Sends)
	}
}

func TestNonDiscoveryIsNeverBroadcast(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, RTT: 10 * ms, Announce: true})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: true, NonDiscovery: true})
	r.Run(100 * ms)
	if len(r.Sends) > 0 || len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
		t.Errorf("%v, Nacks %v", r.Sends, con.Nacks)
	}
	a.SetCost(5)
	con = r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: true, NonDiscovery: true})
	r.Run(200 * ms)
	if len(con.Arrivals) != 1 || con.Arrivals[0].Announced || !r.Sends[0].NonDiscovery || r.Announced() > 0 {
		t.Errorf("%+v, %v", con.Arrivals, r.Sends)
	}
}

func TestLostRouteIsFoundAnew(t *testing.T) {
	for name, lose := range map[string]func(a *strategytest.Hop){
		"no route":  func(a *strategytest.Hop) { a.Nacks = ndn.NackNoRoute },
		"face down": func(a *strategytest.Hop) { a.Down() },
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder(t)
			a := r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, RTT: 10 * ms, Announce: true})
			b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, RTT: 20 * ms, Silent: true, Announce: true})
			con := r.AddConsumer(strategytest.Consumer{Every: 50 * ms})
			r.At(sec, func() { b.Silent = false; lose(a) })
			r.Run(5 * sec)
			if n := len(con.Arrivals); n < con.Sent-2 || len(con.Nacks) > 0 {
				t.Errorf("%d of %d, Nacks %v", n, con.Sent, con.Nacks)
			}
			if n := r.Count(a, 1100*ms, 5*sec); n > 0 || r.Announced() != 2 {
				t.Errorf("%d to a, %d announcements", n, r.Announced())
			}
		})
	}
}

func TestNobodyHasIt(t *testing.T) {
	r := recorder(t)
	for range 3 {
		r.AddHop(strategytest.Hop{NoRoute: true, RTT: 10 * ms, Nacks: ndn.NackNoRoute})
	}
	con := r.AddConsumer(strategytest.Consumer{Segments: 1})
	r.Run(sec)
	if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute || len(r.Sends) != 3 {
		t.Errorf("Nacks %v after %v", con.Nacks, r.Sends)
	}
}

func TestLoopEnds(t *testing.T) {
	r := recorder(t)
	b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, RTT: 10 * ms, Silent: true})
	r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, RTT: 10 * ms, Reflect: b})
	r.AddConsumer(strategytest.Consumer{Segments: 5, Every: 10 * ms})
	r.Run(10 * sec)
	if n := r.Count(nil, 0, 10*sec); n > 10 {
		t.Errorf("%d Interests", n)
	}
}

func TestParameters(t *testing.T) {
	strategytest.CheckParams(t, Factory(), map[string][]string{
		"retx-suppression-initial": {"0"}, "retx-suppression-max": {"1"}, "retx-suppression-multiplier": {"0"},
	})
}

func TestDoesNotAllocate(t *testing.T) { strategytest.CheckAllocs(t, Factory()) }

func BenchmarkHandlers(b *testing.B) { strategytest.Bench(b, Factory()) }

// TestNobodyLearnsUnasked: an announcement that comes with the Data of an
// Interest that was not for discovery is not believed, and goes no further.
func TestNobodyLearnsUnasked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		r := recorder(t)
		a := r.AddHop(strategytest.Hop{Name: "a", Silent: true})
		con := r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: true, NonDiscovery: !asked})
		r.At(50*ms, func() {
			var p ndn.Packet
			f := ndn.LpFields{Announcement: data(t, ndn.MustName(strategytest.Prefix+"/32=PA").AppendNumber(ndn.TypeVersion, 1))}
			if err := p.Parse(data(t, con.Name(0)), &f); err != nil {
				t.Fatal(err)
			}
			r.Shard().Receive(r.Time(r.Now()), a.Face(), &p)
		})
		r.Run(100 * ms)
		if len(con.Arrivals) != 1 || con.Arrivals[0].Announced != asked || (r.Announced() == 1) != asked {
			t.Errorf("asked %v: %+v, %d announcements", asked, con.Arrivals, r.Announced())
		}
	}
}

func data(t *testing.T, n ndn.Name) []byte {
	t.Helper()
	b, err := ndn.AppendData(nil, &ndn.DataFields{Name: n}, ndn.DigestSigner{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSilentNextHopIsFoundAnew: a route that was learnt swallows Interests. A
// repeated one discovers, and what is pending goes the way that is found.
func TestSilentNextHopIsFoundAnew(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, Announce: true, RTT: 10 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, Announce: true, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Window: 4, Resend: 500 * ms})
	r.At(2*sec, func() { a.Silent = true })
	r.Run(10 * sec)
	if gap := con.Gap(sec, 10*sec); gap > 600*ms {
		t.Errorf("a gap of %v", gap)
	}
	discoveries := 0
	for _, s := range r.Sends {
		if s.Hop == b && !s.NonDiscovery {
			discoveries++
		}
	}
	if discoveries != 4+1 { // the first window, and one repetition of the last
		t.Errorf("%d discoveries", discoveries)
	}
}

// TestPausesAreNoFlood: while content is not made yet, everybody is asked once a
// second, and single losses ask nobody.
func TestPausesAreNoFlood(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", NoRoute: true, Announce: true, RTT: 10 * ms, Loss: .02})
	b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, Silent: true})
	r.AddConsumer(strategytest.Consumer{Window: 8, Resend: 100 * ms})
	r.Run(10 * sec)
	if n := r.Count(b, sec, 10*sec); n > 0 {
		t.Errorf("single losses asked everybody %d times", n)
	}
	r.At(10*sec, func() { a.Silent = true })
	r.Run(20 * sec)
	if n := r.Count(b, 10*sec, 20*sec); n > 10 {
		t.Errorf("asked everybody %d times in ten seconds", n)
	}
}

// TestNobodyToAsk: the consumer is told at once, that there is no way or that all
// queues are full. Where only the hop limit is in the way nobody is.
func TestNobodyToAsk(t *testing.T) {
	for _, remote := range []bool{false, true} {
		r := recorder(t)
		con := r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: remote})
		r.Run(sec)
		if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackNoRoute {
			t.Errorf("Nacks %v", con.Nacks)
		}
		for i := range 3 {
			r.AddHop(strategytest.Hop{NoRoute: i < 2, Refuse: true})
		}
		con = r.AddConsumer(strategytest.Consumer{Segments: 1, Start: 2 * sec})
		if remote { // which would be asked, too
			continue
		}
		r.Run(3 * sec)
		if len(con.Nacks) != 1 || con.Nacks[0] != ndn.NackCongestion {
			t.Errorf("Nacks %v from full queues", con.Nacks)
		}
	}
	r := recorder(t)
	r.AddHop(strategytest.Hop{NoRoute: true, RTT: 10 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1, Remote: true, Start: 5 * sec})
	var p ndn.Packet
	w := ndn.AppendInterest(nil, &ndn.InterestFields{Name: con.Name(0), Nonce: 1, HopLimit: 1})
	r.At(sec, func() {
		if err := p.Parse(w, &ndn.LpFields{}); err != nil {
			t.Fatal(err)
		}
		r.Shard().Receive(r.Time(sec), 258, &p)
	})
	r.Run(2 * sec)
	if c := r.Shard().Counters(); c.OutNacks > 0 || c.PitEntries != 1 {
		t.Errorf("%d Nacks, %d pending", c.OutNacks, c.PitEntries)
	}
}

// TestRepeatedIntoFullQueues: who is being answered is not told that queues are full.
func TestRepeatedIntoFullQueues(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{NoRoute: true, RTT: 500 * ms})
	con := r.AddConsumer(strategytest.Consumer{Segments: 1, Resend: 100 * ms})
	r.At(50*ms, func() { a.Refuse = true })
	r.Run(sec)
	if len(con.Nacks) > 0 || len(con.Arrivals) != 1 || con.Resent == 0 {
		t.Errorf("Nacks %v, %d arrivals, %d repeated", con.Nacks, len(con.Arrivals), con.Resent)
	}
}

// TestOneNoRouteIsNoFailure: a next hop that has no route to one name and answers
// others meanwhile is used on.
func TestOneNoRouteIsNoFailure(t *testing.T) {
	r := recorder(t)
	a := r.AddHop(strategytest.Hop{Name: "a", Cost: 1, RTT: 20 * ms})
	b := r.AddHop(strategytest.Hop{Name: "b", NoRoute: true, RTT: 20 * ms})
	con := r.AddConsumer(strategytest.Consumer{Every: 5 * ms})
	r.At(sec, func() { a.Nacks = ndn.NackNoRoute })
	r.At(sec+6*ms, func() { a.Nacks = 0 })
	r.Run(5 * sec)
	if n := r.Count(b, 0, 5*sec); n > 2 || len(con.Nacks) > 0 {
		t.Errorf("%d Interests to others, Nacks %v", n, con.Nacks)
	}
}
