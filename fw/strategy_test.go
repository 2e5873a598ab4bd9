package fw

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// probe is a strategy that records its events and does what a test tells it.
type probe struct {
	log      []string
	perEntry strategy.EntryState[int]
	perName  strategy.PrefixState[int]

	onInterest func(*strategy.Context, *strategy.Interest)
	onData     func(*strategy.Context, *strategy.Data)
	onTimer    func(*strategy.Context, *strategy.Timer)
	onHop      func(*strategy.Context, *strategy.NextHop)
	onNack     func(*strategy.Context, *strategy.Nack)
	onExpiry   func(*strategy.Context)
	onInherit  func(*strategy.Context)
	take       bool // replica-select requests
	limits     strategy.Suppression
}

func (p *probe) note(c *strategy.Context, format string, args ...any) {
	if !c.HasEntry() {
		format = "-" + format
	}
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *probe) Suppression() strategy.Suppression { return p.limits }

func (p *probe) Interest(c *strategy.Context, ev *strategy.Interest) {
	p.note(c, "interest %s new=%v retx=%v", c.Name(), ev.New, ev.Retransmission)
	if p.onInterest != nil {
		p.onInterest(c, ev)
	} else if h := c.NextHops(); len(h) > 0 {
		c.Send(h[0].Face)
	}
}

func (p *probe) Data(c *strategy.Context, ev *strategy.Data) {
	p.note(c, "data from %d rtt=%v/%v late=%v marked=%v", ev.In, ev.RTT, ev.RTTCertain, ev.Straggler, c.Marked())
	if p.onData != nil {
		p.onData(c, ev)
	}
}

func (p *probe) Loop(c *strategy.Context, ev *strategy.Loop) { p.note(c, "loop from %d", ev.In) }

func (p *probe) Nack(c *strategy.Context, ev *strategy.Nack) {
	p.note(c, "nack %s from %d after %v", ev.Reason, ev.In, ev.RTT)
	if p.onNack != nil {
		p.onNack(c, ev)
	}
}

func (p *probe) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	p.note(c, "gave up on %d %s", ev.On, ev.Out.Reason)
}

func (p *probe) Timer(c *strategy.Context, ev *strategy.Timer) {
	p.note(c, "timer %d", ev.Tag)
	if p.onTimer != nil {
		p.onTimer(c, ev)
	}
}

func (p *probe) Expiry(c *strategy.Context, ev *strategy.Expiry) {
	p.note(c, "expiry satisfied=%v send=%v", ev.Satisfied, c.Send(remote2))
	if p.onExpiry != nil {
		p.onExpiry(c)
	}
}

func (p *probe) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	p.note(c, "hop %d %d", ev.Face, ev.Change)
	if p.onHop != nil {
		p.onHop(c, ev)
	}
}

func (p *probe) Inherit(c *strategy.Context) {
	p.note(c, "inherit %s pending=%v", c.Name(), c.PendingOut())
	if p.onInherit != nil {
		p.onInherit(c)
	}
}

func (p *probe) SelectReplica(c *strategy.Context, ev *strategy.Interest) bool {
	p.note(c, "select %d", c.Link().ReplicaSelect)
	return p.take
}

func (p *probe) want(t testing.TB, lines ...string) {
	t.Helper()
	if !slices.Equal(p.log, lines) {
		t.Fatalf("events\n%q\nwant\n%q", p.log, lines)
	}
	p.log = nil
}

// probed returns a net whose strategy below /a is a probe.
func probed(t testing.TB, cfg Config) (*net, *probe) {
	p := &probe{limits: strategy.DefaultSuppression()}
	n := newNet(t, cfg, strategy.Factory{Name: "probe", Version: 1, New: func(strategy.Values) (strategy.Strategy, error) {
		return p, nil
	}})
	n.strategy("/a", "/localhost/nfd/strategy/probe")
	n.route("/a", remote1, 1).route("/a", remote2, 2)
	p.log = nil
	return n, p
}

