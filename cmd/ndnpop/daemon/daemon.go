// Package daemon makes a running forwarder of a configuration: listeners,
// faces, routes, strategies, management, the operator's HTTP server and the
// log. It applies a changed configuration to what runs.
package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/udp"
	"ndnpop/fw"
	"ndnpop/fw/mgmt"
	"ndnpop/fw/run"
	"ndnpop/ndn"
	"ndnpop/strategy"
	"ndnpop/table"
)

// Options of a Daemon beside its configuration.
type Options struct {
	Strategies *strategy.Set
	Log        *Log
	Version    string
}

// Daemon is a forwarder that runs as a configuration says.
type Daemon struct {
	opts Options
	log  *zerolog.Logger
	// strangers is the log of what remote hosts can cause at will.
	strangers zerolog.Logger
	// programs is the log of what programs of this host can cause at will.
	programs  zerolog.Logger
	fwd       *run.Forwarder
	mgmt      *mgmt.Server
	stopMgmt  func()
	admin     *adminServer
	udp       []*udp.Listener
	group     *udp.Group // receives for all UDP sockets
	multicast *multicastFaces

	starvedMu sync.Mutex
	starvedAt time.Time // when descriptors were wanting last

	mu  sync.Mutex
	cfg *config.Config // as it runs
	// weighed has the full names of strategies whose parameters name faces, by
	// prefix, as they were set last.
	weighed map[string]ndn.Name
}

// Known is what configurations can choose from, for checking them.
func Known(set *strategy.Set) config.Known {
	k := config.Known{Policies: table.CSPolicies(), Modules: mgmt.Modules()}
	for _, f := range set.Factories() {
		if n := len(k.Strategies); n == 0 || k.Strategies[n-1] != f.Name {
			k.Strategies = append(k.Strategies, f.Name)
		}
	}
	k.CheckStrategy = func(name ndn.Name) error {
		_, _, err := set.Resolve(name)
		return err
	}
	return k
}

// Start makes a daemon of a checked configuration. On an error nothing is
// left running.
func Start(c *config.Config, o Options) (_ *Daemon, err error) {
	d := &Daemon{opts: o, log: o.Log.Logger(), cfg: c, weighed: map[string]ndn.Name{}}
	d.strangers, d.programs = d.log.Sample(&fewLines{}), d.log.Sample(&fewLines{})
	o.Log.SetLevel(c.Log.Level)
	shard, err := shardConfig(c)
	if err != nil {
		return nil, err
	}
	d.group = udp.NewGroup(0)
	d.fwd, err = run.New(run.Options{
		Shard: shard, Strategies: o.Strategies, MaxFaces: c.Faces.Max, UDPMTU: c.Faces.UDP.MTU, UDP: d.group,
		Link: lp.Config{Reliability: lp.Reliability{Window: c.Faces.UDP.Window, MaxRetx: c.Faces.UDP.Retries}},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Close(context.Background())
		}
	}()
	d.fwd.Observe(d.observe)
	// Those that name faces have their points when the faces are there.
	for _, s := range c.Strategy {
		if err = d.setStrategy(c, &s); err != nil {
			return nil, err
		}
	}
	policy, err := mgmtPolicy(c)
	if err != nil {
		return nil, err
	}
	d.mgmt, d.stopMgmt, err = mgmt.Attach(d.fwd, mgmt.Options{Policy: policy, Version: o.Version, Refused: d.refused, Disbelieved: d.disbelieved})
	if err != nil {
		return nil, err
	}
	// Everything that is in the way is told at once.
	listenErr := d.listen(c)
	var adminErr error
	if c.Admin.Listen != "" {
		d.admin, adminErr = startAdmin(d, c.Admin)
	}
	if err = errors.Join(listenErr, adminErr); err != nil {
		return nil, err
	}
	if m := &c.Faces.Multicast; len(m.Interfaces) > 0 {
		if d.multicast, err = followInterfaces(d, m); err != nil {
			return nil, err
		}
	}
	d.reconcile(c)
	d.weighFaces(c)
	d.ready()
	return d, nil
}

