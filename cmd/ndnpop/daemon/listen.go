package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/tcp"
	"ndnpop/face/udp"
	"ndnpop/face/unix"
	"ndnpop/face/websocket"
	"ndnpop/fw/run"
)

// listen opens every listener of a configuration. It tries all before it
// fails, so that an operator sees everything that is in the way at once.
func (d *Daemon) listen(c *config.Config) error {
	type opened struct {
		l face.Listener
		o run.ListenOptions
	}
	var all []opened
	var errs []error
	add := func(l face.Listener, err error, explain func(error) error, o run.ListenOptions) {
		if err != nil {
			errs = append(errs, explain(err))
			return
		}
		all = append(all, opened{l, o})
	}
	for _, addr := range c.Faces.UDP.Listen {
		u := &c.Faces.UDP
		l, err := udp.Listen(addr, udp.Options{MTU: u.MTU, MaxPeers: u.MaxFaces + 1, Group: d.group})
		if err == nil {
			d.udp = append(d.udp, l)
		}
		add(l, err, inUse("UDP", addr, "faces.udp.listen"), run.ListenOptions{
			MaxFaces: u.MaxFaces, IdleTimeout: time.Duration(u.IdleTimeout), MTU: u.MTU, Reliable: reliability[u.Reliability],
			Allowance: allowance(&u.Unproven),
		})
	}
	for _, addr := range c.Faces.TCP.Listen {
		l, err := tcp.Listen(addr, tcp.Options{Failed: d.starved("tcp://" + addr)})
		add(l, err, inUse("TCP", addr, "faces.tcp.listen"), run.ListenOptions{MaxFaces: c.Faces.TCP.MaxFaces})
	}
	for _, addr := range c.Faces.WebSocket.Listen {
		w := &c.Faces.WebSocket
		l, err := websocket.Listen(addr, websocket.Options{Origins: w.Origins, Failed: d.starved("ws://" + addr)})
		add(l, err, inUse("TCP", addr, "faces.websocket.listen"), run.ListenOptions{MaxFaces: w.MaxFaces})
	}
	if path := c.Faces.Unix.Path; path != "" {
		l, err := unix.Listen(path, unix.Options{Failed: d.starved("unix://" + path), Remade: func(made bool, err error) { d.remade(path, made, err) }})
		add(l, err, unixError(path), run.ListenOptions{MaxFaces: c.Faces.Unix.MaxFaces})
	}
	if len(errs) > 0 {
		for _, o := range all {
			_ = o.l.Close()
		}
		return errors.Join(errs...)
	}
	for _, o := range all {
		if err := d.fwd.Listen(o.l, o.o); err != nil {
			return err
		}
	}
	return nil
}

func allowance(u *config.Unproven) run.Allowance {
	if u.Rate == 0 {
		return run.Allowance{Rate: -1}
	}
	return run.Allowance{Rate: int64(u.Rate), Total: int64(u.Total), Factor: int64(u.Factor), Burst: int64(u.Burst)}
}

// inUse explains why an address cannot be listened on.
func inUse(proto, addr, key string) func(error) error {
	return func(err error) error {
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("%s %s is in use by another program: stop it (is a forwarder already running?), or choose another address in %s: %w", proto, addr, key, syscall.EADDRINUSE)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return fmt.Errorf("%s %s is no address of this machine: choose another in %s: %w", proto, addr, key, syscall.EADDRNOTAVAIL)
		case errors.Is(err, syscall.EACCES):
			return fmt.Errorf("%s %s needs privileges: choose a port from 1024 on in %s: %w", proto, addr, key, syscall.EACCES)
		}
		return fmt.Errorf("%s: %w", key, err)
	}
}

// calm is how long descriptors must have sufficed until want of them is news.
const calm = time.Minute

// starved makes what a listener calls when it cannot accept. That the process or
// the system has no descriptors or memory left is said once, by the listener that
// notices first.
func (d *Daemon) starved(uri string) func(error) {
	return func(err error) {
		remedy := ""
		switch {
		case errors.Is(err, syscall.EMFILE):
			remedy = "raise the process's limit (LimitNOFILE in the unit, ulimit -n), or lower max_faces in faces.tcp, faces.unix and faces.websocket"
		case errors.Is(err, syscall.ENFILE):
			remedy = "raise the system's limit (sysctl fs.file-max), or find who has so many files open"
		case errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
			remedy = "the system has no memory left for sockets: lower cs.capacity or max_faces, or add memory"
		default:
			return
		}
		now := time.Now()
		d.starvedMu.Lock()
		defer d.starvedMu.Unlock()
		if d.starvedAt.IsZero() || now.Sub(d.starvedAt) > calm {
			d.log.Error().Str("uri", uri).Err(root(err)).Str("remedy", remedy).
				Msg("cannot accept connections: they wait until some end")
		}
		d.starvedAt = now
	}
}

// spareFiles are those that are no connections of peers: sockets that listen, the
// admin server's, logs and what the runtime needs.
const spareFiles = adminConns + 64

// warnFiles says when more may connect than a process with so many files may
// take: strangers could then keep local programs and the operator out.
func (d *Daemon) warnFiles(c *config.Config, limit uint64) {
	f := &c.Faces
	peers := len(f.TCP.Listen)*f.TCP.MaxFaces + len(f.WebSocket.Listen)*f.WebSocket.MaxFaces + len(c.Face)
	if f.Unix.Path != "" {
		peers += f.Unix.MaxFaces
	}
	if need := uint64(min(peers, f.Max) + spareFiles); limit < need {
		d.log.Warn().Uint64("limit", limit).Uint64("may_need", need).
			Msg("the process may have fewer files open than peers may connect: raise its limit (LimitNOFILE in the unit, ulimit -n), or lower max_faces in faces.tcp, faces.unix and faces.websocket")
	}
}

// remade says that the Unix socket was made again.
func (d *Daemon) remade(path string, made bool, err error) {
	if !made {
		d.log.Error().Str("uri", "unix://"+path).Err(err).Msg("somebody removed the socket, and it cannot be made again: local programs cannot connect")
		return
	}
	d.log.Warn().Str("uri", "unix://"+path).Err(err).Msg("somebody removed the socket: made again")
}

// unixError explains why the Unix socket cannot be made.
func unixError(path string) func(error) error {
	return func(err error) error {
		var live *unix.LiveError
		switch {
		case errors.As(err, &live):
			return fmt.Errorf("%w; faces.unix.path in the configuration names it", err)
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
			return fmt.Errorf("may not create the socket %s: %w.\n"+
				"Run as a user who may, or choose another socket: put\n"+
				"  [faces.unix]\n  path = \"/tmp/nfd.sock\"\n"+
				"into a file, run ndnpop run -c FILE, and let clients know by\n"+
				"  export NDN_CLIENT_TRANSPORT=unix:///tmp/nfd.sock", path, root(err))
		}
		return fmt.Errorf("faces.unix.path: %w", err)
	}
}

// root is the operating system's error in err.
func root(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
