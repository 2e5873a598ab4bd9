// Package nst is the strategy that chooses among replicas by a node state
// table, as the edge node of the 2LCCM paper does.
//
// Every next hop of a prefix is a replica, and a row of the table:
//
//	x1  hops to it: the cost of its route, or learnt from path tags
//	x2  Interests outstanding there, our own count
//	x3  congestion: RTT - RTTbase, smoothed by 1/8, halving in 10 s of silence
//
// The value of a row is F(x), lower is better. F of the paper is the weighted
// sum with 0.757, 0.162 and 0.081 ("ers"); others can be added as a
// [Function]. The normalisation is not given there; here it is min-max over
// the candidates, since milliseconds would swamp hops otherwise. Ties go to the
// lower RTTbase, then to the lower face.
//
// All Interests of one version of an object go to one replica; those with a
// forwarding hint, to one for their delegation. It changes when
// a consumer asks for it (the ReplicaSelect link header) or when the link fails:
// the face goes down, the route is removed, the replica answers NoRoute, the
// link service gives up on three Interests in a row, or the replica is silent.
// It never changes because values cross, so it cannot flap. After a change requests are acknowledged
// but not followed for the time hold, since several consumers of one object
// complain about the same congestion; a replica that was left is not taken
// again for the time avoid, if there is another one, and keeps the congestion
// that it was left with as long in its row.
//
// The paper says nothing of a replica whose link reports no failure and that
// answers no more. Here it is silent when nothing at all, Data or Nack, has come
// from it for some of its round-trip times and several Interests have waited as
// long; single losses leave it where it is. What is outstanding moves on with
// its object, with fresh Nonces, spread out so that it fits into the queue of the
// other replica's path. When the replica answers after all
// what it was asked before, its path has only become longer: the object goes
// back. A silent replica is not chosen for the time
// avoid, which doubles while it stays silent, unless it is heard before. An
// object stays where it is when all the others are silent too: when everything
// is dead objects move once in that time, not in circles, and when a consumer
// asks.
package nst

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Function values a replica; lower is better.
type Function struct {
	Name, Usage string
	// Of gets x1, x2 and x3: normalised to 0…1 over the candidates, and raw
	// (hops, Interests, milliseconds). It must not allocate.
	Of func(x, raw [3]float64) float64
}

// builtin are the functions that come with the strategy.
func builtin() []Function {
	return []Function{
		{"ers", "0.757 hops + 0.162 outstanding + 0.081 congestion, normalised", func(x, _ [3]float64) float64 {
			return 0.757*x[0] + 0.162*x[1] + 0.081*x[2]
		}},
		{"hops", "hops alone", func(_, raw [3]float64) float64 { return raw[0] }},
		{"load", "Interests outstanding alone", func(_, raw [3]float64) float64 { return raw[1] }},
		{"congestion", "congestion alone", func(_, raw [3]float64) float64 { return raw[2] }},
	}
}

// Factory returns the factory of nst, with further functions to choose from.
func Factory(further ...Function) strategy.Factory {
	all := append(builtin(), further...)
	usage := make([]string, len(all))
	for i, f := range all {
		usage[i] = f.Name + ": " + f.Usage
	}
	return strategy.Factory{
		Name:    "nst",
		Version: 1,
		Usage:   "one replica per object version, chosen by a node state table",
		Params: append([]strategy.Param{
			{Name: "function", Usage: "how replicas are valued (ers); " + strings.Join(usage, "; ")},
			{Name: "hops", Usage: "hops from the route's cost, or learnt by path tag: cost or tag (cost)"},
			{Name: "hold", Usage: "milliseconds after a change in which requests are not followed (2000)"},
			{Name: "avoid", Usage: "milliseconds for which a replica that was left is avoided (10000)"},
		}, strategy.SilenceParams(silence())...),
		New: func(v strategy.Values) (strategy.Strategy, error) { return parse(v, all) },
	}
}

