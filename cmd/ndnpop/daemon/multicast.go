package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face"
	"ndnpop/face/multicast"
	"ndnpop/ndn"
)

// followEvery is how often the interfaces are looked at: some system calls, on
// every system. What the kernel tells of them can be lost, and would have to be
// made good by looking as well.
const followEvery = 2 * time.Second

// multicastFaces keeps a face for each interface that is up and each group of a
// family that it has an address of. Interfaces come and go, and get their
// addresses late.
type multicastFaces struct {
	d      *Daemon
	c      config.Multicast
	groups []string
	faces  map[interfaceGroup]multicastFace
	told   map[interfaceGroup]string // why there is no face
	stop   chan struct{}
	done   chan struct{}
}

// interfaceGroup is what there is one face for.
type interfaceGroup struct{ name, group string }

// multicastFace is a face that was made. A command may have destroyed it.
type multicastFace struct {
	id    ndn.FaceID
	index int // of the interface: another one may come by the same name
	local netip.Addr
}

// followInterfaces makes the multicast faces, and follows the interfaces from
// then on until close.
func followInterfaces(d *Daemon, c *config.Multicast) (*multicastFaces, error) {
	m := &multicastFaces{
		d: d, c: *c, faces: map[interfaceGroup]multicastFace{}, told: map[interfaceGroup]string{},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if c.IPv4 {
		m.groups = append(m.groups, multicast.GroupV4)
	}
	if c.IPv6 {
		m.groups = append(m.groups, multicast.GroupV6)
	}
	list, err := multicast.Interfaces(c.Interfaces)
	if err != nil {
		return nil, fmt.Errorf("faces.multicast.interfaces: %w", err)
	}
	if len(list) == 0 {
		d.log.Warn().Strs("interfaces", c.Interfaces).Msg("no such interface is up and can multicast: no multicast faces yet")
	}
	m.update(list)
	go m.follow()
	return m, nil
}

func (m *multicastFaces) close() {
	close(m.stop)
	<-m.done
}

func (m *multicastFaces) follow() {
	defer close(m.done)
	t := time.NewTicker(followEvery)
	defer t.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-t.C:
		}
		list, err := multicast.Interfaces(m.c.Interfaces)
		if err != nil {
			continue // out of descriptors, for one; the faces stay as they are
		}
		if fresh := m.update(list); len(fresh) > 0 {
			m.d.multicastRoutes(fresh)
		}
	}
}

// update makes the faces that are missing and destroys those whose interface or
// address has gone. It returns the names of the faces that it made.
func (m *multicastFaces) update(list []net.Interface) (fresh []string) {
	for key, f := range m.faces {
		i := slices.IndexFunc(list, func(i net.Interface) bool { return i.Name == key.name && i.Index == f.index })
		if i >= 0 && hasAddress(&list[i], f.local) {
			continue
		}
		delete(m.faces, key)
		if err := m.d.fwd.DestroyFace(f.id); err == nil {
			m.d.log.Info().Uint64("face", uint64(f.id)).Str("interface", key.name).Msg("the interface or its address has gone")
		}
	}
	for key := range m.told {
		// Containers have interfaces with ever new names.
		if !slices.ContainsFunc(list, func(i net.Interface) bool { return i.Name == key.name }) {
			delete(m.told, key)
		}
	}
	for i := range list {
		for _, group := range m.groups {
			key := interfaceGroup{list[i].Name, group}
			if _, ok := m.faces[key]; ok {
				continue
			}
			if err := m.open(key, list[i].Index); err != nil {
				m.tell(key, err)
				continue
			}
			delete(m.told, key)
			fresh = append(fresh, config.MulticastPrefix+key.name)
		}
	}
	return fresh
}

func (m *multicastFaces) open(key interfaceGroup, index int) error {
	info, err := m.d.fwd.OpenFace(config.MulticastPrefix+key.name, func(context.Context) (face.Server, error) {
		now, err := net.InterfaceByName(key.name)
		if err != nil {
			return nil, fmt.Errorf("multicast: %s: %w", key.name, err)
		}
		return multicast.Open(now, key.group, multicast.Options{MTU: m.c.MTU})
	})
	if err != nil {
		return err
	}
	_, local, _ := strings.Cut(info.LocalURI, "://")
	from, err := netip.ParseAddrPort(local)
	if err != nil {
		return err
	}
	m.faces[key] = multicastFace{info.ID, index, from.Addr().WithZone("")}
	return nil
}

// tell logs why there is no face, once. That an interface lacks an address of
// one family deserves no notice.
func (m *multicastFaces) tell(key interfaceGroup, err error) {
	if m.told[key] == err.Error() {
		return
	}
	m.told[key] = err.Error()
	l := m.d.log.Warn()
	if errors.Is(err, multicast.ErrNoAddress) {
		l = m.d.log.Debug()
	}
	l.Str("interface", key.name).Str("group", key.group).Err(err).Msg("no multicast face")
}

// hasAddress reports whether an interface has an address, or cannot say.
func hasAddress(i *net.Interface, a netip.Addr) bool {
	addrs, err := i.Addrs()
	return err != nil || slices.ContainsFunc(addrs, func(x net.Addr) bool {
		n, ok := x.(*net.IPNet)
		if !ok {
			return false
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		return ip.Unmap() == a
	})
}

// multicastRoutes makes the configured routes through faces that have just been
// made, by their names.
func (d *Daemon) multicastRoutes(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.cfg.Route {
		if r := &d.cfg.Route[i]; slices.Contains(names, r.Face) {
			d.addRoute(d.cfg, r)
		}
	}
	d.weighFaces(d.cfg)
}
