package e2e

import (
	"bytes"
	"testing"
	"time"

	"ndnpop/internal/testbin"
	"ndnpop/mgmt"
	"ndnpop/ndn"
)

// TestManagementFaults: commands of applications on this host (9, 10).
func TestManagementFaults(t *testing.T) {
	n := startNode(t, nodeConf{})
	app := dialUnix(t, n)
	var stamper mgmt.Stamper
	command := func(module, verb string, p *mgmt.ControlParameters) mgmt.ControlResponse {
		t.Helper()
		w := mgmt.AppendCommand(nil, mgmt.Localhost(), module, verb, p, stamper.Stamp(time.Now(), 7))
		return answer(t, app, w)
	}

	t.Run("09 unsigned command", func(t *testing.T) {
		w := interest(name("/localhost/nfd/rib", "register").Append(ndn.Component{Type: ndn.TypeGeneric, Value: mgmt.Register(ndn.MustName("/evil"), 0, 0).AppendTo(nil)}))
		if r := answer(t, app, w); r.Code != 403 {
			t.Errorf("%d %s", r.Code, r.Text)
		}
	})
	t.Run("09 cs erase", func(t *testing.T) {
		p := &mgmt.ControlParameters{}
		p.Name.Set(ndn.MustName("/f"))
		if r := command("cs", "erase", p); r.Code != 200 || r.Body == nil {
			t.Errorf("%+v", r)
		}
	})
	t.Run("09 face events", func(t *testing.T) {
		events := ndn.MustName("/localhost/nfd/faces/events")
		app.send(interest(events, canBePrefix, mustBeFresh))
		dialUnix(t, n) // something to tell
		got := app.receive("a face event")
		if got.Kind != ndn.KindData || !got.Data.Name.HasPrefix(events) {
			t.Fatalf("%s %s", kindName(got.Kind), got.Data.Name)
		}
		if _, ok := last(got.Data.Name).NumberAs(ndn.TypeSequenceNum); !ok || got.Data.Freshness != time.Second {
			t.Errorf("%s, fresh %v", got.Data.Name, got.Data.Freshness)
		}
		if _, err := mgmt.ParseFaceEvent(got.Data.Content); err != nil {
			t.Error(err)
		}
	})
	t.Run("10 route expiration", func(t *testing.T) {
		p := mgmt.Register(ndn.MustName("/brief"), 0, 0)
		p.Expiration.Set(200)
		if r := command("rib", "register", p); r.Code != 200 {
			t.Fatalf("%+v", r)
		}
		d := dial(t, n, "tcp")
		d.send(interest(name("/brief", "x")))
		app.expectInterest(name("/brief", "x"))
		testbin.Eventually(t, patience, "the route to expire", func() bool { return n.metric(t, "ndnpop_rib_routes") == 0 }, n.Proc)
		d.send(interest(name("/brief", "y")))
		d.expectNack(name("/brief", "y"), ndn.NackNoRoute)
	})
	t.Run("management is not for web pages", func(t *testing.T) {
		// TCP over loopback is local, and a browser on this host sends what the
		// pages of others want to any port.
		for _, start := range []string{"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "dX / HTTP/1.1\r\nHost: a.example:6363\r\n\r\n"} {
			d := dial(t, n, "tcp")
			w := append([]byte(start), bytes.Repeat([]byte{1}, 300)...)
			for i := range 3 { // the elements of the text end at one of these
				w = append(w, bytes.Repeat([]byte{1}, 300+i)...)
				w = append(w, mgmt.AppendCommand(nil, mgmt.Localhost(), "rib", "register", mgmt.Register(ndn.MustName("/evil"), 0, 0), stamper.Stamp(time.Now(), 9))...)
			}
			d.send(w)
			d.expectClosed()
		}
		if r := answer(t, app, mgmt.AppendCommand(nil, mgmt.Localhost(), "cs", "config", &mgmt.ControlParameters{}, stamper.Stamp(time.Now(), 10))); r.Code != 200 {
			t.Errorf("%+v", r)
		}
		if v := n.metric(t, "ndnpop_rib_routes"); v != 0 {
			t.Errorf("%v routes", v)
		}
	})
	t.Run("management is local", func(t *testing.T) {
		d := dial(t, n, "udp") // a UDP face is not local, whatever its address
		w := mgmt.AppendCommand(nil, mgmt.Localhost(), "rib", "register", mgmt.Register(ndn.MustName("/evil"), 0, 0), stamper.Stamp(time.Now(), 8))
		d.send(w)
		d.send(interest(ndn.MustName("/localhost/nfd/status/general"), canBePrefix, mustBeFresh))
		d.send(interest(name("/nowhere", "z")))
		d.expectNack(name("/nowhere", "z"), ndn.NackNoRoute) // and no answer before it
		if v := n.metric(t, "ndnpop_rib_routes"); v != 0 {
			t.Errorf("%v routes", v)
		}
	})
}

func last(n ndn.Name) ndn.Component { c, _ := n.At(-1); return c }

// answer sends a command Interest and returns the answer.
func answer(t *testing.T, p *peer, w []byte) mgmt.ControlResponse {
	t.Helper()
	var i ndn.Interest
	if err := i.Parse(w); err != nil {
		t.Fatal(err)
	}
	p.send(w)
	r, err := mgmt.ParseResponse(&p.expectData(i.Name).Data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