// ready says what has been started.
func (d *Daemon) ready() {
	d.warn(d.cfg)
	if limit, ok := openFiles(); ok {
		d.warnFiles(d.cfg, limit)
	}
	for _, uri := range d.fwd.Channels() {
		d.log.Info().Str("uri", uri).Msg("listening")
	}
	if d.admin != nil {
		d.log.Info().Str("url", "http://"+d.admin.addr).Msg("admin")
		if ap, err := netip.ParseAddrPort(d.admin.addr); err == nil && !ap.Addr().IsLoopback() {
			d.log.Warn().Str("address", d.admin.addr).Msg("admin.listen is no loopback address: whoever reaches it may read it")
		}
		d.admin.ready.Store(true)
	}
	cs := d.fwd.CS()
	d.log.Info().Str("version", d.opts.Version).Int("pid", os.Getpid()).
		Int("faces", len(d.cfg.Face)).Int("routes", d.fwd.RouteCount()).
		Stringer("content_store", config.Size(cs.CapacityBytes)).Msg("ready")
}

// Forwarder is the forwarder that runs.
func (d *Daemon) Forwarder() *run.Forwarder { return d.fwd }

// Close drains and ends the daemon. No socket file is left.
func (d *Daemon) Close(ctx context.Context) {
	if d.admin != nil {
		d.admin.ready.Store(false)
	}
	if d.multicast != nil {
		d.multicast.close()
	}
	if d.stopMgmt != nil {
		d.stopMgmt()
	}
	d.fwd.Close(ctx)
	if d.admin != nil {
		d.admin.close()
	}
}

// seed is 64 random bits; the system's generator does not fail.
func seed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func shardConfig(c *config.Config) (s fw.Config, err error) {
	s.Seed, s.NodeID = seed(), seed()
	s.PIT.MaxEntries, s.PIT.MaxEntriesPerFace = c.PIT.MaxEntries, c.PIT.MaxEntriesPerFace
	s.CS = table.CSConfig{
		Capacity: int64(c.CS.Capacity), MaxPackets: c.CS.MaxPackets, Policy: c.CS.Policy,
		NoAdmit: !c.CS.Admit, NoServe: !c.CS.Serve,
	}
	if s.Unsolicited, err = fw.ParseUnsolicited(c.CS.Unsolicited); err != nil {
		return s, err
	}
	if s.ProducerRegions, err = names(c.Network.ProducerRegions); err != nil {
		return s, err
	}
	s.TrustedHints, err = names(c.Network.TrustedHints)
	return s, err
}

