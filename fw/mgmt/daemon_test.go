package mgmt

import (
	"bytes"
	"testing"
	"time"

	"ndnpop/face"
	"ndnpop/face/lp"
	"ndnpop/face/mem"
	"ndnpop/fw/run"
	proto "ndnpop/mgmt"
	"ndnpop/ndn"
)

// routingDaemon is an application behind /localhost/nlsr.
type routingDaemon struct {
	t     testing.TB
	tr    face.Server
	link  *lp.Link
	p     ndn.Packet
	out   face.Frames
	heard chan proto.ControlParameters
}

func newRoutingDaemon(t testing.TB, f *run.Forwarder) *routingDaemon {
	t.Helper()
	a, b := mem.Pair()
	d := &routingDaemon{t: t, tr: b, link: lp.New(lp.Config{Application: true}), heard: make(chan proto.ControlParameters, 10)}
	info, err := f.AttachFace(a, "")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = b.Serve(d)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = b.Close()
		<-ended
	})
	if err := f.AddRoute(run.Route{Prefix: nlsr(), Face: info.ID, Origin: proto.OriginNLSR}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *routingDaemon) wait() proto.ControlParameters {
	d.t.Helper()
	select {
	case p := <-d.heard:
		return p
	case <-time.After(10 * time.Second):
		d.t.Fatal("the daemon heard nothing")
		return proto.ControlParameters{}
	}
}

func (d *routingDaemon) Receive(frames [][]byte) {
	for _, fr := range frames {
		if ok, err := d.link.Receive(1, fr, &d.p); !ok || err != nil || d.p.Kind != ndn.KindInterest {
			continue
		}
		i := &d.p.Interest
		arg, _ := i.Name.At(4)
		p, err := proto.ParseControlParameters(bytes.Clone(arg.Value))
		if err != nil {
			d.t.Error(err)
			continue
		}
		resp := proto.ControlResponse{Code: 200, Text: "OK", Body: &p}
		wire, err := ndn.AppendData(nil, &ndn.DataFields{Name: i.Name, Content: resp.AppendTo(nil)}, ndn.DigestSigner{})
		if err != nil {
			d.t.Error(err)
			continue
		}
		d.out.Reset()
		if err := d.link.Send(1, wire, &ndn.LpFields{PitToken: d.p.PitToken}, &d.out); err != nil {
			d.t.Error(err)
		}
		d.tr.Send(&d.out)
		d.heard <- p
	}
}

func (d *routingDaemon) Flush()       {}
func (d *routingDaemon) Closed(error) {}
