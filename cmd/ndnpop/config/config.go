// Package config is the daemon's configuration: one strict TOML file.
//
// The structs below are the only description of it. Their tags give each key
// its name, meaning, bounds and choices; the reader, the checks and the
// annotated sample all work from them, so that none can differ from the
// others. Everything wrong in a file is reported at once, each with line,
// column and what would be right.
package config

import (
	"time"
)

// Config is a whole configuration. Default returns one that is complete; a
// file changes what it names.
//
// Tags: toml is the key; doc its meaning, printed in the sample; choices the
// accepted strings; min and max the bounds, in the notation of the file;
// example is what the sample shows for keys of tables that repeat; required
// marks those without a default.
type Config struct {
	Log      Log        `toml:"log" doc:"Logging, to standard error."`
	Faces    Faces      `toml:"faces" doc:"Listeners, and what faces have in common. An empty list or path turns a\nlistener off."`
	Face     []Face     `toml:"face" doc:"Faces to peers, as many as there are."`
	Route    []Route    `toml:"route" doc:"Routes, as many as there are."`
	Strategy []Strategy `toml:"strategy" doc:"Strategies of prefixes. The choice for the longest prefix of a name holds;\nwithout one it is best-route."`
	CS       CS         `toml:"cs" doc:"Content store."`
	PIT      PIT        `toml:"pit" doc:"Pending Interest table."`
	Network  Network    `toml:"network" doc:"This forwarder's place in the network."`
	Mgmt     Mgmt       `toml:"mgmt" doc:"Management by the NFD protocol. Local faces may always use it."`
	Admin    Admin      `toml:"admin" doc:"HTTP for the operator: /healthz, /readyz, /metrics (Prometheus)."`
	Shards   Shards     `toml:"shards" doc:"Shards of the forwarding tables."`

	pos positions
}

// Log configures logging.
type Log struct {
	Level  string `toml:"level" choices:"debug,info,warn,error" doc:"debug adds faces and routes that come and go."`
	Format string `toml:"format" choices:"console,json" doc:"For people, or for machines."`
}

// Faces configures listeners and the limits of faces.
type Faces struct {
	Max  int  `toml:"max" min:"16" max:"1000000" doc:"Faces in all."`
	UDP  UDP  `toml:"udp" doc:"UDP unicast. A datagram from a new peer makes a face on demand."`
	TCP  TCP  `toml:"tcp" doc:"TCP."`
	Unix Unix `toml:"unix" doc:"Unix socket of local applications."`

	WebSocket WebSocket `toml:"websocket" doc:"WebSocket, for browsers. Its faces are never local: they cannot manage this\nforwarder, even from this host."`
	Multicast Multicast `toml:"multicast" doc:"UDP multicast: one face to everybody on a link, for each interface and address\nfamily. Routes call it multicast:INTERFACE."`
}

// UDP configures the UDP listeners and all UDP faces.
type UDP struct {
	Listen      []string `toml:"listen" doc:"Addresses, as \"0.0.0.0:6363\" or \"[::]:6363\"."`
	MTU         int      `toml:"mtu" min:"0" max:"8800" doc:"Largest datagram payload in bytes; 0 follows the path."`
	IdleTimeout Duration `toml:"idle_timeout" min:"1s" max:"720h" doc:"A face made on demand that hears nothing for so long is removed."`
	MaxFaces    int      `toml:"max_faces" min:"1" max:"1000000" doc:"Faces made on demand, for each listener."`
	Reliability Toggle   `toml:"reliability" doc:"Use NDNLPv2 reliability (acknowledgement, repair of losses and marks for\nqueues on the link) with peers that became faces on demand: true, false, or\n\"auto\", with those that begin with it and receive what is sent to them."`
	Window      int      `toml:"reliability_window" min:"0" max:"4096" doc:"Packets that a face with reliability may have unacknowledged: 4 for lossy radio\nlinks, 1 to stop and wait; 0: no bound of its own."`
	Retries     int      `toml:"reliability_retries" min:"1" max:"20" doc:"Times that a face with reliability repeats a packet: 3 as NFD, 5 for lossy radio\nlinks. What is given up is asked for by another way, or by the consumer again."`

	Unproven Unproven `toml:"unproven" doc:"What a peer gets that became a face on demand and has not shown that it receives\nwhat is sent to its address: a forged source address must not have others\nflooded with Data. Peers that run ndnpop or NFD show it by themselves within a\nround trip or two; faces that are configured or created by command need not."`
}

// Unproven bounds what is sent to UDP peers that are not proven.
type Unproven struct {
	Rate   Size `toml:"rate" min:"0" max:"1TB" doc:"For each peer, in bytes per second; 0 sets no bound of any kind."`
	Total  Size `toml:"total" min:"1kB" max:"1TB" doc:"For all such peers of a listener, in bytes per second."`
	Factor int  `toml:"factor" min:"1" max:"1000000" doc:"Bytes sent for each byte received from a peer."`
	Burst  Size `toml:"burst" min:"10kB" max:"1GB" doc:"What a new peer may get at once."`
}