func TestEvents(t *testing.T) {
	n, p := probed(t, Config{})
	n.interest(local1, "/a/1", 1)
	p.want(t, "interest /a/1 new=true retx=false")
	up := n.want("I401 /a/1")[0]
	n.after(15 * ms)
	n.interest(local1, "/a/1", 2)
	p.want(t, "interest /a/1 new=false retx=true")
	up2 := n.want("I401 /a/1")[0]
	n.interest(remote3, "/a/1", 2)
	p.want(t, "loop from 403")
	n.want() // the strategy handles loops
	n.nackFor(up, ndn.NackDuplicate)
	p.want(t) // not the latest Nonce
	n.after(5 * ms)
	n.data(remote1, "/a/1", func(l *ndn.LpFields) { l.CongestionMark = 1; l.PitToken = up2.p.PitToken })
	p.want(t, "data from 401 rtt=5ms/false late=false marked=true")
	n.want("D300 /a/1")
	n.interest(remote3, "/a/1", 2)
	p.want(t, "-loop from 403")

	n.interest(local1, "/a/2", 3)
	n.after(3 * ms)
	n.nackFor(n.want("I401 /a/2")[0], ndn.NackCongestion)
	p.want(t, "interest /a/2 new=true retx=false", "nack Congestion from 401 after 3ms")
	n.want() // nothing is passed down unless the strategy does
	n.interest(local1, "/a/2", 4)
	p.want(t, "interest /a/2 new=true retx=false")
	n.s.GaveUp(n.now, remote1, n.want("I401 /a/2")[0].wire)
	p.want(t, "gave up on 401 Congestion")

	n.interest(local1, "/a/3", 5, lifetime(50*ms))
	p.log = nil
	n.after(60 * ms)
	p.want(t, "expiry satisfied=false send=no pending Interest")
	n.take()
	n.idle()
	p.log = nil

	n.interest(local1, "/a/4", 6)
	n.interest(local1, "/a/5", 7)
	n.s.FaceDown(n.now, remote1)
	p.want(t, "interest /a/4 new=true retx=false", "interest /a/5 new=true retx=false",
		"-hop 401 1", "hop 401 1", "hop 401 1")
	n.s.FaceUp(n.now, remote1)
	p.want(t, "-hop 401 2", "hop 401 2", "hop 401 2")
	n.route("/a", remote3, 3)
	p.want(t, "-hop 403 3", "hop 403 3", "hop 403 3")
	n.route("/a/5", remote3, 3)
	p.want(t, "-hop 403 3", "hop 403 3")
	n.route("/b", remote3, 3)
	n.route("/a", remote3, 4) // a change of cost
	p.want(t)
}

func TestRefusals(t *testing.T) {
	n, p := probed(t, Config{PIT: table.PITConfig{MaxOutRecords: 1}})
	n.s.FaceDown(n.now, remote3)
	p.log = nil
	var got []strategy.Refusal
	send := func(faces ...ndn.FaceID) func(*strategy.Context, *strategy.Interest) {
		return func(c *strategy.Context, _ *strategy.Interest) {
			got = nil
			for _, f := range faces {
				got = append(got, c.Send(f))
			}
		}
	}
	want := func(r ...strategy.Refusal) {
		t.Helper()
		if !slices.Equal(got, r) {
			t.Fatalf("%v, want %v", got, r)
		}
	}
	p.onInterest = send(9999, remote3, local1)
	n.interest(local1, "/a/1", 1)
	want(strategy.RefusedNoFace, strategy.RefusedDown, strategy.RefusedDownstream)
	p.onInterest = send(remote2, local2, remote1)
	n.interest(remote1, "/a/2", 1, hop(1))
	want(strategy.RefusedHopLimit, strategy.Sent, strategy.RefusedDownstream)
	n.strategy("/localhop", "/localhost/nfd/strategy/probe")
	p.onInterest = send(remote2, local2, remote2)
	n.interest(remote1, "/localhop/2", 1)
	want(strategy.RefusedScope, strategy.Sent, strategy.RefusedScope)
	n.reject[remote1] = true
	p.onInterest = send(remote1, remote2, multi)
	n.interest(local1, "/a/3", 1)
	want(strategy.RefusedQueue, strategy.Sent, strategy.RefusedLimit)
	for r := strategy.Sent; r <= strategy.RefusedQueue; r++ {
		if r.String() == "" || r.String() == "unknown" {
			t.Fatal(r)
		}
	}
}

