package mgmt

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/fw/internal/due"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// Bounds of readvertising.
const (
	advertWindow   = 16 // commands that wait for an answer
	advertTimeout  = 5 * time.Second
	advertRetryMin = time.Second
	advertRetryMax = time.Minute
	withdrawTries  = 5
	// maxWithdrawn bounds the routes that have gone and are still to be
	// withdrawn; the others are bounded with the RIB.
	maxWithdrawn = 1 << 16
)

// nlsr is the prefix at which routing daemons take announcements.
func nlsr() ndn.Name { return ndn.Name(nil).AppendGeneric("localhost").AppendGeneric("nlsr") }

// isDaemonPrefix reports whether a route to this prefix means that there is a
// routing daemon.
func isDaemonPrefix(prefix ndn.Name) bool { return prefix.Equal(nlsr()) }

// advertised reports whether a route is to be told to the routing daemon: those
// that applications registered as a client's, outside the scopes of this host
// and link.
func advertised(r *run.Route) bool {
	if r.Origin != proto.OriginClient || len(r.Prefix) == 0 {
		return false
	}
	c, _ := r.Prefix.Next()
	return c.Type != ndn.TypeGeneric || (string(c.Value) != "localhost" && string(c.Value) != "localhop")
}

// readvertiser tells the routing daemon (NLSR, ndn-dv) of routes that
// applications registered: rib/register and rib/unregister at /localhost/nlsr.
// It is a state machine: it is told of routes, answers and time, and says
// which commands to send. Without a route to the daemon it sends nothing and
// remembers what there would be to say.
//
// NLSR counts an announcement by its name, ndn-dv by name and face. Both end
// right when, after one face of several has been withdrawn, the others are
// announced again. NLSR 24.08 ends with an exception when a command has more than
// name and origin, as NFD's have; ndn-dv wants face and cost. They are told apart
// by the route to them, which ndn-dv registers as a routing daemon's and NLSR as
// an application's.
type readvertiser struct {
	wall    func() time.Time
	random  func() uint64
	stamper proto.Stamper

	daemons   map[daemonRoute]struct{}
	adverts   map[advertKey]*advert
	byPrefix  map[string][]*advert
	withdrawn int                // adverts whose route has gone
	ready     []*advert          // may have something to say, oldest first
	timers    due.Queue[*advert] // those that wait for an answer or for another try
	inflight  map[string]*advert
	seq       uint64
	confirmed uint64 // commands that the daemon took
}

// daemonRoute is a route to the daemon.
type daemonRoute struct {
	face   ndn.FaceID
	origin uint64
}

type advertKey struct {
	prefix string
	face   ndn.FaceID
}

// advert is a route that is, or that the daemon may still know.
type advert struct {
	key   advertKey
	made  uint64 // order of creation
	cost  uint64
	want  bool // the route exists
	known bool // the daemon may know it: a register was sent
	right bool // the daemon confirmed the route as it is
	ready bool // in the ready list
	tries int

	sent      string // name of the command that waits for an answer
	asked     bool   // that command was a register
	askedCost uint64
	at        ndn.Time
	seq       uint64
	place     due.Place // in timers
}

// unsaid reports whether there is something to tell the daemon.
func (ad *advert) unsaid() bool {
	if ad.want {
		return !ad.right
	}
	return ad.known
}

func newReadvertiser(wall func() time.Time, random func() uint64) *readvertiser {
	return &readvertiser{
		wall: wall, random: random,
		daemons:  map[daemonRoute]struct{}{},
		adverts:  map[advertKey]*advert{},
		byPrefix: map[string][]*advert{},
		inflight: map[string]*advert{},
	}
}

func (a *readvertiser) available() bool { return len(a.daemons) > 0 }

// byFace reports whether the daemon wants to know face and cost of a route.
func (a *readvertiser) byFace() bool {
	for d := range a.daemons {
		if d.origin != proto.OriginNLSR {
			return false
		}
	}
	return true
}