func parse(v strategy.Values, all []Function) (strategy.Strategy, error) {
	n := &nst{}
	name := v.String("function", all[0].Name)
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.Name
		if f.Name == name {
			n.value = f.Of
		}
	}
	if n.value == nil {
		return nil, fmt.Errorf("%w: nst: function~%s is unknown: the choices are %s", strategy.ErrParam, name, strings.Join(names, ", "))
	}
	switch h := v.String("hops", "cost"); h {
	case "cost":
	case "tag":
		n.byTag = true
	default:
		return nil, fmt.Errorf("%w: nst: hops~%s is unknown: the choices are cost, tag", strategy.ErrParam, h)
	}
	var err error
	if n.hold, err = v.MillisIn("hold", 2*time.Second, 0, time.Hour); err != nil {
		return nil, err
	}
	if n.avoid, err = v.MillisIn("avoid", 10*time.Second, 0, time.Hour); err != nil {
		return nil, err
	}
	n.silence, err = strategy.ParseSilence(v, silence())
	return n, err
}

const (
	// halving is how long a silent replica's congestion takes to halve.
	halving = 10 * time.Second
	// baseSpan is the time after which an RTTbase is forgotten: between one
	// and two of it.
	baseSpan = 30 * time.Second
	// sure is how many Data by another path make it the replica's path.
	sure = 8
	// giveUps in a row are a failure of the link.
	giveUps = 3
)

type nst struct {
	value       func(x, raw [3]float64) float64
	byTag       bool
	hold, avoid time.Duration
	silence     strategy.Silence

	tables  strategy.PrefixState[nodes]
	objects strategy.PrefixState[object]
	entries strategy.EntryState[pending]
	killed  strategy.Spread // what is sent again as a face went down, of all prefixes
}

// nodes is the node state table of a prefix.
type nodes struct {
	strategy.Hops[row]
	spread strategy.Spread  // what is sent again for another reason
	line   *strategy.Spread // that new Interests go behind, nil without one
}

// row is the state of one replica.
type row struct {
	outstanding *int // its own, so that pending Interests can outlive the row
	congestion  float64
	heard       ndn.Time // latest RTT sample
	base, last  time.Duration
	span        ndn.Time // when base began
	hops        uint8    // learnt, 0 if not
	tag         uint64   // path that base and congestion belong to
	other       uint32   // Data in a row by another path
	gaveUp      uint32   // in a row
	penalty     float64  // least congestion until
	until       ndn.Time
	life        life
}

// object is one version of an object.
type object struct {
	replica  ndn.FaceID
	left     ndn.FaceID // the one before
	switched ndn.Time
	asked    bool // another replica is to be chosen
	from     ndn.FaceID
	counter  uint64 // of the latest request, which came from that face
	undo     undo
}

// pending counts an Interest as outstanding at a replica until it ends, and
// watches over that replica.
type pending struct {
	at *int
	watch
}

// Release implements strategy.Releaser.
func (p *pending) Release() {
	if p.at != nil {
		*p.at--
		p.at = nil
	}
}

// objectOf cuts a name after its last version component or, without one,
// before its last component.
func objectOf(n ndn.Name) ndn.Name {
	end, last := 0, 0
	for at := 0; at < len(n); {
		kind, length, header, _ := ndn.ReadTL(n[at:])
		last, at = at, at+header+length
		if kind == ndn.TypeVersion {
			end = at
		}
	}
	if end == 0 {
		end = last
	}
	return n[:end]
}

// object is what the event's Interest gets its replica for: the version of the
// object or, when a forwarding hint leads the way, the delegation. The next hops
// of a delegation say nothing about those of the name.
func (n *nst) object(c *strategy.Context) *object {
	if p := c.Prefix(); !c.Name().HasPrefix(p) {
		return n.objects.Of(c, p)
	}
	return n.objects.Of(c, objectOf(c.Name()))
}

// SelectReplica implements strategy.ReplicaSelector.
func (n *nst) SelectReplica(c *strategy.Context, ev *strategy.Interest) bool {
	o, now := n.object(c), c.Now()
	counter := c.Link().ReplicaSelect
	if o.from == ev.In && o.counter == counter {
		return true // a repetition
	}
	o.from, o.counter = ev.In, counter
	o.asked = o.replica != 0 && (o.switched == 0 || now.Sub(o.switched) >= n.hold)
	return true
}