// A strategy sends again by itself before the consumer notices (failover).
func TestResendOnTimer(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		c.Send(remote1)
		c.Arm(30*ms, 7)
		c.Disarm(c.Arm(10*ms, 8))
	}
	p.onTimer = func(c *strategy.Context, ev *strategy.Timer) { c.Send(remote2) }
	n.interest(local1, "/a/1", 1, token(6), hop(20))
	n.want("I401 /a/1")
	n.after(29 * ms)
	n.want()
	n.after(2 * ms)
	up := n.want("I402 /a/1")[0].p
	if up.Interest.Nonce == 1 || up.Interest.HopLimit != 19 || up.IncomingFace != local1 {
		t.Fatalf("%+v", up)
	}
	p.want(t, "interest /a/1 new=true retx=false", "timer 7")
	n.after(5 * ms)
	n.data(remote2, "/a/1")
	n.want("D300 /a/1")
	p.want(t, "data from 402 rtt=6ms/true late=false marked=false")
	// Timers end with the entry.
	n.interest(local1, "/a/2", 1)
	n.data(remote1, "/a/2")
	n.after(time.Second)
	p.want(t, "interest /a/2 new=true retx=false", "data from 401 rtt=0s/true late=false marked=false")
	n.idle()
}

// What is of the link's scope leaves this host again only while somebody on it
// waits, whoever else does.
func TestResendWithinScope(t *testing.T) {
	n, p := probed(t, Config{})
	n.strategy("/localhop", "/localhost/nfd/strategy/probe")
	p.onInterest = func(c *strategy.Context, ev *strategy.Interest) {
		if ev.New {
			c.Send(remote1)
			c.Arm(50*ms, 1)
			c.Arm(150*ms, 2)
		}
	}
	var got []strategy.Refusal
	p.onTimer = func(c *strategy.Context, _ *strategy.Timer) { got = append(got, c.Send(remote3)) }
	n.interest(local1, "/localhop/a", 1, lifetime(100*ms))
	n.interest(remote2, "/localhop/a", 2, lifetime(time.Second))
	n.want("I401 /localhop/a")
	n.after(200 * ms)
	n.want("I403 /localhop/a")
	if !slices.Equal(got, []strategy.Refusal{strategy.Sent, strategy.RefusedScope}) {
		t.Errorf("%v", got)
	}
	n.idle()
}

func TestTimerLimits(t *testing.T) {
	n, p := probed(t, Config{MaxTimers: 3})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		for i := range table.MaxEntryTimers + 2 {
			if got := c.Arm(time.Duration(i)*ms, uint64(i)).IsSet(); got != (i < table.MaxEntryTimers) {
				t.Errorf("timer %d: %v", i, got)
			}
		}
		ids := []table.TimerID{c.ArmPlain(ms, 100), c.ArmPlain(ms, 101), c.ArmPlain(ms, 102), c.ArmPlain(ms, 103)}
		if ids[3].IsSet() || !c.Disarm(ids[0]) || c.Disarm(ids[0]) {
			t.Error("plain timers")
		}
	}
	n.interest(local1, "/a/1", 1)
	if c := n.s.Counters(); c.TimersFull != 3 {
		t.Fatalf("%+v", c)
	}
	p.log = nil
	n.after(ms)
	p.want(t, "timer 0", "timer 1", "-timer 101", "-timer 102")
	// The timers of a strategy that is no longer chosen are nobody's.
	n.interest(local1, "/a/2", 1)
	p.log = nil
	if err := n.s.UnsetStrategy(n.now, ndn.MustName("/a")); err != nil {
		t.Fatal(err)
	}
	n.strategy("/b", "/localhost/nfd/strategy/probe")
	n.after(time.Second)
	p.want(t)
	n.idle()
	if n.s.plain != 0 {
		t.Fatal("plain timers are not counted down")
	}
}