// route notes that a route has been added (or changed) or removed.
func (a *readvertiser) route(r *run.Route, added bool) {
	if isDaemonPrefix(r.Prefix) {
		a.daemon(daemonRoute{r.Face, r.Origin}, added)
	}
	if !advertised(r) {
		return
	}
	k := advertKey{string(r.Prefix), r.Face}
	ad := a.adverts[k]
	if ad == nil {
		if !added {
			return
		}
		a.seq++
		ad = &advert{key: k, made: a.seq}
		a.adverts[k] = ad
		a.byPrefix[k.prefix] = append(a.byPrefix[k.prefix], ad)
		a.withdrawn++
	}
	if added == ad.want && (!added || ad.cost == r.Cost) {
		return
	}
	was := ad.want
	ad.want, ad.right, ad.tries = added, false, 0
	switch {
	case added:
		ad.cost = r.Cost
		if !was {
			a.withdrawn--
		}
	case was:
		if a.withdrawn++; a.withdrawn > maxWithdrawn {
			ad.known = false // the daemon does not keep up, or is deaf
		}
	}
	a.consider(ad)
}

// daemon notes that a route to the daemon came or went. A new daemon knows
// nothing.
func (a *readvertiser) daemon(r daemonRoute, added bool) {
	if _, known := a.daemons[r]; known == added {
		return
	}
	if added {
		a.daemons[r] = struct{}{}
	} else if delete(a.daemons, r); a.available() {
		return
	}
	for _, ad := range a.sorted() {
		a.stopTimer(ad)
		ad.known, ad.right, ad.tries, ad.sent = false, false, 0, ""
		a.consider(ad)
	}
	clear(a.inflight)
}

// sorted lists all adverts in the order of their creation.
func (a *readvertiser) sorted() []*advert {
	return slices.SortedFunc(maps.Values(a.adverts), func(x, y *advert) int { return cmp.Compare(x.made, y.made) })
}

// consider arranges that what is unsaid about ad is said, or forgets it when
// there will be nothing more to say. While a command waits for its answer,
// the answer decides.
func (a *readvertiser) consider(ad *advert) {
	switch {
	case ad.sent != "":
	case ad.unsaid():
		a.stopTimer(ad)
		if !ad.ready {
			ad.ready = true
			a.ready = append(a.ready, ad)
		}
	case !ad.want:
		a.stopTimer(ad)
		a.forget(ad)
	}
}

func (a *readvertiser) forget(ad *advert) {
	delete(a.adverts, ad.key)
	list := slices.DeleteFunc(a.byPrefix[ad.key.prefix], func(x *advert) bool { return x == ad })
	if len(list) == 0 {
		delete(a.byPrefix, ad.key.prefix)
	} else {
		a.byPrefix[ad.key.prefix] = list
	}
	a.withdrawn--
	// Without a daemon nothing is ever taken from the list.
	if len(a.ready) > 2*len(a.adverts)+advertWindow {
		a.ready = slices.DeleteFunc(a.ready, func(x *advert) bool { return a.adverts[x.key] != x })
	}
}

func (a *readvertiser) startTimer(ad *advert, at ndn.Time) {
	a.seq++
	ad.at, ad.seq = at, a.seq
	a.timers.Set(ad)
}

func (a *readvertiser) stopTimer(ad *advert) { a.timers.Remove(ad) }

// deadline is when next wants to be called, if nothing else happens before.
func (a *readvertiser) deadline() ndn.Time {
	if a.timers.Len() == 0 {
		return ndn.Never
	}
	return a.timers.First().at
}

