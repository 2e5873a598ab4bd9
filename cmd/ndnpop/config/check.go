package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ndnpop/ndn"
)

// Known is what the program can do, which the checks compare a configuration
// with.
type Known struct {
	Strategies []string // short names
	Policies   []string // of the content store
	Modules    []string // of management, that take commands
	// CheckStrategy judges a full strategy name with its parameters. It is
	// called for known strategies only; nil accepts all.
	CheckStrategy func(name ndn.Name) error
}

// managementPrefix is where a forwarder answers its operator.
var managementPrefix = ndn.MustName("/localhost/nfd")

// StrategyPrefix is the prefix of strategy names (NFD Management, Strategy
// Choice).
const StrategyPrefix = "/localhost/nfd/strategy"

// Validate checks a configuration that was made in code: bounds, choices and
// what one key says about another. The error names each key and its bound.
func (c *Config) Validate(known Known) error {
	d := decoder{pos: c.pos}
	if d.pos == nil {
		d.pos = positions{}
	}
	d.bounds("", c)
	c.check(known, &d)
	return d.errs.asError("")
}

// check compares keys with each other and with what the program knows.
func (c *Config) check(known Known, d *decoder) {
	c.checkListeners(d)
	faces := c.checkFaces(d)
	c.checkRoutes(d, faces)
	c.checkStrategies(known, d, faces)
	if len(known.Policies) > 0 {
		d.choice("cs.policy", c.CS.Policy, known.Policies)
	}
	if c.PIT.MaxEntriesPerFace > c.PIT.MaxEntries {
		d.fail("pit.max_entries_per_face", "%d is more than pit.max_entries, which is %d",
			c.PIT.MaxEntriesPerFace, c.PIT.MaxEntries)
	}
	checkMTU(d, "faces.udp.mtu", c.Faces.UDP.MTU)
	for i, r := range c.Network.ProducerRegions {
		d.name(at("network.producer_regions", i), r)
	}
	for i, h := range c.Network.TrustedHints {
		d.name(at("network.trusted_hints", i), h)
	}
	c.checkAuthorize(known, d)
}

// Warnings is what a valid configuration says without effect, in the order of the
// file.
func (c *Config) Warnings() Errors {
	d := decoder{pos: c.pos}
	if s := c.Shards; s.Count == 1 && s.PrefixComponents != defaultComponents {
		d.fail("shards.prefix_components", "%d has no effect with one shard, which is what this version runs; remove it", s.PrefixComponents)
	}
	remote := func(a Authorize) bool { return a.Faces == "any" }
	if c.Mgmt.Localhop && !slices.ContainsFunc(c.Mgmt.Authorize, remote) {
		d.fail("mgmt.localhop", "it is on, but remote hosts may register nothing: that needs a [[mgmt.authorize]] with faces = \"any\"")
	}
	_ = d.errs.asError("") // sorts them
	return d.errs
}

// Wrong is an error of a key that was found elsewhere, with its place in the file.
func (c *Config) Wrong(key string, err error) *Error {
	p := c.pos[key]
	return &Error{Line: p.line, Col: p.col, Key: key, Msg: err.Error()}
}