// The answer to a probe that comes after the entry was satisfied still tells
// its RTT.
func TestLinger(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		c.Send(remote1)
		c.Probe(remote2)
	}
	p.onData = func(c *strategy.Context, ev *strategy.Data) {
		if !ev.Straggler {
			c.Linger(50 * ms)
		}
	}
	n.interest(local1, "/a/1", 1)
	up := n.want("I401 /a/1", "I402 /a/1")
	if up[0].p.Interest.Nonce != 1 || up[1].p.Interest.Nonce == 1 {
		t.Fatal("nonces")
	}
	n.after(10 * ms)
	n.data(remote1, "/a/1")
	n.want("D300 /a/1")
	n.after(20 * ms)
	n.data(remote2, "/a/1")
	n.want()
	p.want(t, "interest /a/1 new=true retx=false", "data from 401 rtt=10ms/true late=false marked=false",
		"data from 402 rtt=30ms/true late=true marked=false")
	if c := n.s.Counters(); c.PitEntries != 0 || c.Satisfied != 1 {
		t.Fatalf("%+v", c)
	}
	// Without a late answer it ends when it has lingered.
	n.interest(local1, "/a/2", 2)
	n.data(remote1, "/a/2")
	n.after(49 * ms)
	p.log = nil
	n.after(2 * ms)
	p.want(t, "expiry satisfied=true send=no pending Interest")
	if c := n.s.Counters(); c.Expired != 0 {
		t.Fatalf("%+v", c)
	}
	// Its Nonces count although the content store is off.
	n.take()
	n.interest(remote3, "/a/2", 2)
	p.want(t, "-loop from 403")
	// A new Interest for a lingering entry does not wait for the probe alone.
	n.interest(local1, "/a/3", 4)
	n.data(remote1, "/a/3")
	n.take()
	n.interest(local2, "/a/3", 5)
	n.want("I401 /a/3", "I402 /a/3")
	n.data(remote2, "/a/3")
	n.want("D301 /a/3")
	n.idle()
}

func TestStateIsTypedAndZeroed(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, ev *strategy.Interest) {
		if p.perEntry.Peek(c) != nil && ev.New {
			t.Error("state before it was asked for")
		}
		v := p.perEntry.Get(c)
		if *v != 0 {
			t.Errorf("entry state starts as %d", *v)
		}
		*v = 5
		*p.perName.Get(c)++
		*p.perName.At(c, 2) += 10
		c.Send(remote1)
	}
	p.onData = func(c *strategy.Context, _ *strategy.Data) {
		if *p.perEntry.Get(c) != 5 || *p.perEntry.Peek(c) != 5 {
			t.Error("entry state lost")
		}
	}
	for i := range 10 {
		n.interest(local1, fmt.Sprintf("/a/%d", i%2), uint32(i))
		n.data(remote1, fmt.Sprintf("/a/%d", i%2))
	}
	var total, zero int
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		total, zero = *p.perName.Get(c), *p.perName.Of(c, ndn.MustName("/a/0"))
	}
	n.interest(local1, "/a/9", 99)
	if total != 10 || zero != 50 {
		t.Fatalf("%d %d", total, zero)
	}
	n.idle()
}

// A strategy that is chosen anew finds nothing of what was before: neither
// state nor timers of the Interests that are pending.
func TestChangeTakesStateAndTimers(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, ev *strategy.Interest) {
		if v := p.perEntry.Get(c); *v != 0 {
			t.Errorf("state %d survived the change", *v)
		} else {
			*v = 5
		}
		c.Arm(30*ms, 7)
		c.Send(remote1)
	}
	n.interest(local1, "/a/9", 1)
	n.strategy("/a", "/localhost/nfd/strategy/best-route")
	n.strategy("/a", "/localhost/nfd/strategy/probe")
	n.after(20 * ms)
	n.interest(local1, "/a/9", 2)
	n.after(20 * ms)
	p.want(t, "interest /a/9 new=true retx=false", "inherit /a/9 pending=true", "interest /a/9 new=false retx=true")
	n.after(20 * ms)
	p.want(t, "timer 7")
	n.take()
	n.idle()
}