// WebSocket configures the WebSocket listeners.
type WebSocket struct {
	Listen   []string `toml:"listen" doc:"Addresses, as \"0.0.0.0:9696\" or \"[::]:9696\"."`
	Origins  []string `toml:"origins" doc:"Hosts of the web pages that may connect, as \"example.com\", \"*.example.com\",\n\"https://example.com\", or \"*\" for all; besides those of the listener's own\nhost. Programs that are not browsers may always."`
	MaxFaces int      `toml:"max_faces" min:"1" max:"1000000" doc:"Accepted connections, for each listener."`
}

// Multicast configures multicast faces.
type Multicast struct {
	Interfaces []string `toml:"interfaces" doc:"Names or patterns of interfaces, as \"eth0\", \"wlan*\", \"*\"."`
	IPv4       bool     `toml:"ipv4" doc:"Use 224.0.23.170, port 56363."`
	IPv6       bool     `toml:"ipv6" doc:"Use ff02::1234, port 56363."`
	MTU        int      `toml:"mtu" min:"0" max:"8800" doc:"Largest datagram payload in bytes; 0 leaves large ones to IP, as NFD needs, whose multicast faces reassemble nothing."`
}

// TCP configures the TCP listeners.
type TCP struct {
	Listen   []string `toml:"listen" doc:"Addresses, as \"0.0.0.0:6363\" or \"[::]:6363\"."`
	MaxFaces int      `toml:"max_faces" min:"1" max:"1000000" doc:"Accepted connections, for each listener."`
}

// Unix configures the Unix socket.
type Unix struct {
	Path     string `toml:"path" doc:"Where applications look for it unless NDN_CLIENT_TRANSPORT or client.conf\nsay otherwise."`
	MaxFaces int    `toml:"max_faces" min:"1" max:"1000000" doc:"Accepted connections."`
}

// Face is a face to a peer.
type Face struct {
	URI         string `toml:"uri" required:"true" example:"udp4://192.0.2.7:6363" doc:"udp4://, udp6://, tcp4://, tcp6:// with address and port, ws://, wss://, or unix:// with a path."`
	Name        string `toml:"name" example:"pop-paris" doc:"Routes refer to the face by it."`
	Persistency string `toml:"persistency" choices:"permanent,persistent" example:"permanent" doc:"A permanent face reconnects; a persistent one is gone when it fails."`
	MTU         int    `toml:"mtu" min:"0" max:"8800" example:"0" doc:"Largest datagram payload in bytes; 0: as [faces.udp]."`
	Reliability Toggle `toml:"reliability" example:"\"auto\"" doc:"Use NDNLPv2 reliability on a UDP link: true, if the peer must have it; false; auto, if it turns out to have it; not on loopback."`
	RateOut     Rate   `toml:"rate_out" example:"\"100mbit\"" doc:"With rate_in: what a UDP link carries to the peer. Interests leave no faster than what they ask for can come back; the peer should do the same."`
	RateIn      Rate   `toml:"rate_in" example:"\"100mbit\"" doc:"What it carries from the peer."`
}

// Route is a static route.
type Route struct {
	Prefix       string `toml:"prefix" required:"true" example:"/cdn" doc:"Name prefix."`
	Face         string `toml:"face" required:"true" example:"pop-paris" doc:"Name or URI of a [[face]], or multicast:INTERFACE."`
	Cost         int    `toml:"cost" min:"0" max:"4294967295" example:"10" doc:"The lowest is preferred."`
	ChildInherit bool   `toml:"child_inherit" example:"true" doc:"Longer prefixes that have routes use this one too."`
	Capture      bool   `toml:"capture" example:"false" doc:"The prefix uses no routes of shorter ones."`
}

// Strategy is the choice of a strategy for a prefix.
type Strategy struct {
	Prefix   string         `toml:"prefix" required:"true" example:"/cdn" doc:"Name prefix."`
	Strategy string         `toml:"strategy" required:"true" example:"multicast" doc:"Short name, or full name as in NFD (/localhost/nfd/strategy/…)."`
	Params   map[string]any `toml:"params" example:"{ retx-suppression-initial = 10 }" doc:"Parameters of the strategy; penalty may be a table of faces."`
	Terms    map[string]any `toml:"terms" example:"{ price = { pop-paris = 0.02 } }" doc:"best-path: values by face, times the parameter price-weight (1)."`
}

// CS configures the content store.
type CS struct {
	Capacity    Size   `toml:"capacity" min:"0" max:"16TiB" doc:"Memory for Data; 0 keeps none."`
	Policy      string `toml:"policy" doc:"Which Data leaves when it is full."`
	Admit       bool   `toml:"admit" doc:"Keep the Data that passes."`
	Serve       bool   `toml:"serve" doc:"Answer from it."`
	MaxPackets  int    `toml:"max_packets" min:"0" max:"1000000000" doc:"Number of Data; 0 leaves it to the capacity."`
	Unsolicited string `toml:"unsolicited" choices:"drop-all,admit-local,admit-network,admit-all" doc:"Data that nobody asked for, by the scope of the face it came from."`
}