func at(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// minMTU keeps room for a link header and some payload.
const minMTU = 200

func checkMTU(d *decoder, key string, mtu int) {
	if mtu != 0 && mtu < minMTU {
		d.fail(key, "%d is out of bounds, must be %d to %d, or 0 to follow the path", mtu, minMTU, ndn.MaxPacketSize)
	}
}

// name checks a name prefix and returns it.
func (d *decoder) name(key, s string) (ndn.Name, bool) {
	if !strings.HasPrefix(s, "/") {
		d.fail(key, "%q is not a name: it must begin with \"/\"", s)
		return nil, false
	}
	n, err := ndn.ParseName(s)
	if err != nil {
		d.fail(key, "%q is not a name: %v", s, err)
		return nil, false
	}
	if n.Len() > ndn.MaxComponents {
		d.fail(key, "%d components, must be at most %d", n.Len(), ndn.MaxComponents)
		return nil, false
	}
	return n, true
}

func (c *Config) checkListeners(d *decoder) {
	type bound struct {
		key  string
		addr netip.AddrPort
	}
	listen := func(group []bound, key, s string) []bound {
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			d.fail(key, "%q is no address to listen on, such as \"0.0.0.0:6363\", \"[::]:6363\" or \"127.0.0.1:6363\"", s)
			return group
		}
		for _, o := range group {
			// Port 0 is a free one, which the log names.
			same := a.Port() != 0 && o.addr.Port() == a.Port() && o.addr.Addr().Is4() == a.Addr().Is4()
			if same && (o.addr.Addr() == a.Addr() || o.addr.Addr().IsUnspecified() || a.Addr().IsUnspecified()) {
				d.fail(key, "%s overlaps %s, which is %s", s, o.key, o.addr)
				return group
			}
		}
		return append(group, bound{key, a})
	}
	var udp, tcp []bound
	for i, s := range c.Faces.UDP.Listen {
		udp = listen(udp, at("faces.udp.listen", i), s)
	}
	for i, s := range c.Faces.TCP.Listen {
		tcp = listen(tcp, at("faces.tcp.listen", i), s)
	}
	for i, s := range c.Faces.WebSocket.Listen {
		tcp = listen(tcp, at("faces.websocket.listen", i), s)
	}
	for i, o := range c.Faces.WebSocket.Origins {
		if _, err := path.Match(o, ""); err != nil || o == "" {
			d.fail(at("faces.websocket.origins", i), "%q is no host, such as \"example.com\", \"*.example.com\" or \"*\"", o)
		}
	}
	for i, p := range c.Faces.Multicast.Interfaces {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			d.fail(at("faces.multicast.interfaces", i), "%q is no interface, such as \"eth0\", \"wlan*\" or \"*\"", p)
		}
	}
	if m := c.Faces.Multicast; len(m.Interfaces) > 0 && !m.IPv4 && !m.IPv6 {
		d.fail("faces.multicast.interfaces", "neither ipv4 nor ipv6 is on; [] turns multicast off")
	}
	checkMTU(d, "faces.multicast.mtu", c.Faces.Multicast.MTU)
	if c.Admin.Listen != "" {
		listen(tcp, "admin.listen", c.Admin.Listen)
	}
	if p := c.Faces.Unix.Path; p != "" {
		switch {
		case !strings.HasPrefix(p, "/"):
			d.fail("faces.unix.path", "%q must be an absolute path, or \"\" for no Unix socket", p)
		case len(p) > maxUnixPath:
			d.fail("faces.unix.path", "%d bytes long, a socket's path has at most %d", len(p), maxUnixPath)
		}
	}
}

// maxUnixPath is the size of sockaddr_un.sun_path on the smallest system
// (BSD: 104) without the terminator.
const maxUnixPath = 103

// checkFaces returns the faces by what routes may call them.
func (c *Config) checkFaces(d *decoder) map[string]int {
	refs, uris := map[string]int{}, map[string]int{}
	for i, f := range c.Face {
		key := at("face", i)
		if f.URI != "" {
			if peer, err := checkURI(f.URI); err != nil {
				d.fail(key+".uri", "%v", err)
			} else if o, ok := uris[peer]; ok && c.Face[o].URI == f.URI {
				d.fail(key+".uri", "%s is also %s", f.URI, c.where(at("face", o)+".uri"))
			} else if ok {
				d.fail(key+".uri", "%s is the peer %s of %s: a peer has one face", f.URI, c.Face[o].URI, c.where(at("face", o)+".uri"))
			} else {
				uris[peer] = i
			}
			refs[f.URI] = i
		}
		if f.Name != "" {
			if strings.Contains(f.Name, "://") {
				d.fail(key+".name", "%q looks like a URI; choose a plain word", f.Name)
			} else if strings.HasPrefix(f.Name, MulticastPrefix) {
				d.fail(key+".name", "%q is what multicast faces are called; choose another", f.Name)
			} else if o, ok := refs[f.Name]; ok {
				d.fail(key+".name", "%q is also the name in %s", f.Name, c.where(at("face", o)+".name"))
			} else {
				refs[f.Name] = i
			}
		}
		if (f.RateOut > 0) != (f.RateIn > 0) {
			d.fail(key, "rate_out and rate_in are for both directions, and belong together")
		} else if f.RateOut > 0 && f.URI != "" && !strings.HasPrefix(f.URI, "udp") {
			d.fail(key+".rate_out", "only UDP faces are shaped")
		}
		if _, rest, ok := strings.Cut(f.URI, "://"); f.MTU != 0 && ok && !strings.HasPrefix(f.URI, "udp") && rest != "" {
			d.fail(key+".mtu", "only UDP faces have an MTU")
		} else {
			checkMTU(d, key+".mtu", f.MTU)
		}
	}
	return refs
}

// where names a key and, if known, its line.
func (c *Config) where(key string) string {
	if p, ok := c.pos[key]; ok {
		return fmt.Sprintf("%s (line %d)", key, p.line)
	}
	return key
}