// Interest implements strategy.Strategy.
func (n *nst) Interest(c *strategy.Context, ev *strategy.Interest) {
	st, p := n.tables.Get(c), n.entries.Get(c)
	if ev.New && st.line != nil {
		if p.LineUp(c, st.line, tagNew) {
			return
		}
		if st.line.Over(c.Now()) {
			st.line = nil
		}
	}
	switch r := n.forward(c, st, p, n.object(c)); {
	case r == strategy.Sent || !ev.New:
	case r == strategy.RefusedQueue:
		c.Nack(ev.In, ndn.NackCongestion) // no reason to leave the replica
	default:
		c.Nack(ev.In, ndn.NackNoRoute)
	}
}

// forward sends to the object's replica, after choosing one if there is none
// or a request or failure says so.
func (n *nst) forward(c *strategy.Context, st *nodes, p *pending, o *object) strategy.Refusal {
	hops := c.Candidates()
	at := find(hops, o.replica)
	switch {
	case o.replica == 0:
		at = n.choose(c, st, o, hops, "new object", true)
	case at < 0 && c.Barred(o.replica):
		if at = n.best(c, st, o, hops, true); at >= 0 && c.Traced() {
			n.explain(c, st, hops, hops[at].Face, "this Interest alone may not go to the object's replica")
		}
	case at < 0:
		at = n.choose(c, st, o, hops, "the replica is gone", true)
	case o.asked:
		silent := st.Of(o.replica).life.isSilent(c.Now())
		at = n.choose(c, st, o, hops, "a consumer asks for another replica", silent)
	case c.Traced():
		n.explain(c, st, hops, o.replica, "the object's replica")
	}
	if at < 0 {
		return strategy.RefusedNoFace
	}
	refusal := c.Send(hops[at].Face)
	r := st.Of(hops[at].Face)
	switch refusal {
	case strategy.RefusedQueue:
		r.life.last = c.Now() // who cannot be asked is not silent
	case strategy.Sent:
		p.count(r)
		r.life.sent(c.Now())
		p.missing = false
		n.watch(c, &p.watch, hops[at].Face, &r.life)
	}
	return refusal
}

// count counts the Interest as outstanding at a replica and nowhere else.
func (p *pending) count(r *row) {
	if r.outstanding == nil {
		r.outstanding = new(int)
	}
	p.Release()
	p.at = r.outstanding
	*p.at++
}

func find(hops []table.NextHop, f ndn.FaceID) int {
	for i := range hops {
		if hops[i].Face == f {
			return i
		}
	}
	return -1
}

// best is the place in hops of the replica of the lowest value other than an
// object's present one and, if possible, than the one before; -1 without one. It is
// a silent one only if it must be another one.
func (n *nst) best(c *strategy.Context, st *nodes, o *object, hops []table.NextHop, must bool) int {
	now := c.Now()
	v := n.values(st, hops, now)
	avoid := ndn.FaceID(0)
	if now.Sub(o.switched) < n.avoid {
		avoid = o.left
	}
	rank := func(i int) (r int) { // of what must not be chosen while there is another one
		if st.Of(hops[i].Face).life.isSilent(now) {
			r = 2
		}
		if hops[i].Face == avoid {
			r++
		}
		return r
	}
	best := -1
	for i := range hops {
		switch r := rank(i); {
		case hops[i].Face == o.replica, r >= 2 && !must:
		case best < 0 || r < rank(best) || r == rank(best) && n.better(st, hops, &v, i, best):
			best = i
		}
	}
	return best
}

// choose moves an object to the best other replica. Without an alternative it stays.
// It returns the replica's place in hops, -1 without one.
func (n *nst) choose(c *strategy.Context, st *nodes, o *object, hops []table.NextHop, why string, must bool) int {
	now, best := c.Now(), n.best(c, st, o, hops, must)
	if best < 0 {
		o.asked = false
		return find(hops, o.replica)
	}
	if c.Traced() {
		n.explain(c, st, hops, hops[best].Face, why)
	}
	if o.asked {
		r := st.Of(o.replica)
		r.penalty, r.until = r.x3(now), now.Add(n.avoid)
	}
	if o.replica != 0 {
		o.left, o.switched = o.replica, now
	}
	o.replica, o.asked, o.undo = hops[best].Face, false, undo{}
	return best
}

