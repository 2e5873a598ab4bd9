package mgmt

import (
	"bytes"
	"strings"
	"testing"
	"time"

	enc "github.com/named-data/ndnd/std/encoding"
	"github.com/named-data/ndnd/std/ndn/mgmt_2022"
	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/face"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

func nat(v uint64) optional.Optional[uint64]    { return optional.Some(v) }
func name(s string) optional.Optional[ndn.Name] { return optional.Some(ndn.MustName(s)) }

func TestCommandAnswers(t *testing.T) {
	type params = proto.ControlParameters
	long := ndn.Name{}
	for range 33 {
		long = long.AppendGeneric("x")
	}
	for _, tc := range []struct {
		name         string
		module, verb string
		p            params
		code         uint64
		text         string
		check        func(t *testing.T, b *bench, body *params)
	}{
		{"create", "faces", "create", params{URI: "udp4://192.0.2.7:6363"}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != 261 || body.URI != "udp4://192.0.2.7:6363" || body.LocalURI == "" ||
				body.Flags.GetOr(99) != 4 || body.Persistency.GetOr(99) != 0 {
				t.Errorf("%+v", body)
			}
		}},
		{"create what exists", "faces", "create", params{URI: "udp4://192.0.2.9:6363"}, 409, "exists", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(remoteFace) || body.Persistency.GetOr(0) != 1 || body.LocalURI == "" {
				t.Errorf("%+v", body)
			}
		}},
		{"create without URI", "faces", "create", params{}, 400, "needs Uri", nil},
		{"create nonsense", "faces", "create", params{URI: "192.0.2.7"}, 400, "not a face URI", nil},
		{"create malformed", "faces", "create", params{URI: "udp4://nonsense"}, 400, "", nil},
		{"create ether", "faces", "create", params{URI: "ether://[00:00:5e:00:53:01]"}, 406, "there are udp4", nil},
		{"create on-demand", "faces", "create", params{URI: "udp4://192.0.2.7:6363", Persistency: nat(1)}, 406, "persistent or permanent", nil},
		{"create refused", "faces", "create", params{URI: "tcp4://192.0.2.66:6363"}, 504, "refused", nil},
		{"create with flags alone", "faces", "create", params{URI: "udp4://192.0.2.7:6363", Flags: nat(1)}, 400, "Mask", nil},
		{"create with local fields", "faces", "create", params{URI: "udp4://192.0.2.7:6363", Flags: nat(1), Mask: nat(1)}, 406, "local", func(t *testing.T, b *bench, _ *params) {
			if _, ok := b.f.faces[261]; ok {
				t.Error("the face was left behind")
			}
		}},
		{"create with an mtu of 0", "faces", "create", params{URI: "udp4://192.0.2.7:6363", MTU: nat(0)}, 406, "more than 0", nil},
		{"create a stream with an mtu", "faces", "create", params{URI: "tcp4://192.0.2.7:6363", MTU: nat(1400)}, 406, "stream", nil},
		{"create a stream without a limit", "faces", "create", params{URI: "tcp4://192.0.2.7:6363", MTU: nat(1<<64 - 1)}, 200, "", nil},
		{"create with a local end", "faces", "create", params{URI: "udp4://192.0.2.7:6363", LocalURI: "udp4://192.0.2.1:6363"}, 406, "local URI", nil},
		{"create with another persistency", "faces", "create", params{URI: "udp4://192.0.2.7:6363", Persistency: nat(3)}, 406, "", nil},
		{"update own", "faces", "update", params{Flags: nat(1), Mask: nat(1)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(localFace) || body.Flags.GetOr(0) != 5 || !b.f.faces[localFace].LocalFields || !body.Persistency.IsSet() {
				t.Errorf("%+v", body)
			}
		}},
		{"update marking", "faces", "update", params{FaceID: nat(uint64(remoteFace)), Flags: nat(0), Mask: nat(4), MTU: nat(1400)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Flags.GetOr(9) != 0 || body.MTU.GetOr(0) != 1400 {
				t.Errorf("%+v", body)
			}
		}},
		{"update none", "faces", "update", params{FaceID: nat(99), Flags: nat(1), Mask: nat(1)}, 404, "face 99 does not exist", nil},
		{"update remote local fields", "faces", "update", params{FaceID: nat(uint64(remoteFace)), Flags: nat(1), Mask: nat(1)}, 409, "", func(t *testing.T, b *bench, body *params) {
			if body.Flags.GetOr(0) != 1 || body.Mask.GetOr(0) != 1 || body.FaceID.IsSet() {
				t.Errorf("the body names %+v, not what is wrong", body)
			}
		}},
		{"update mtu of 0", "faces", "update", params{FaceID: nat(uint64(remoteFace)), MTU: nat(0)}, 409, "more than 0", wrongMTU(0)},
		{"update too small an mtu", "faces", "update", params{FaceID: nat(uint64(remoteFace)), MTU: nat(63)}, 409, "out of bounds", wrongMTU(63)},
		{"update mtu of a stream", "faces", "update", params{MTU: nat(1400)}, 409, "stream", wrongMTU(1400)},
		{"update two at once", "faces", "update", params{FaceID: nat(uint64(remoteFace)), MTU: nat(0), Persistency: nat(7)}, 409, "", func(t *testing.T, b *bench, body *params) {
			if fieldsOf(body) != fMTU|fPersistency || b.f.faces[remoteFace].MTU != 8800 {
				t.Errorf("%+v", body)
			}
		}},
		{"update mask alone", "faces", "update", params{Mask: nat(1)}, 400, "Mask", nil},
		{"destroy own", "faces", "destroy", params{FaceID: nat(0)}, 400, "face 0", nil},
		{"destroy", "faces", "destroy", params{FaceID: nat(uint64(remoteFace))}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(remoteFace) || b.f.faces[remoteFace] != nil {
				t.Errorf("%+v", body)
			}
		}},
		{"destroy none", "faces", "destroy", params{FaceID: nat(99)}, 200, "", nil},

		{"add next hop", "fib", "add-nexthop", params{Name: name("/a"), Cost: nat(7)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(localFace) || body.Cost.GetOr(0) != 7 || !body.Name.IsSet() {
				t.Errorf("%+v", body)
			}
		}},
		{"add next hop to no face", "fib", "add-nexthop", params{Name: name("/a"), FaceID: nat(99)}, 410, "face 99", nil},
		{"next hop of a long name", "fib", "add-nexthop", params{Name: optional.Some(long)}, 414, "32", nil},
		{"remove next hop", "fib", "remove-nexthop", params{Name: name("/none")}, 200, "", nil},
		{"cut off management", "fib", "remove-nexthop", params{Name: name("/localhost/nfd"), FaceID: nat(1)}, 406, "cut off", nil},

		{"register", "rib", "register", params{Name: name("/a"), Expiration: nat(5000)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(localFace) || body.Origin.GetOr(9) != 0 || body.Cost.GetOr(9) != 0 ||
				body.Flags.GetOr(9) != 1 || body.Expiration.GetOr(0) != 5000 {
				t.Errorf("%+v", body)
			}
			r := b.f.routes[0]
			if r.Expires != b.f.now.Add(5*time.Second) || !r.ChildInherit || r.Capture {
				t.Errorf("%+v", r)
			}
		}},
		{"register root", "rib", "register", params{Name: optional.Some(ndn.Name{})}, 200, "", nil},
		{"register without name", "rib", "register", params{FaceID: nat(256)}, 400, "needs Name", nil},
		{"register with capture", "rib", "register", params{Name: name("/a"), FaceID: nat(uint64(remoteFace)), Origin: nat(128), Flags: nat(2)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if r := b.f.routes[0]; !r.Capture || r.ChildInherit || r.Face != remoteFace || r.Origin != 128 {
				t.Errorf("%+v", r)
			}
		}},
		{"register for ever", "rib", "register", params{Name: name("/a"), Expiration: nat(1<<63 - 1)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if r := b.f.routes[0]; r.Expires.IsSet() || body.Expiration.GetOr(0) != 1<<63-1 {
				t.Errorf("%+v, %+v", r, body)
			}
		}},
		{"register at no face", "rib", "register", params{Name: name("/a"), FaceID: nat(99)}, 410, "face 99 does not exist", nil},
		{"register a long name", "rib", "register", params{Name: optional.Some(long)}, 414, "", nil},
		{"unregister none", "rib", "unregister", params{Name: name("/none")}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.FaceID.GetOr(0) != uint64(localFace) || body.Origin.GetOr(9) != 0 || !body.Name.IsSet() {
				t.Errorf("%+v", body)
			}
		}},

		{"cs capacity", "cs", "config", params{Capacity: nat(1000)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Capacity.GetOr(0) != 1000 || body.Flags.GetOr(0) != 3 || b.f.cs.CapacityBytes != 1000*8800 {
				t.Errorf("%+v", body)
			}
		}},
		{"cs flags", "cs", "config", params{Flags: nat(2), Mask: nat(3)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Flags.GetOr(0) != 2 || b.f.cs.Admit || !b.f.cs.Serve {
				t.Errorf("%+v", body)
			}
		}},
		{"cs out of bounds", "cs", "config", params{Capacity: nat(1 << 63)}, 400, "bounds", nil},
		{"erase few", "cs", "erase", params{Name: name("/a"), Count: nat(3)}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Count.GetOr(0) != 3 || body.Capacity.IsSet() {
				t.Errorf("%+v", body)
			}
		}},
		{"erase nothing", "cs", "erase", params{Name: name("/a"), Count: nat(0)}, 400, "more than 0", nil},
		{"erase all of many", "cs", "erase", params{Name: name("/a")}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Count.GetOr(0) != 256 || body.Capacity.GetOr(0) != 256 {
				t.Errorf("%+v", body)
			}
		}},

		{"strategy", "strategy-choice", "set", params{Name: name("/a"), Strategy: ndn.MustName("/localhost/nfd/strategy/asf")}, 200, "", func(t *testing.T, b *bench, body *params) {
			if body.Strategy.String() != "/localhost/nfd/strategy/asf/v=5" {
				t.Errorf("%+v", body)
			}
		}},
		{"unknown strategy", "strategy-choice", "set", params{Name: name("/a"), Strategy: ndn.MustName("/localhost/nfd/strategy/x")}, 404, "there are asf, best-route", nil},
		{"no strategy", "strategy-choice", "set", params{Name: name("/a")}, 400, "needs Strategy", nil},
		{"unset root", "strategy-choice", "unset", params{Name: optional.Some(ndn.Name{})}, 400, "not unset", nil},

		{"unknown verb", "rib", "frobnicate", params{Name: name("/a")}, 501, "unknown", nil},
		{"unknown module", "frob", "set", params{Name: name("/a")}, 501, "unknown", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, Config{}, nil)
			b.f.csStored = 1000
			r := b.command(localFace, tc.module, tc.verb, tc.p)
			if r.Code != tc.code || !strings.Contains(r.Text, tc.text) {
				t.Fatalf("%d %q, want %d %q", r.Code, r.Text, tc.code, tc.text)
			}
			if tc.check != nil {
				if r.Body == nil {
					t.Fatal("no body")
				}
				tc.check(t, b, r.Body)
			}
			if r.OK() {
				checkFields(t, tc.module+"/"+tc.verb, r.Body)
			}
		})
	}
}