// PIT bounds the pending Interest table.
type PIT struct {
	MaxEntries        int `toml:"max_entries" min:"16" max:"100000000" doc:"Pending Interests in all."`
	MaxEntriesPerFace int `toml:"max_entries_per_face" min:"16" max:"100000000" doc:"Pending Interests that one face may cause."`
}

// Network places the forwarder.
type Network struct {
	ProducerRegions []string `toml:"producer_regions" doc:"Forwarding hints that end here, as \"/cdn/origin\"."`
	TrustedHints    []string `toml:"trusted_hints" doc:"Forwarding hints whose Data may answer everybody from the content store."`
}

// Mgmt configures management.
type Mgmt struct {
	Localhop         bool        `toml:"localhop" doc:"Let remote hosts register prefixes at /localhop/nfd, as the rules below say."`
	Announcers       []string    `toml:"announcers" doc:"Files with the certificates of those whose prefix announcements are believed, by\nrib/announce and the strategy self-learning; with neither these nor\nannouncer_anchors, all announcements that are whole."`
	AnnouncerAnchors []string    `toml:"announcer_anchors" doc:"Files of certificates whose owners may announce, and may certify others who then\nmay announce prefixes below the identity that was certified."`
	Authorize        []Authorize `toml:"authorize" doc:"Who may command; what one rule allows is allowed. Without a rule local faces\nmay do everything with any signature."`
}

// Authorize is a rule of who may command.
type Authorize struct {
	Modules      []string `toml:"modules" example:"[\"rib\", \"faces\"]" doc:"Modules of the NFD protocol; none means all."`
	Faces        string   `toml:"faces" choices:"local,any" example:"local" doc:"From which faces."`
	AnySignature bool     `toml:"any_signature" example:"false" doc:"Accept every valid signature, DigestSha256 too."`
	Certificates []string `toml:"certificates" example:"[\"/etc/ndnpop/operator.cert\"]" doc:"Files of certificates whose keys may sign."`
	TrustAnchors []string `toml:"trust_anchors" example:"[]" doc:"Files of certificates whose keys may sign, and may certify others who then may,\ntoo. Their certificates are fetched when they are needed."`
	HMACKeys     []string `toml:"hmac_keys" example:"[]" doc:"Files with shared secrets."`
}

// Admin configures the operator's HTTP server.
type Admin struct {
	Listen string `toml:"listen" doc:"Address and port; keep it on loopback, it asks nobody who they are."`
	Pprof  bool   `toml:"pprof" doc:"Serve profiles at /debug/pprof/."`
}

// Shards configures the partition of the forwarding tables.
type Shards struct {
	Count            int `toml:"count" min:"1" max:"1" doc:"One is what this version runs."`
	PrefixComponents int `toml:"prefix_components" min:"1" max:"32" doc:"How many components of a name choose its shard; with one shard they choose nothing."`
}

// Default returns the configuration that an empty file has. unixPath is the
// socket that applications of this platform look for.
func Default(unixPath string) *Config {
	return &Config{
		Log: Log{Level: "info", Format: "console"},
		Faces: Faces{
			Max: 65536,
			UDP: UDP{
				Listen:      []string{"0.0.0.0:6363", "[::]:6363"},
				IdleTimeout: Duration(10 * time.Minute),
				MaxFaces:    4096,
				Reliability: Auto,
				Retries:     3,
				Unproven:    Unproven{Rate: 1e6, Total: 8e6, Factor: 150, Burst: 256 << 10},
			},
			WebSocket: WebSocket{Listen: []string{}, Origins: []string{}, MaxFaces: 1024},
			Multicast: Multicast{Interfaces: []string{}, IPv4: true, IPv6: true},

			TCP:  TCP{Listen: []string{"0.0.0.0:6363", "[::]:6363"}, MaxFaces: 4096},
			Unix: Unix{Path: unixPath, MaxFaces: 4096},
		},
		CS: CS{Capacity: 256 << 20, Policy: "lru", Admit: true, Serve: true, Unsolicited: "drop-all"},

		Network: Network{ProducerRegions: []string{}, TrustedHints: []string{}},
		Mgmt:    Mgmt{Announcers: []string{}, AnnouncerAnchors: []string{}},
		PIT:     PIT{MaxEntries: 1 << 18, MaxEntriesPerFace: 1 << 16},
		Admin:   Admin{Listen: "127.0.0.1:9363"},
		Shards:  Shards{Count: 1, PrefixComponents: defaultComponents},
	}
}

// defaultComponents of a name choose its shard.
const defaultComponents = 2

// defaulter is a repeated table with defaults of its own.
type defaulter interface{ setDefaults() }

func (f *Face) setDefaults()      { f.Persistency, f.Reliability = "permanent", Auto }
func (r *Route) setDefaults()     { r.ChildInherit = true }
func (a *Authorize) setDefaults() { a.Faces = "local" }

// SystemUnixPath is the Unix socket on the named operating system (GOOS).
func SystemUnixPath(goos string) string {
	if goos == "linux" {
		return "/run/nfd/nfd.sock"
	}
	return "/var/run/nfd/nfd.sock"
}