// TestInherit: a strategy that is chosen is shown what is pending, in the order
// of arrival and with what was sent, and may send and arm timers.
func TestInherit(t *testing.T) {
	n, p := probed(t, Config{})
	n.strategy("/a", "/localhost/nfd/strategy/best-route")
	n.interest(local1, "/a/2", 1)
	n.after(time.Millisecond)
	n.interest(local1, "/a/1", 2)
	n.take()
	p.log = nil
	sentAt := map[string]ndn.Time{}
	p.onInherit = func(c *strategy.Context) {
		sentAt[c.Name().String()] = c.LatestOut().SentAt
		c.Arm(30*ms, 9)
		if r := c.Send(remote2); r != strategy.Sent {
			t.Error(r)
		}
	}
	n.strategy("/a", "/localhost/nfd/strategy/probe")
	p.want(t, "inherit /a/2 pending=true", "inherit /a/1 pending=true")
	if d := sentAt["/a/1"].Sub(sentAt["/a/2"]); d != time.Millisecond {
		t.Errorf("sent %v apart", d)
	}
	if out := n.take(); len(out) != 2 {
		t.Errorf("sent %v", out)
	}
	n.after(31 * ms)
	p.want(t, "timer 9", "timer 9")
	// Without a choice of its own the prefix is that of a shorter one.
	n.strategy("/", "/localhost/nfd/strategy/probe")
	if err := n.s.UnsetStrategy(n.now, ndn.MustName("/a")); err != nil {
		t.Fatal(err)
	}
	p.want(t, "inherit /a/2 pending=true", "inherit /a/1 pending=true")
	n.take()
	n.idle()
}

// TestInheritOnlyWhatIsWaitedFor: what was answered and lingers is nobody's to
// send, and what Inherit refuses ends at once.
func TestInheritOnlyWhatIsWaitedFor(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		c.Send(remote1)
		c.Probe(remote2)
	}
	p.onData = func(c *strategy.Context, _ *strategy.Data) { c.Linger(50 * ms) }
	n.interest(local1, "/a/1", 1)
	n.data(remote1, "/a/1")
	p.onInterest = func(*strategy.Context, *strategy.Interest) {}
	n.interest(local1, "/a/2", 2)
	n.take()
	p.log = nil
	p.onInherit = func(c *strategy.Context) { c.NackAll(ndn.NackNoRoute) }
	n.strategy("/", "/localhost/nfd/strategy/probe")
	if err := n.s.UnsetStrategy(n.now, ndn.MustName("/a")); err != nil {
		t.Fatal(err)
	}
	p.want(t, "inherit /a/2 pending=false")
	n.want("N300 /a/2 NoRoute")
	if c := n.s.Counters(); c.PitEntries != 1 {
		t.Errorf("%d entries, not the one that lingers", c.PitEntries)
	}
}