func names(uris []string) (list []ndn.Name, err error) {
	for _, u := range uris {
		n, err := ndn.ParseName(u)
		if err != nil {
			return nil, fmt.Errorf("name %q: %w", u, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// warn says what a configuration has without effect.
func (d *Daemon) warn(c *config.Config) {
	for _, w := range c.Warnings() {
		l := d.log.Warn().Str("key", w.Key)
		if w.Line > 0 {
			l = l.Int("line", w.Line)
		}
		l.Msg(w.Msg)
	}
}

func mgmtPolicy(c *config.Config) (*mgmt.Policy, error) {
	m := mgmt.Config{Localhop: c.Mgmt.Localhop, Announcers: c.Mgmt.Announcers, AnnouncerAnchors: c.Mgmt.AnnouncerAnchors}
	for _, a := range c.Mgmt.Authorize {
		m.Authorize = append(m.Authorize, mgmt.Authorization{
			Modules: a.Modules, Faces: a.Faces, AnySignature: a.AnySignature,
			Certificates: a.Certificates, TrustAnchors: a.TrustAnchors, HMACKeys: a.HMACKeys,
		})
	}
	p, err := mgmt.LoadPolicy(m, os.ReadFile)
	var wrong *mgmt.ConfigError
	if errors.As(err, &wrong) {
		return nil, c.Wrong("mgmt."+wrong.Field, wrong.Err)
	}
	return p, err
}

// CheckFiles reads the files that a configuration names, as Start will. An error
// is a *config.Error.
func CheckFiles(c *config.Config) error {
	_, err := mgmtPolicy(c)
	return err
}

func (d *Daemon) setStrategy(c *config.Config, s *config.Strategy) error {
	prefix, err := ndn.ParseName(s.Prefix)
	if err != nil {
		return fmt.Errorf("strategy of %s: %w", s.Prefix, err)
	}
	full, err := s.FullName(func(ref string) []ndn.FaceID { return d.facesOf(faceURI(c, ref)) })
	if err != nil {
		return fmt.Errorf("strategy of %s: %w", s.Prefix, err)
	}
	if d.weighed[s.Prefix].Equal(full) && d.weighed[s.Prefix] != nil {
		return nil // setting it again would undo what management has chosen since
	}
	if _, err := d.fwd.SetStrategy(prefix, full); err != nil {
		return fmt.Errorf("strategy of %s: %w", s.Prefix, err)
	}
	if delete(d.weighed, s.Prefix); s.NamesFaces() {
		d.weighed[s.Prefix] = full
	}
	return nil
}

// weighFaces sets the strategies again that name faces, if other faces are
// meant than when they were last set.
func (d *Daemon) weighFaces(c *config.Config) {
	for i := range c.Strategy {
		if s := &c.Strategy[i]; s.NamesFaces() {
			if err := d.setStrategy(c, s); err != nil {
				d.log.Error().Err(err).Msg("strategy not set")
			}
		}
	}
}

// disbelieved notes a prefix announcement that was not learnt.
func (d *Daemon) disbelieved(b mgmt.Disbelief) {
	d.log.Debug().Uint64("face", uint64(b.Face)).Str("data", b.Data).Err(b.Err).Msg("announcement not learnt")
}

// refused logs a command that was not allowed, but not all when there are many.
// All are counted.
func (d *Daemon) refused(r mgmt.Refusal) {
	log := &d.programs
	if !r.Local {
		log = &d.strangers
	}
	log.Warn().Uint64("face", uint64(r.Face)).Str("command", r.Name).Str("reason", r.Reason).Msg("command refused")
}

// observe logs what happens to faces, routes and listeners. What is
// configured or was asked for deserves notice; other peers and applications
// come and go.
func (d *Daemon) observe(e run.Event) {
	switch e.Kind {
	case run.ListenerDown:
		d.log.Error().Str("uri", e.Listener).Err(e.Err).Msg("listener failed")
		return
	case run.ListenerFull:
		d.log.Warn().Str("uri", e.Listener).
			Str("remedy", "see who they are (ndnpop ctl face list), or raise max_faces of the listener, or faces.max").
			Msg("new peers are refused until others end")
		return
	case run.RouteAdded, run.RouteRemoved:
		d.log.Debug().Stringer("prefix", e.Route.Prefix).Uint64("face", uint64(e.Route.Face)).
			Uint64("cost", e.Route.Cost).Uint64("origin", e.Route.Origin).Msg(e.Kind.String())
		return
	}
	if e.Face.ID < run.FirstFaceID {
		return
	}
	level := zerolog.InfoLevel
	switch {
	case e.Face.Persistency == face.PersistencyOnDemand, errors.Is(e.Err, face.ErrClosed):
		level = zerolog.DebugLevel
	case e.Kind == run.FaceDown, e.Kind == run.FaceUnreachable, e.Kind == run.FaceDestroyed && !errors.Is(e.Err, run.ErrDestroyed):
		level = zerolog.WarnLevel
	}
	l := d.log.WithLevel(level).Uint64("face", uint64(e.Face.ID)).Str("remote", e.Face.RemoteURI)
	if e.Face.Name != "" {
		l = l.Str("name", e.Face.Name)
	}
	if e.Kind == run.FaceCreated && !e.Face.Up {
		l = l.Bool("up", false)
	}
	if e.Err != nil {
		l = l.Str("reason", strings.TrimPrefix(e.Err.Error(), "face: "))
	}
	l.Msg(e.Kind.String())
}

// drainTime is how long Close lets queues empty at most.
const drainTime = 2 * time.Second

// Stop is Close for the end of a process: within drainTime.
func (d *Daemon) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	d.log.Info().Msg("stopping")
	d.Close(ctx)
	d.log.Info().Msg("stopped")
}
