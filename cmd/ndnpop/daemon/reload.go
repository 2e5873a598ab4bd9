package daemon

import (
	"errors"
	"reflect"
	"strings"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/fw/run"
	"ndnpop/ndn"
)

// Reload applies a checked configuration to what runs: faces, routes,
// strategies, the content store, who may manage, and the log level. It returns the keys that
// have changed and are applied only by a restart.
func (d *Daemon) Reload(c *config.Config) (restart []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	restart = needRestart(d.cfg, c)
	d.opts.Log.SetLevel(c.Log.Level)
	d.warn(c)
	d.reconcileStrategies(c)
	d.reconcileCS(c)
	mgmtErr := d.reconcileMgmt(c)
	old := d.cfg
	d.removeRoutes(old, c)
	d.removeFaces(old, c)
	d.reconcile(c)
	d.weighFaces(c)
	// Remember what runs, so that the next reload still tells what does not.
	now := *c
	now.Log.Format = old.Log.Format
	now.Faces, now.PIT, now.Network, now.Admin, now.Shards = old.Faces, old.PIT, old.Network, old.Admin, old.Shards
	if mgmtErr != nil {
		now.Mgmt = old.Mgmt
	}
	now.CS.MaxPackets, now.CS.Unsolicited = old.CS.MaxPackets, old.CS.Unsolicited
	d.cfg = &now
	return restart
}

// needRestart lists the changed keys that are read at the start only.
func needRestart(old, c *config.Config) (keys []string) {
	check := func(key string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			keys = append(keys, key)
		}
	}
	check("log.format", old.Log.Format, c.Log.Format)
	check("faces.max", old.Faces.Max, c.Faces.Max)
	check("faces.udp", old.Faces.UDP, c.Faces.UDP)
	check("faces.tcp", old.Faces.TCP, c.Faces.TCP)
	check("faces.unix", old.Faces.Unix, c.Faces.Unix)
	check("faces.websocket", old.Faces.WebSocket, c.Faces.WebSocket)
	check("faces.multicast", old.Faces.Multicast, c.Faces.Multicast)
	check("cs.max_packets", old.CS.MaxPackets, c.CS.MaxPackets)
	check("cs.unsolicited", old.CS.Unsolicited, c.CS.Unsolicited)
	check("pit", old.PIT, c.PIT)
	check("network", old.Network, c.Network)
	check("admin", old.Admin, c.Admin)
	check("shards", old.Shards, c.Shards)
	return keys
}

func (d *Daemon) reconcileStrategies(c *config.Config) {
	keep := map[string]bool{}
	for _, s := range c.Strategy {
		keep[s.Prefix] = true
	}
	for _, s := range d.cfg.Strategy {
		if keep[s.Prefix] {
			continue
		}
		if p, err := ndn.ParseName(s.Prefix); err == nil {
			if err := d.fwd.UnsetStrategy(p); err != nil {
				d.log.Warn().Str("prefix", s.Prefix).Err(err).Msg("strategy not unset")
			}
			delete(d.weighed, s.Prefix)
		}
	}
	old := map[string]config.Strategy{}
	for _, s := range d.cfg.Strategy {
		old[s.Prefix] = s
	}
	for _, s := range c.Strategy {
		// Choosing the same one again would forget what it has measured.
		if o, ok := old[s.Prefix]; ok && reflect.DeepEqual(o, s) {
			continue
		}
		if err := d.setStrategy(c, &s); err != nil {
			d.log.Error().Err(err).Msg("strategy not set")
		}
	}
}

// reconcileMgmt applies who may command. The files that the policy names are
// read again even if their names are the same. With an error the old policy
// stays in force.
func (d *Daemon) reconcileMgmt(c *config.Config) error {
	policy, err := mgmtPolicy(c)
	if err == nil {
		err = d.mgmt.SetPolicy(policy)
	}
	if err != nil {
		d.log.Error().Err(err).Msg("management policy not changed: the old one stays in force")
	}
	return err
}

func (d *Daemon) reconcileCS(c *config.Config) {
	if c.CS == d.cfg.CS {
		return
	}
	capacity := uint64(c.CS.Capacity)
	err := d.fwd.ConfigureCS(run.CSConfig{
		CapacityBytes: &capacity, Admit: &c.CS.Admit, Serve: &c.CS.Serve, Policy: &c.CS.Policy,
	})
	if err != nil {
		d.log.Error().Err(err).Msg("content store not changed")
	}
}

