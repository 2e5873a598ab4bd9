package daemon

import (
	"fmt"
	"testing"

	"ndnpop/ndn"
)

// chosen is the strategy of a prefix as it runs, "" without one of its own.
func chosen(d *Daemon, prefix string) string {
	for _, s := range d.Forwarder().Strategies() {
		if s.Prefix.Equal(ndn.MustName(prefix)) {
			name := ""
			for n := s.Strategy.Suffix(3); len(n) > 0; {
				var c ndn.Component
				c, n = n.Next()
				name += "/" + string(c.Value)
			}
			return name
		}
	}
	return ""
}

// The terms of best-path are given by the names of faces, which a reload may
// change.
func TestStrategyTermsByFaceName(t *testing.T) {
	text := quiet + `
[[face]]
uri = "udp4://127.0.0.1:19101"
name = "paris"
[[face]]
uri = "udp4://127.0.0.1:19102"
name = "rome"
[[strategy]]
prefix = "/cdn"
strategy = "best-path"
params = { delay-weight = 50, price-weight = 2000 }
`
	d, log := startDaemon(t, text+`terms = { price = { paris = 0.02, rome = 0.05 } }`)
	id := func(uri string) ndn.FaceID {
		f, ok := d.Forwarder().FaceByURI(uri)
		if !ok {
			t.Fatalf("no face %s: %s", uri, log)
		}
		return f.ID
	}
	paris, rome := id("udp4://127.0.0.1:19101"), id("udp4://127.0.0.1:19102")
	want := func(p, r int) {
		t.Helper()
		s := fmt.Sprintf("/best-path/\x01/delay-weight~50/penalty~%d:%d,%d:%d", paris, p, rome, r)
		if paris > rome {
			s = fmt.Sprintf("/best-path/\x01/delay-weight~50/penalty~%d:%d,%d:%d", rome, r, paris, p)
		}
		if got := chosen(d, "/cdn"); got != s {
			t.Errorf("%q, want %q", got, s)
		}
	}
	want(40, 100)
	d.Reload(parse(t, text+`terms = { price = { paris = 0.02, rome = 0.01 } }`))
	want(40, 20)
	// What management chose stays until the configuration says something else.
	if _, err := d.Forwarder().SetStrategy(ndn.MustName("/cdn"), ndn.MustName("/localhost/nfd/strategy/multicast")); err != nil {
		t.Fatal(err)
	}
	d.Reload(parse(t, text+`terms = { price = { paris = 0.02, rome = 0.01 } }`))
	if got := chosen(d, "/cdn"); got != "/multicast/\x05" {
		t.Errorf("%q", got)
	}
	d.Reload(parse(t, text+`terms = { price = { paris = 0.02, rome = 0.02 } }`))
	want(40, 40)
	d.Reload(parse(t, quiet))
	if got := chosen(d, "/cdn"); got != "" {
		t.Errorf("%q", got)
	}
}