func TestReplicaSelect(t *testing.T) {
	n, p := probed(t, withCS())
	n.route("/b", remote3, 1)
	ask := func(v uint64) intOpt {
		return link(func(l *ndn.LpFields) { l.HasReplicaSelect, l.ReplicaSelect = true, v })
	}
	// Nobody here takes it: it goes upstream, and the acknowledgement down.
	n.interest(local1, "/b/1", 1, ask(4))
	if up := n.want("I403 /b/1")[0].p; !up.HasReplicaSelect || up.ReplicaSelect != 4 {
		t.Fatalf("%+v", up.LpFields)
	}
	n.data(remote3, "/b/1", func(l *ndn.LpFields) { l.HasReplicaSelect, l.ReplicaSelect = true, 4 })
	if d := n.want("D300 /b/1")[0].p; !d.HasReplicaSelect || d.ReplicaSelect != 4 {
		t.Fatalf("%+v", d.LpFields)
	}
	n.interest(local1, "/b/2", 1, ask(4))
	n.data(remote3, "/b/2")
	if d := n.take()[1].p; d.HasReplicaSelect {
		t.Fatal("acknowledged by nobody")
	}
	// The strategy takes it.
	p.take = true
	n.interest(local1, "/a/1", 1, ask(5))
	if up := n.want("I401 /a/1")[0].p; up.HasReplicaSelect {
		t.Fatalf("%+v", up.LpFields)
	}
	p.want(t, "select 5", "interest /a/1 new=true retx=false")
	// A new request is not suppressed, its repetition is.
	n.after(ms)
	n.interest(local1, "/a/1", 2, ask(6))
	n.interest(local1, "/a/1", 3, ask(6))
	p.want(t, "select 6", "interest /a/1 new=false retx=true")
	n.data(remote1, "/a/1")
	got := n.take()
	if d := got[len(got)-1].p; !d.HasReplicaSelect || d.ReplicaSelect != 6 {
		t.Fatalf("%+v", d.LpFields)
	}
	// Also when the content store answers.
	p.log = nil
	n.interest(local2, "/a/1", 4, ask(9))
	p.want(t, "-select 9")
	if d := n.want("D301 /a/1")[0].p; !d.HasReplicaSelect || d.ReplicaSelect != 9 {
		t.Fatalf("%+v", d.LpFields)
	}
}

func TestSuppressPerUpstream(t *testing.T) {
	n, p := probed(t, Config{})
	p.limits.Scope = strategy.SuppressUpstream
	n.strategy("/a/x", "/localhost/nfd/strategy/probe")
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		for _, h := range c.NextHops() {
			p.note(c, "%d %s", h.Face, c.Send(h.Face))
		}
	}
	n.interest(local1, "/a/x", 1)
	n.after(5 * ms)
	n.interest(local1, "/a/x", 2)
	n.after(5 * ms)
	n.interest(local1, "/a/x", 3)
	n.after(15 * ms)
	n.interest(local2, "/a/x", 4) // joins
	n.interest(local1, "/a/x", 5)
	p.want(t, "interest /a/x new=true retx=false", "401 sent", "402 sent",
		"interest /a/x new=false retx=true", "401 suppressed", "402 suppressed",
		"interest /a/x new=false retx=true", "401 sent", "402 sent",
		"interest /a/x new=false retx=false", "401 suppressed", "402 suppressed",
		"interest /a/x new=false retx=true", "401 suppressed", "402 suppressed")
	p.limits.Scope = strategy.SuppressNothing
	n.strategy("/a/y", "/localhost/nfd/strategy/probe")
	n.interest(local1, "/a/y", 1)
	n.interest(local1, "/a/y", 2)
	n.interest(local2, "/a/y", 3)
	p.want(t, "interest /a/y new=true retx=false", "401 sent", "402 sent",
		"interest /a/y new=false retx=true", "401 sent", "402 sent",
		"interest /a/y new=false retx=false", "401 sent", "402 sent")
}

func TestSelfLearningFields(t *testing.T) {
	var learnt []string
	n, p := probed(t, Config{OnAnnouncement: func(_ ndn.Time, from ndn.FaceID, data ndn.Name, a []byte) {
		learnt = append(learnt, fmt.Sprintf("%d %s %x", from, data, a))
	}})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		c.Send(remote1)
		c.NonDiscovery()
		c.Send(remote2)
	}
	ann := makeData("/a/32=PA/v=1/seg=0", time.Second, "x")
	with := func(l *ndn.LpFields) { l.Announcement = ann }
	n.interest(local1, "/a/1", 1)
	up := n.want("I401 /a/1", "I402 /a/1")
	if up[0].p.NonDiscovery || !up[1].p.NonDiscovery {
		t.Fatal("NonDiscovery")
	}
	n.data(remote1, "/a/1", with)
	if n.want("D300 /a/1")[0].p.Announcement != nil {
		t.Fatal("passed on without being asked")
	}
	p.onData = func(c *strategy.Context, _ *strategy.Data) {
		c.Learn()
		c.PassAnnouncement()
	}
	n.interest(local1, "/a/2", 1)
	n.take()
	n.data(remote1, "/a/2", with)
	if n.want("D300 /a/2")[0].p.Announcement == nil || len(learnt) != 1 || learnt[0] != fmt.Sprintf("401 /a/2 %x", ann) {
		t.Fatalf("%q", learnt)
	}
}