// next returns the next command to send now, nil when there is none.
func (a *readvertiser) next(now ndn.Time) []byte {
	for a.deadline() <= now {
		ad := a.timers.First()
		a.stopTimer(ad)
		if ad.sent != "" { // no answer
			delete(a.inflight, ad.sent)
			ad.sent = ""
			a.retry(now, ad)
			continue
		}
		a.consider(ad)
	}
	for a.available() && len(a.ready) > 0 && len(a.inflight) < advertWindow {
		ad := a.ready[0]
		a.ready[0] = nil
		a.ready = a.ready[1:]
		ad.ready = false
		if ad.sent == "" && ad.unsaid() && a.adverts[ad.key] == ad {
			if wire := a.command(now, ad); wire != nil {
				return wire
			}
		}
	}
	return nil
}

func (a *readvertiser) command(now ndn.Time, ad *advert) []byte {
	p := proto.ControlParameters{
		Name:   optional.Some(ndn.Name(ad.key.prefix)),
		Origin: optional.Some(proto.OriginClient),
	}
	verb := "unregister"
	if ad.want {
		verb = "register"
	}
	if a.byFace() {
		p.FaceID = optional.Some(uint64(ad.key.face))
		if ad.want {
			p.Cost = optional.Some(ad.cost)
		}
	}
	wire := proto.AppendCommand(nil, nlsr(), "rib", verb, &p, a.stamper.Stamp(a.wall(), a.random()))
	var i ndn.Interest
	if err := i.Parse(wire); err != nil {
		return nil // we made it ourselves
	}
	ad.asked, ad.askedCost, ad.sent = ad.want, ad.cost, string(i.Name)
	ad.known = ad.known || ad.want
	a.inflight[ad.sent] = ad
	a.startTimer(ad, now.Add(advertTimeout))
	return wire
}

// retry arranges another try after a failure, later each time. A withdrawal
// is given up at last: a daemon that does not take it may not know the route.
func (a *readvertiser) retry(now ndn.Time, ad *advert) {
	ad.tries++
	if !ad.want && ad.tries >= withdrawTries {
		ad.known = false
		a.consider(ad)
		return
	}
	wait := advertRetryMax
	if ad.tries <= 6 {
		wait = min(wait, advertRetryMin<<(ad.tries-1))
	}
	a.startTimer(ad, now.Add(wait))
}

// answer takes a Data that may answer a command.
func (a *readvertiser) answer(now ndn.Time, d *ndn.Data) {
	ad := a.inflight[string(d.Name)]
	if ad == nil {
		return
	}
	delete(a.inflight, ad.sent)
	a.stopTimer(ad)
	ad.sent = ""
	// NLSR says 204 of what it has advertised or withdrawn already.
	if resp, err := proto.ParseResponse(d); err != nil || resp.Code/100 != 2 {
		a.retry(now, ad)
		return
	}
	a.confirmed++
	ad.tries = 0
	ad.known = ad.asked
	ad.right = ad.asked && ad.want && ad.cost == ad.askedCost
	if !ad.asked {
		for _, other := range a.byPrefix[ad.key.prefix] {
			if other != ad && other.want {
				other.right = false
				a.consider(other)
			}
		}
	}
	a.consider(ad)
}

// nack takes a Nack of a command.
func (a *readvertiser) nack(now ndn.Time, name ndn.Name) {
	if ad := a.inflight[string(name)]; ad != nil {
		delete(a.inflight, ad.sent)
		a.stopTimer(ad)
		ad.sent = ""
		a.retry(now, ad)
	}
}

// sendAdverts sends the commands that are due. s.mu is held.
func (s *Server) sendAdverts(now ndn.Time) {
	for wire := s.adverts.next(now); wire != nil; wire = s.adverts.next(now) {
		s.send(wire, &ndn.LpFields{})
	}
}

func systemRandom() uint64 {
	var b [8]byte
	// It does not fail (crypto/rand).
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Before implements due.Item: by time, then by the order of scheduling.
func (ad *advert) Before(o *advert) bool {
	return ad.at < o.at || ad.at == o.at && ad.seq < o.seq
}

// Place implements due.Item.
func (ad *advert) Place() *due.Place { return &ad.place }