// wrongMTU checks that a refusal names the MTU that is wrong, and nothing else.
func wrongMTU(mtu uint64) func(t *testing.T, b *bench, body *proto.ControlParameters) {
	return func(t *testing.T, _ *bench, body *proto.ControlParameters) {
		if fieldsOf(body) != fMTU || body.MTU.GetOr(99) != mtu {
			t.Errorf("%+v", body)
		}
	}
}

// TestFieldsOfCommands: what a command needs and takes is what it does with
// ndn-cxx (nfd::ControlCommand, request formats); anything else is answered with
// 400 and changes nothing.
func TestFieldsOfCommands(t *testing.T) {
	const link = " [Flags] [Mask] [FacePersistency] [BaseCongestionMarkingInterval] [DefaultCongestionThreshold] [Mtu]"
	rules := map[string]string{
		"faces/create":          "Uri [LocalUri]" + link,
		"faces/update":          "[FaceId]" + link,
		"faces/destroy":         "FaceId",
		"fib/add-nexthop":       "Name [FaceId] [Cost]",
		"fib/remove-nexthop":    "Name [FaceId]",
		"rib/register":          "Name [FaceId] [Origin] [Cost] [Flags] [ExpirationPeriod]",
		"rib/unregister":        "Name [FaceId] [Origin]",
		"cs/config":             "[Capacity] [Flags] [Mask]",
		"cs/erase":              "Name [Count]",
		"strategy-choice/set":   "Name Strategy",
		"strategy-choice/unset": "Name",
	}
	set := map[string]func(p *proto.ControlParameters){
		"Name":                          func(p *proto.ControlParameters) { p.Name = name("/a") },
		"FaceId":                        func(p *proto.ControlParameters) { p.FaceID = nat(uint64(localFace)) },
		"Uri":                           func(p *proto.ControlParameters) { p.URI = "udp4://192.0.2.7:6363" },
		"LocalUri":                      func(p *proto.ControlParameters) { p.LocalURI = "udp4://192.0.2.1:6363" },
		"Origin":                        func(p *proto.ControlParameters) { p.Origin = nat(1) },
		"Cost":                          func(p *proto.ControlParameters) { p.Cost = nat(1) },
		"Capacity":                      func(p *proto.ControlParameters) { p.Capacity = nat(1) },
		"Count":                         func(p *proto.ControlParameters) { p.Count = nat(1) },
		"Flags":                         func(p *proto.ControlParameters) { p.Flags = nat(1) },
		"Mask":                          func(p *proto.ControlParameters) { p.Mask = nat(1) },
		"Strategy":                      func(p *proto.ControlParameters) { p.Strategy = ndn.MustName("/localhost/nfd/strategy/asf") },
		"ExpirationPeriod":              func(p *proto.ControlParameters) { p.Expiration = nat(1) },
		"FacePersistency":               func(p *proto.ControlParameters) { p.Persistency = nat(0) },
		"BaseCongestionMarkingInterval": func(p *proto.ControlParameters) { p.MarkInterval = nat(1) },
		"DefaultCongestionThreshold":    func(p *proto.ControlParameters) { p.MarkThreshold = nat(1) },
		"Mtu":                           func(p *proto.ControlParameters) { p.MTU = nat(1400) },
	}
	if len(set) != len(fieldNames) {
		t.Fatalf("%d fields of %d", len(set), len(fieldNames))
	}
	for _, c := range commands {
		if c.announce {
			continue
		}
		rule, ok := rules[c.module+"/"+c.verb]
		if !ok {
			t.Fatalf("no rule for %s/%s", c.module, c.verb)
		}
		allowed, needed := map[string]bool{}, []string{}
		for f := range strings.FieldsSeq(rule) {
			plain := strings.Trim(f, "[]")
			if allowed[plain] = true; f == plain {
				needed = append(needed, f)
			}
		}
		whole := func(but string) (p proto.ControlParameters) {
			for _, f := range needed {
				if f != but {
					set[f](&p)
				}
			}
			return p
		}
		for _, f := range needed {
			p := whole(f)
			if got := c.wrong(&p); got != "needs "+f {
				t.Errorf("%s/%s without %s: %q", c.module, c.verb, f, got)
			}
		}
		for f, fill := range set {
			p := whole("")
			fill(&p)
			if allowed["Mask"] && (f == "Flags" || f == "Mask") {
				set["Flags"](&p)
				set["Mask"](&p)
			}
			if got := c.wrong(&p); (got == "") != allowed[f] {
				t.Errorf("%s/%s with %s: %q", c.module, c.verb, f, got)
			}
			if allowed[f] {
				continue
			}
			b := newBench(t, Config{}, nil)
			if r := b.command(localFace, c.module, c.verb, p); r.Code != 400 || !strings.Contains(r.Text, "takes no "+f) {
				t.Errorf("%s/%s with %s: %d %s", c.module, c.verb, f, r.Code, r.Text)
			}
			if len(b.f.routes) > 0 || b.f.faces[261] != nil || b.f.faces[localFace] == nil {
				t.Errorf("%s/%s with %s has done something", c.module, c.verb, f)
			}
		}
	}
}