type traces []string

func (tr *traces) Trace(d *strategy.Decision) {
	*tr = append(*tr, fmt.Sprintf("%s %s %s in=%d to=%d %s %s %d", d.Strategy.Suffix(3), d.Event, d.Name, d.In, d.To, d.Refusal, d.Reason, len(d.Candidates)))
}

// one follows the Interests of one name.
type one struct {
	traces
	name ndn.Name
}

func (o *one) Follows(_ ndn.Time, name ndn.Name) bool { return o.name.Equal(name) }

func TestTraceOfSomeInterests(t *testing.T) {
	n, p := probed(t, Config{})
	asked := 0
	p.onInterest = func(c *strategy.Context, ev *strategy.Interest) {
		if c.Traced() {
			asked++
		}
		c.ExplainCost(remote2, "cheapest")
		c.Send(remote2)
		c.Nack(ev.In, ndn.NackNoRoute)
	}
	tr := one{name: ndn.MustName("/a/2")}
	n.s.SetTracer(&tr)
	for _, name := range []string{"/a/1", "/a/2", "/a/3"} {
		n.interest(local1, name, 1)
	}
	if asked != 1 || len(tr.traces) != 3 {
		t.Errorf("asked %d times, %q", asked, tr.traces)
	}
	n.s.SetTracer(nil)
	n.interest(local1, "/a/2", 2)
	if asked != 1 || len(tr.traces) != 3 {
		t.Errorf("asked %d times, %q", asked, tr.traces)
	}
}

func TestTrace(t *testing.T) {
	n, p := probed(t, Config{})
	p.onInterest = func(c *strategy.Context, _ *strategy.Interest) {
		if c.Traced() {
			c.Explain(remote2, "cheapest", []strategy.Candidate{{Face: remote2}, {Face: remote1}})
		}
		c.Send(9999)
		c.Send(remote2)
	}
	n.interest(local1, "/a/1", 1)
	var tr traces
	n.s.SetTracer(&tr)
	n.interest(local1, "/a/2", 1)
	n.s.SetTracer(nil)
	n.interest(local1, "/a/3", 1)
	want := []string{
		"/probe/v=1 Interest /a/2 in=300 to=402 sent cheapest 2",
		"/probe/v=1 Interest /a/2 in=300 to=9999 no such face  0",
		"/probe/v=1 Interest /a/2 in=300 to=402 sent  0",
	}
	if !slices.Equal(tr, want) {
		t.Fatalf("%q", tr)
	}
}

// BenchmarkStrategyCall is what a call of a strategy's handlers costs the
// shard: the context, the FIB look-up and the state, without sending.
func BenchmarkStrategyCall(b *testing.B) {
	n, p := probed(b, Config{})
	q := &quiet{}
	bd := bind(q, ndn.MustName("/localhost/nfd/strategy/probe/v=1"))
	n.interest(local1, "/a/1", 1)
	var e *table.PitEntry
	n.s.pit.Each(func(x *table.PitEntry) { e = x })
	_ = p
	b.ReportAllocs()
	for b.Loop() {
		n.s.begin(n.now, bd, e, "Interest")
		n.s.evI = strategy.Interest{In: local1, New: true}
		bd.s.Interest(n.s.ctx, &n.s.evI)
		n.s.ctx.End()
	}
}

type quiet struct {
	perEntry strategy.EntryState[[4]uint64]
	perName  strategy.PrefixState[[4]uint64]
}

func (q *quiet) Interest(c *strategy.Context, _ *strategy.Interest) {
	if len(c.NextHops()) > 0 {
		q.perEntry.Get(c)[0]++
		q.perName.Get(c)[0]++
	}
}
func (q *quiet) Data(*strategy.Context, *strategy.Data) {}