func (c *Config) checkRoutes(d *decoder, faces map[string]int) {
	type id struct{ prefix, face string }
	seen := map[id]int{}
	for i, r := range c.Route {
		key := at("route", i)
		var prefix ndn.Name
		ok := false
		if r.Prefix != "" {
			prefix, ok = d.name(key+".prefix", r.Prefix)
		}
		if ok && prefix.HasPrefix(managementPrefix) {
			d.fail(key+".prefix", "%s is the forwarder's own", r.Prefix)
			ok = false
		}
		if r.Face == "" {
			continue
		}
		f, known := faces[r.Face]
		if !c.checkFaceRef(d, key+".face", r.Face, faces) || !known || !ok {
			continue
		}
		k := id{string(prefix), strconv.Itoa(f)}
		if o, dup := seen[k]; dup {
			d.fail(key+".prefix", "%s by the same face is also %s", r.Prefix, c.where(at("route", o)+".prefix"))
		}
		seen[k] = i
	}
}

// checkFaceRef checks what calls a face: a name, a URI, or multicast faces.
func (c *Config) checkFaceRef(d *decoder, key, ref string, faces map[string]int) bool {
	if i, ok := strings.CutPrefix(ref, MulticastPrefix); ok {
		if !slices.ContainsFunc(c.Faces.Multicast.Interfaces, func(p string) bool { ok, _ := path.Match(p, i); return ok }) {
			d.fail(key, "faces.multicast.interfaces does not have %q", i)
			return false
		}
		return true
	}
	if _, known := faces[ref]; !known {
		d.fail(key, "there is no face %q%s", ref, listFaces(ref, faces))
		return false
	}
	return true
}

// MulticastPrefix and the name of an interface is what routes call its
// multicast faces.
const MulticastPrefix = "multicast:"

func listFaces(word string, faces map[string]int) string {
	if len(faces) == 0 {
		return "; a [[face]] with that name must be added"
	}
	var names []string
	for n := range faces {
		names = append(names, n)
	}
	sort.Strings(names)
	if c := closest(word, names); c != "" {
		return fmt.Sprintf("; did you mean %q?", c)
	}
	const show = 10
	if len(names) > show {
		return fmt.Sprintf("; there are %s and %d more", strings.Join(names[:show], ", "), len(names)-show)
	}
	return "; there are " + strings.Join(names, ", ")
}

func (c *Config) checkStrategies(known Known, d *decoder, faces map[string]int) {
	seen := map[string]int{}
	for i, s := range c.Strategy {
		key := at("strategy", i)
		if s.Prefix != "" {
			if p, ok := d.name(key+".prefix", s.Prefix); ok {
				if o, dup := seen[string(p)]; dup {
					d.fail(key+".prefix", "%s has its strategy from %s", s.Prefix, c.where(at("strategy", o)+".prefix"))
				}
				seen[string(p)] = i
			}
		}
		if s.Strategy == "" {
			continue
		}
		c.checkFaceTables(d, key, &s, faces)
		full, err := s.FullName(nil)
		var pe *paramError
		if errors.As(err, &pe) {
			d.fail(key+"."+pe.key, "%v", err)
			continue
		} else if err != nil {
			d.fail(key+".strategy", "%v", err)
			continue
		}
		short, _ := full.At(3)
		if len(known.Strategies) > 0 && !slices.Contains(known.Strategies, string(short.Value)) {
			d.choice(key+".strategy", string(short.Value), known.Strategies)
			continue
		}
		if known.CheckStrategy != nil {
			if len(s.Terms) > 0 && known.CheckStrategy(full.Prefix(4).Clone().AppendGeneric(penalty+"~1:1")) != nil {
				d.fail(key+".terms", "%s takes no terms; best-path does", short.Value)
				continue
			}
			if err := known.CheckStrategy(full); err != nil {
				where := key + ".strategy"
				if len(s.Params) > 0 {
					where = key + ".params"
				} else if len(s.Terms) > 0 {
					where = key + ".terms"
				}
				d.fail(where, "%v", err)
			}
		}
	}
}

func (c *Config) checkAuthorize(known Known, d *decoder) {
	for i, a := range c.Mgmt.Authorize {
		key := at("mgmt.authorize", i)
		for j, m := range a.Modules {
			if len(known.Modules) > 0 {
				d.choice(at(key+".modules", j), m, known.Modules)
			}
		}
		if !a.AnySignature && len(a.Certificates)+len(a.TrustAnchors)+len(a.HMACKeys) == 0 {
			d.fail(key, "allows no signature: any_signature = true, certificates, trust_anchors or hmac_keys is needed")
		}
	}
}