// better reports whether replica i is to be preferred to replica j.
func (n *nst) better(st *nodes, hops []table.NextHop, v *[strategy.MaxHops]float64, i, j int) bool {
	if v[i] != v[j] {
		return v[i] < v[j]
	}
	a, b := st.Of(hops[i].Face).floor(), st.Of(hops[j].Face).floor()
	if a != b {
		return a < b
	}
	return hops[i].Face < hops[j].Face
}

// values computes F of all candidates.
func (n *nst) values(st *nodes, hops []table.NextHop, now ndn.Time) (v [strategy.MaxHops]float64) {
	lo := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	hi := [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for i := range hops {
		raw := n.raw(st.Of(hops[i].Face), &hops[i], now)
		for k, x := range raw {
			lo[k], hi[k] = min(lo[k], x), max(hi[k], x)
		}
	}
	for i := range hops {
		raw := n.raw(st.Of(hops[i].Face), &hops[i], now)
		var x [3]float64
		for k := range raw {
			if hi[k] > lo[k] {
				x[k] = (raw[k] - lo[k]) / (hi[k] - lo[k])
			}
		}
		v[i] = n.value(x, raw)
	}
	return v
}

// raw are x1, x2 and x3 of a replica.
func (n *nst) raw(r *row, h *table.NextHop, now ndn.Time) [3]float64 {
	x := [3]float64{float64(h.Cost), 0, r.x3(now)}
	if n.byTag && r.hops > 0 {
		x[0] = float64(r.hops)
	}
	if r.outstanding != nil {
		x[1] = float64(*r.outstanding)
	}
	return x
}

// faded is what congestion has become by now. Between samples that come one
// after the other nothing fades.
func (r *row) faded(now ndn.Time) float64 {
	silent := now.Sub(r.heard)
	if silent < halving/1000 || r.congestion == 0 {
		return r.congestion
	}
	return r.congestion * math.Exp2(-float64(silent)/float64(halving))
}

// x3 is the congestion in milliseconds.
func (r *row) x3(now ndn.Time) float64 {
	if now < r.until {
		return max(r.faded(now), r.penalty)
	}
	return r.faded(now)
}

// floor is RTTbase, as long as possible when it is unknown.
func (r *row) floor() time.Duration {
	switch {
	case r.base == 0 && r.last == 0:
		return math.MaxInt64
	case r.last == 0 || r.base > 0 && r.base < r.last:
		return r.base
	}
	return r.last
}

// Data implements strategy.Strategy.
func (n *nst) Data(c *strategy.Context, ev *strategy.Data) {
	if ev.Out == nil {
		return
	}
	r := n.tables.Get(c).Of(ev.In)
	r.gaveUp = 0
	r.life.heard(c.Now())
	if ev.RTTCertain {
		r.life.rtt.Add(ev.RTT)
	}
	if p := n.entries.Peek(c); ev.Straggler || len(c.Outs()) > 1 || p != nil && p.Queued() {
		n.object(c).late(&r.life, c.Now(), ev)
		if !ev.Straggler && c.AwaitsOthers(ev.In) {
			n.entries.Get(c).Release()
			c.Linger(lingering)
		}
	}
	tag := uint64(0)
	if l := c.Link(); l != nil && l.HasPathTag {
		tag = l.PathTag.Tag
	}
	if tag != r.tag {
		// RTTs of different paths, such as of a cache half way, do not mix.
		if r.other++; r.other < sure && r.heard != 0 {
			return
		}
		*r = row{outstanding: r.outstanding, tag: tag, penalty: r.penalty, until: r.until, life: r.life}
	}
	r.other = 0
	if tag != 0 {
		r.hops = c.Link().PathTag.Hops
	}
	if ev.RTTCertain {
		r.sample(c.Now(), ev.RTT)
	}
}

// sample takes an RTT into base and congestion.
func (r *row) sample(now ndn.Time, rtt time.Duration) {
	x := r.faded(now)
	if r.span == 0 {
		r.span = now
	}
	if now.Sub(r.span) >= baseSpan {
		r.last, r.base, r.span = r.base, 0, now
	}
	if r.base == 0 || rtt < r.base {
		r.base = max(rtt, 1)
	}
	over := float64(rtt-r.floor()) / float64(time.Millisecond)
	r.congestion, r.heard = x+(over-x)/8, now
}

// Nack implements strategy.NackHandler.
func (n *nst) Nack(c *strategy.Context, ev *strategy.Nack) {
	n.entries.Get(c).Release()
	n.tables.Get(c).Of(ev.In).life.heard(c.Now())
	if ev.Reason != ndn.NackNoRoute || !n.fail(c, ev.In, "the replica has no route", true) {
		c.PassNacks()
	}
}

// GaveUp implements strategy.GaveUpHandler.
func (n *nst) GaveUp(c *strategy.Context, ev *strategy.GaveUp) {
	n.entries.Get(c).Release()
	r := n.tables.Get(c).Of(ev.On)
	if r.gaveUp++; r.gaveUp < giveUps || !n.fail(c, ev.On, "the link to the replica fails", true) {
		c.PassNacks()
	}
}

// fail moves an object away from a replica, unless that has happened, and
// sends the Interest to where the object is now. It reports whether it was
// sent, or will be.
func (n *nst) fail(c *strategy.Context, from ndn.FaceID, why string, must bool) bool {
	if len(c.Ins()) == 0 {
		return true
	}
	st, o := n.tables.Get(c), n.object(c)
	if o.replica == from {
		n.choose(c, st, o, c.Candidates(), why, must)
	}
	if o.replica == from || c.Out(o.replica) != nil || c.Barred(o.replica) {
		return false
	}
	p := n.entries.Get(c)
	return n.forward(c, st, p, o) == strategy.Sent || p.Later(c, tagTurn)
}

// NextHop implements strategy.NextHopHandler.
func (n *nst) NextHop(c *strategy.Context, ev *strategy.NextHop) {
	if c.HasEntry() && !c.PendingOut() && !n.entries.Get(c).Queued() {
		n.queue(c, ev.Face)
	}
}

// Inherit implements strategy.InheritHandler: the replica that an Interest was
// last sent to is watched as if it had been sent from here.
func (n *nst) Inherit(c *strategy.Context) {
	o := c.LatestOut()
	if o == nil {
		if hops := c.Candidates(); len(hops) > 0 {
			n.queue(c, hops[0].Face)
		}
		return
	}
	r, p := n.tables.Get(c).Of(o.Face), n.entries.Get(c)
	p.count(r)
	r.life.sent(o.SentAt)
	n.watch(c, &p.watch, o.Face, &r.life)
}

func (n *nst) explain(c *strategy.Context, st *nodes, hops []table.NextHop, to ndn.FaceID, why string) {
	v, all := n.values(st, hops, c.Now()), make([]strategy.Candidate, len(hops))
	for i := range hops {
		x := n.raw(st.Of(hops[i].Face), &hops[i], c.Now())
		all[i] = strategy.Candidate{
			Face: hops[i].Face, Cost: hops[i].Cost, Weight: v[i],
			Note: fmt.Sprintf("%.4g hops, %.4g outstanding, %.3g ms congestion", x[0], x[1], x[2]),
		}
	}
	c.Explain(to, why, all)
}

// Report implements strategy.Reporter: the node state table. RTTs that are
// not known are zero, and silent is 1 or 0.
func (n *nst) Report(c *strategy.Context) strategy.Report {
	rep := strategy.Report{Columns: []string{"value", "hops", "outstanding", "congestion_ms", "rtt_base_ms", "silent"}}
	hops := c.Routes()
	hops = hops[:min(len(hops), strategy.MaxHops)]
	st := n.tables.Get(c)
	v := n.values(st, hops, c.Now())
	for i := range hops {
		r := st.Of(hops[i].Face)
		x, base, silent := n.raw(r, &hops[i], c.Now()), 0.0, 0.0
		if r.life.isSilent(c.Now()) {
			silent = 1
		}
		if f := r.floor(); f < math.MaxInt64 {
			base = float64(f) / float64(time.Millisecond)
		}
		rep.Rows = append(rep.Rows, strategy.ReportRow{Face: hops[i].Face, Cells: []float64{v[i], x[0], x[1], x[2], base, silent}})
	}
	return rep
}