// removeRoutes removes the routes of old that c does not have.
func (d *Daemon) removeRoutes(old, c *config.Config) {
	type id struct{ prefix, uri string }
	key := func(c *config.Config, r *config.Route) id { return id{r.Prefix, faceURI(c, r.Face)} }
	keep := map[id]bool{}
	for i := range c.Route {
		keep[key(c, &c.Route[i])] = true
	}
	for i := range old.Route {
		r := &old.Route[i]
		if k := key(old, r); !keep[k] {
			if prefix, err := ndn.ParseName(r.Prefix); err == nil {
				for _, id := range d.facesOf(k.uri) {
					d.fwd.RemoveRoute(prefix, id, run.OriginStatic)
				}
			}
		}
	}
}

// faceURI is the URI of the face that a route calls by name or URI.
func faceURI(c *config.Config, ref string) string {
	for i := range c.Face {
		if c.Face[i].Name == ref {
			return c.Face[i].URI
		}
	}
	return ref
}

// facesOf finds the faces that a route means by a URI, or by the name of
// multicast faces.
func (d *Daemon) facesOf(ref string) (ids []ndn.FaceID) {
	if !strings.HasPrefix(ref, config.MulticastPrefix) {
		if f, ok := d.fwd.FaceByURI(ref); ok {
			ids = append(ids, f.ID)
		}
		return ids
	}
	for _, f := range d.fwd.Faces() {
		if f.Name == ref {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// removeFaces destroys the faces of old that c does not have.
func (d *Daemon) removeFaces(old, c *config.Config) {
	keep := map[string]bool{}
	for i := range c.Face {
		keep[c.Face[i].URI] = true
	}
	for i := range old.Face {
		if uri := old.Face[i].URI; !keep[uri] {
			if f, ok := d.fwd.FaceByURI(uri); ok {
				if err := d.fwd.DestroyFace(f.ID); err != nil {
					d.log.Warn().Str("remote", uri).Err(err).Msg("face not destroyed")
				}
			}
		}
	}
}

var reliability = [...]run.Reliability{
	config.Off: run.ReliabilityOff, config.On: run.ReliabilityOn, config.Auto: run.ReliabilityAuto,
}

var persistencies = map[string]face.Persistency{
	"permanent": face.PersistencyPermanent, "persistent": face.PersistencyPersistent,
}

// reconcile makes the faces and routes of c that do not exist, and changes
// those that differ. What cannot be had now is logged and does not stop the
// rest.
func (d *Daemon) reconcile(c *config.Config) {
	for i := range c.Face {
		f := &c.Face[i]
		shaping := lp.Shaping{Out: int64(f.RateOut), In: int64(f.RateIn)}
		info, err := d.fwd.CreateFace(run.FaceSpec{
			URI: f.URI, Name: f.Name, MTU: f.MTU, Persistency: persistencies[f.Persistency], Reliable: reliability[f.Reliability], Shaping: shaping,
			Background: true,
		})
		if errors.Is(err, run.ErrFaceExists) {
			mtu := f.MTU
			if mtu == 0 && strings.HasPrefix(f.URI, "udp") {
				mtu = d.cfg.Faces.UDP.MTU
			}
			p, r := persistencies[f.Persistency], reliability[f.Reliability]
			_, err = d.fwd.UpdateFace(info.ID, run.FaceUpdate{Name: &f.Name, MTU: &mtu, Persistency: &p, Reliable: &r, Shaping: &shaping})
		}
		if err != nil {
			d.log.Error().Str("remote", f.URI).Str("name", f.Name).Err(err).Msg("no face")
		}
	}
	for i := range c.Route {
		d.addRoute(c, &c.Route[i])
	}
}

// addRoute makes a route of c, or changes it.
func (d *Daemon) addRoute(c *config.Config, r *config.Route) {
	prefix, err := ndn.ParseName(r.Prefix)
	if err == nil {
		ids := d.facesOf(faceURI(c, r.Face))
		if len(ids) == 0 {
			err = run.ErrNoFace
		}
		for _, id := range ids {
			err = errors.Join(err, d.fwd.AddRoute(run.Route{
				Prefix: prefix, Face: id, Origin: run.OriginStatic, Cost: uint64(r.Cost),
				ChildInherit: r.ChildInherit, Capture: r.Capture,
			}))
		}
	}
	if err != nil {
		l := d.log.Error()
		if strings.HasPrefix(r.Face, config.MulticastPrefix) {
			l = d.log.Warn() // its interface may come later
		}
		l.Str("prefix", r.Prefix).Str("via", r.Face).Err(err).Msg("no route")
	}
}
