package sim

import (
	"time"

	"ndnpop/ndn"
)

// Routes that are learnt from prefix announcements, as the daemon makes them.
const (
	learntCost = 2048
	learntFor  = 10 * time.Minute // at most
)

// learnt is a route that a strategy had learnt.
type learnt struct {
	prefix  ndn.Name
	face    ndn.FaceID
	expires ndn.Time
}

// announced notes a prefix announcement that a strategy wants learnt
// (fw.Config.OnAnnouncement): that of a name above the Data that carried it,
// whoever signed it. Its route is made when the shard has done its work.
func (x *Node) announced(now ndn.Time, from ndn.FaceID, data ndn.Name, wire []byte) {
	var d ndn.Data
	if d.Parse(wire) != nil || d.ContentType != ndn.ContentPrefixAnnouncement {
		return
	}
	e, _, err := ndn.NextElement(d.Content)
	if err != nil || e.Type != 0x6d { // ExpirationPeriod
		return
	}
	ms, err := ndn.ParseNat(e.Value)
	if p := d.Name.Prefix(-3); err == nil && ms > 0 && data.HasPrefix(p) {
		life := time.Duration(min(ms, uint64(learntFor/time.Millisecond))) * time.Millisecond
		x.heard = append(x.heard, learnt{p.Clone(), from, now.Add(life)})
	}
}

// learn makes the routes of the announcements that were heard.
func (x *Node) learn(now ndn.Time) {
	for _, r := range x.heard {
		if p := x.ports[r.face-firstFace]; p == nil || findRoute(x.routes, r.prefix, p) != nil {
			continue
		}
		known := false
		for i := range x.learnt {
			if l := &x.learnt[i]; l.face == r.face && l.prefix.Equal(r.prefix) {
				l.expires, known = r.expires, true
			}
		}
		if !known {
			x.learnt = append(x.learnt, r)
			x.net.fail(x.shard.SetNextHop(now, r.prefix, r.face, learntCost))
		}
		x.forgets = min(x.forgets, r.expires)
	}
	x.heard = x.heard[:0]
}

// forget removes the routes whose time is over.
func (x *Node) forget(now ndn.Time) {
	kept := x.learnt[:0]
	x.forgets = ndn.Never
	for _, r := range x.learnt {
		if r.expires > now {
			kept = append(kept, r)
			x.forgets = min(x.forgets, r.expires)
		} else {
			x.shard.RemoveNextHop(now, r.prefix, r.face)
		}
	}
	x.learnt = kept
}