// checkFields fails the test if an answer lacks a field that ndn-cxx demands, or
// has one that it does not expect: it refuses either (nfd::ControlCommand,
// validateResponse).
func checkFields(t *testing.T, command string, body *proto.ControlParameters) {
	t.Helper()
	const link = "FaceId FacePersistency Flags [BaseCongestionMarkingInterval] [DefaultCongestionThreshold] [Mtu]"
	rules := map[string]string{
		"faces/create":          "Uri LocalUri " + link,
		"faces/update":          link,
		"faces/destroy":         "FaceId",
		"fib/add-nexthop":       "Name FaceId Cost",
		"fib/remove-nexthop":    "Name FaceId",
		"rib/register":          "Name FaceId Origin Cost Flags [ExpirationPeriod]",
		"rib/unregister":        "Name FaceId Origin",
		"cs/config":             "Capacity Flags",
		"cs/erase":              "Name Count [Capacity]",
		"strategy-choice/set":   "Name Strategy",
		"strategy-choice/unset": "Name",
	}
	names := map[uint32]string{
		0x07: "Name", 0x69: "FaceId", 0x72: "Uri", 0x81: "LocalUri", 0x6f: "Origin", 0x6a: "Cost", 0x83: "Capacity",
		0x84: "Count", 0x6c: "Flags", 0x70: "Mask", 0x6b: "Strategy", 0x6d: "ExpirationPeriod", 0x85: "FacePersistency",
		0x87: "BaseCongestionMarkingInterval", 0x88: "DefaultCongestionThreshold", 0x89: "Mtu",
	}
	rule, ok := rules[command]
	if !ok || body == nil {
		t.Fatalf("no rule or no body for %s", command)
	}
	has := map[string]bool{}
	e, _, err := ndn.NextElement(body.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	for v := e.Value; len(v) > 0; {
		e, rest, err := ndn.NextElement(v)
		if err != nil {
			t.Fatal(err)
		}
		has[names[e.Type]] = true
		v = rest
	}
	for f := range strings.FieldsSeq(rule) {
		plain := strings.Trim(f, "[]")
		if f == plain && !has[f] {
			t.Errorf("the answer to %s has no %s", command, f)
		}
		delete(has, plain)
	}
	for f := range has {
		t.Errorf("the answer to %s has a field too much: %q", command, f)
	}
}

func TestMalformedCommands(t *testing.T) {
	b := newBench(t, Config{}, nil)
	for _, raw := range [][]byte{
		{0x68, 4, 7, 200, 8, 1},                        // a name longer than its element
		{0x68, 11, 7, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1}, // of 2^63 bytes
		{0x68, 5, 0x69, 3, 1, 2, 3},
		{},
	} {
		r := b.rawCommand(raw)
		if r.Code != 400 {
			t.Errorf("%x: %d %s", raw, r.Code, r.Text)
		}
	}
	if len(b.f.routes) > 0 {
		t.Errorf("routes %+v", b.f.routes)
	}
}

// A queue that is full loses answers, and they are counted.
func TestUnsent(t *testing.T) {
	b := newBench(t, Config{}, nil)
	b.f.full = true
	b.deliver(localFace, b.signed(nil, proto.Localhost(), "rib", "register"))
	if c := b.s.Counters(); c.Unsent != 1 || c.Commands != 1 {
		t.Errorf("%+v", c)
	}
}

func TestQueryAndReads(t *testing.T) {
	b := newBench(t, Config{}, nil)
	query := func(q proto.FaceQueryFilter) []uint64 {
		t.Helper()
		d := b.data(b.fetch(localFace, ndn.AppendTLV(dataset4("faces", "query"), ndn.TypeGeneric, q.AppendTo(nil)), true))
		list, err := proto.ParseFaceStatuses(d.Content)
		if err != nil {
			t.Fatal(err)
		}
		var ids []uint64
		for _, f := range list {
			ids = append(ids, f.FaceID)
		}
		b.advance(time.Second)
		return ids
	}
	same := func(what string, got []uint64, want ...uint64) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
	same("all", query(proto.FaceQueryFilter{}), 1, 256, 258)
	same("id", query(proto.FaceQueryFilter{FaceID: nat(258)}), 258)
	same("no id", query(proto.FaceQueryFilter{FaceID: nat(300)}))
	same("uri", query(proto.FaceQueryFilter{URI: "udp4://192.0.2.9:6363"}), 258)
	same("remote scheme", query(proto.FaceQueryFilter{URIScheme: "udp4"}), 258)
	same("local scheme", query(proto.FaceQueryFilter{URIScheme: "unix"}), 256)
	same("scope", query(proto.FaceQueryFilter{Scope: nat(uint64(face.ScopeLocal))}), 1, 256)
	same("two", query(proto.FaceQueryFilter{Scope: nat(uint64(face.ScopeLocal)), Persistency: nat(1)}), 256)

	// The list, as ndnd reads it.
	d := b.data(b.fetch(localFace, dataset4("faces", "list"), true))
	v, err := mgmt_2022.ParseFaceStatusMsg(enc.NewBufferView(d.Content), false)
	if err != nil || len(v.Vals) != 3 {
		t.Fatalf("ndnd reads %v, %v", v, err)
	}
	if f := v.Vals[2]; f.ExpirationPeriod.GetOr(0) != 90000 || f.Mtu.GetOr(0) != 8800 || f.Flags != 4 {
		t.Errorf("%+v", f)
	}
	// A filter that is not understood selects nothing.
	bad := b.data(b.fetch(localFace, ndn.AppendTLV(dataset4("faces", "query"), ndn.TypeGeneric, []byte{0x96, 3, 0x71, 1, 1}), true))
	if bad.ContentType != ndn.ContentNack {
		t.Errorf("content type %d", bad.ContentType)
	}
	if r, err := proto.ParseControlResponse(bad.Content); err != nil || r.Code != 400 {
		t.Errorf("%+v, %v", r, err)
	}
	// What does not exist is answered, so that nobody waits.
	nothing := b.data(b.fetch(localFace, dataset4("rib", "nothing"), false))
	if nothing.ContentType != ndn.ContentNack {
		t.Errorf("content type %d", nothing.ContentType)
	}
}

func TestEvents(t *testing.T) {
	b := newBench(t, Config{}, nil)
	events := dataset4("faces", "events")
	ask := func(n ndn.Name, prefix, fresh bool) []sentPacket {
		b.random++
		return b.deliver(localFace, ndn.AppendInterest(nil, &ndn.InterestFields{
			Name: n, CanBePrefix: prefix, MustBeFresh: fresh, Nonce: uint32(b.random), Lifetime: time.Minute,
		}))
	}
	if sent := ask(events, true, true); len(sent) != 0 {
		t.Fatal("answered before anything happened")
	}
	b.command(localFace, "faces", "create", proto.ControlParameters{URI: "udp4://192.0.2.7:6363"})
	b.s.work(b.f.now)
	d := b.data(b.f.take())
	e, err := proto.ParseFaceEvent(d.Content)
	if err != nil || e.Kind != proto.FaceEventCreated || e.FaceID != 261 || e.URI != "udp4://192.0.2.7:6363" {
		t.Fatalf("%+v, %v", e, err)
	}
	c, _ := d.Name.At(-1)
	seq, ok := c.NumberAs(ndn.TypeSequenceNum)
	if !ok || d.Freshness != time.Second || !d.Name.HasPrefix(events) {
		t.Errorf("%s, freshness %v", d.Name, d.Freshness)
	}
	// The next one waits, the last one is there again.
	next := events.Clone().AppendNumber(ndn.TypeSequenceNum, seq+1)
	if sent := ask(next, false, false); len(sent) != 0 {
		t.Error("the future was answered")
	}
	again := b.data(ask(events.Clone().AppendNumber(ndn.TypeSequenceNum, seq), false, false))
	if !bytes.Equal(again.Wire, d.Wire) {
		t.Error("the event changed")
	}
	b.advance(5 * time.Second)
	if sent := ask(events, true, true); len(sent) != 0 {
		t.Error("a stale event for MustBeFresh")
	}
	b.command(localFace, "faces", "destroy", proto.ControlParameters{FaceID: nat(261)})
	b.f.take()
	b.s.work(b.f.now)
	// Two Interests wait for it; one Data satisfies both.
	d = b.data(b.f.take())
	if e, err := proto.ParseFaceEvent(d.Content); err != nil || e.Kind != proto.FaceEventDestroyed || !d.Name.Equal(next) {
		t.Errorf("%s %+v, %v", d.Name, e, err)
	}
	// Nobody waits: nothing is sent, and what has happened is kept.
	for range 3 * keepEvents {
		b.s.Observe(run.Event{Kind: run.FaceUp, Face: *b.f.faces[localFace]})
	}
	b.s.work(b.f.now)
	if sent := b.f.take(); len(sent) != 0 {
		t.Errorf("%d packets nobody asked for", len(sent))
	}
	if n := len(b.s.events.kept); n < keepEvents || n > 2*keepEvents {
		t.Errorf("%d events kept", n)
	}
	last := b.s.events.next - 1
	d = b.data(ask(events.Clone().AppendNumber(ndn.TypeSequenceNum, last), false, false))
	if e, err := proto.ParseFaceEvent(d.Content); err != nil || e.Kind != proto.FaceEventUp {
		t.Errorf("%+v %v", e, err)
	}
	for range 3 * maxWaiting {
		ask(events.Clone().AppendNumber(ndn.TypeSequenceNum, last+7), false, false)
	}
	if n := len(b.s.events.waiting); n > maxWaiting {
		t.Errorf("%d Interests wait", n)
	}
}

// announcementWire is a prefix announcement.
func announcementWire(t *testing.T, prefix string, content []byte) []byte {
	t.Helper()
	return signedAnnouncement(t, prefix, content, ndn.DigestSigner{})
}

func signedAnnouncement(t *testing.T, prefix string, content []byte, s ndn.Signer) []byte {
	t.Helper()
	n := ndn.MustName(prefix).Append(ndn.Component{Type: ndn.TypeKeyword, Value: []byte("PA")}).
		AppendNumber(ndn.TypeVersion, 1).AppendNumber(ndn.TypeSegment, 0)
	w, err := ndn.AppendData(nil, &ndn.DataFields{Name: n, ContentType: ndn.ContentPrefixAnnouncement, Content: content}, s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAnnounce(t *testing.T) {
	validity := func(to string) []byte {
		v := ndn.AppendTLV(nil, 0xfe, []byte("20200101T000000"))
		v = ndn.AppendTLV(v, 0xff, []byte(to))
		return ndn.AppendTLV(nil, 0xfd, v)
	}
	hour := ndn.AppendNatTLV(nil, 0x6d, 3600_000)
	for _, tc := range []struct {
		name string
		data []byte
		code uint64
	}{
		{"plain", announcementWire(t, "/cdn/pop", hour), 200},
		{"valid", announcementWire(t, "/cdn/pop", append(bytes.Clone(hour), validity("20990101T000000")...)), 200},
		{"out of date", announcementWire(t, "/cdn/pop", append(bytes.Clone(hour), validity("20210101T000000")...)), 416},
		{"bad validity", announcementWire(t, "/cdn/pop", append(bytes.Clone(hour), validity("yesterday")...)), 400},
		{"without expiration", announcementWire(t, "/cdn/pop", nil), 400},
		{"no Data", []byte{1, 2, 3}, 400},
	} {
		b := newBench(t, Config{}, nil)
		r := b.response(b.deliver(localFace, b.announce(tc.data)))
		if r.Code != tc.code {
			t.Errorf("%s: %d %s", tc.name, r.Code, r.Text)
			continue
		}
		if tc.code != 200 {
			if len(b.f.routes) != 0 {
				t.Errorf("%s: made a route", tc.name)
			}
			continue
		}
		rt := b.f.routes[0]
		if rt.Prefix.String() != "/cdn/pop" || rt.Origin != 129 || rt.Cost != 2048 || rt.Face != localFace ||
			rt.Expires != b.f.now.Add(time.Hour) {
			t.Errorf("%s: %+v", tc.name, rt)
		}
		if r.Body == nil || r.Body.FaceID.GetOr(0) != uint64(localFace) || r.Body.Origin.GetOr(0) != 129 {
			t.Errorf("%s: %+v", tc.name, r.Body)
		}
	}
}
