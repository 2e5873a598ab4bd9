//go:build unix

package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/named-data/ndnd/std/types/optional"

	"ndnpop/face"
	"ndnpop/face/unix"
	"ndnpop/fw/run"
	"ndnpop/mgmt"
	"ndnpop/mgmt/client"
	"ndnpop/ndn"
)

// load keeps a window of Interests for Data open that a producer answers, over
// the daemon's Unix socket, and counts the Data.
type load struct {
	tr       face.Server
	interest []byte
	at       int // of the number in interest
	next     uint64
	out      face.Frames
	got      atomic.Uint64
}

func (l *load) ask() {
	binary.BigEndian.PutUint64(l.interest[l.at:], 1<<63|l.next)
	l.next++
	l.out.Buf = append(l.out.Buf, l.interest...)
	l.out.End()
}

func (l *load) Receive(frames [][]byte) {
	for range frames {
		l.got.Add(1)
		l.ask()
	}
}

func (l *load) Flush() {
	if l.out.Len() > 0 {
		l.tr.Send(&l.out)
		l.out.Reset()
	}
}
func (l *load) Closed(error) {}

// producer answers each Interest with Data of the same number.
type producer struct {
	tr   face.Server
	data []byte
	at   int // of the number in data
	from int // of the number, counted from the end of an Interest
	out  face.Frames
}

func (p *producer) Receive(frames [][]byte) {
	var in ndn.LpPacket
	for _, f := range frames {
		if in.Parse(f) != nil || len(in.Fragment) < p.from {
			continue
		}
		copy(p.data[p.at:], in.Fragment[len(in.Fragment)-p.from:][:8])
		p.out.Buf = ndn.AppendLpPacket(p.out.Buf, &ndn.LpHeader{LpFields: &ndn.LpFields{PitToken: in.PitToken}}, p.data)
		p.out.End()
	}
}

func (p *producer) Flush() {
	if p.out.Len() > 0 {
		p.tr.Send(&p.out)
		p.out.Reset()
	}
}
func (p *producer) Closed(error) {}

// BenchmarkForwardingUnderCommands forwards Data of 8 KB between two local
// applications as fast as it can, and in every other tenth of a second a third
// application registers and unregisters routes a thousand times a second.
//
// lost-% is how much less was forwarded meanwhile, and lost-cpu-% the same per
// second of processor time, which other processes on the machine disturb less.
// Applications and forwarder are one process here, so that the work of sending
// the commands counts too. commands/s says how many were answered.
func BenchmarkForwardingUnderCommands(b *testing.B) {
	sock := filepath.Join(b.TempDir(), "s")
	d, _ := startDaemon(b, fmt.Sprintf("faces.unix.path = %q\nfaces.udp.listen = []\nfaces.tcp.listen = []\nadmin.listen = \"\"\n", sock))
	dial := func() face.Server {
		tr, err := unix.Dial(sock, unix.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return tr
	}
	serve := func(r face.Receiver, tr face.Server) {
		done := make(chan struct{})
		go func() { _ = tr.Serve(r); close(done) }()
		b.Cleanup(func() { _ = tr.Close(); <-done })
	}
	const mark = 0x5a5a5a5a5a5a5a5a
	name := ndn.MustName("/bench").AppendNumber(ndn.TypeSegment, mark)
	at := func(w []byte) int {
		for i := range w {
			if binary.BigEndian.Uint64(w[i:]) == mark {
				return i
			}
		}
		return -1
	}
	interest := ndn.AppendInterest(nil, &ndn.InterestFields{Name: name, Nonce: 1})
	data, err := ndn.AppendData(nil, &ndn.DataFields{Name: name, Content: make([]byte, 8000)}, ndn.DigestSigner{})
	if err != nil {
		b.Fatal(err)
	}
	p := &producer{tr: dial(), data: data, at: at(data), from: len(interest) - at(interest)}
	serve(p, p.tr)
	ctx := context.Background()
	var id ndn.FaceID
	eventually(b, "the producer's face", func() bool {
		for _, i := range d.fwd.Faces() {
			if i.LocalURI == "unix://"+sock {
				id = i.ID
			}
		}
		return id != 0
	})
	if err := d.fwd.AddRoute(run.Route{Prefix: ndn.MustName("/bench"), Face: id}); err != nil {
		b.Fatal(err)
	}

	const rate, parallel = 1050, 16 // some ticks are missed
	var sent atomic.Uint64
	var on atomic.Bool
	stop := make(chan struct{})
	var commanders sync.WaitGroup
	for c := range parallel {
		commanders.Go(func() {
			ours := client.New(dial(), client.Options{})
			defer ours.Close()
			tick := time.NewTicker(time.Second * parallel / rate)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				if !on.Load() {
					continue
				}
				p := mgmt.Register(ndn.MustName(fmt.Sprintf("/m/%d/%d", c, i/2%100)), 0, 0)
				verb := "register"
				if i%2 == 1 {
					verb = "unregister"
					p.Cost, p.Flags = optional.None[uint64](), optional.None[uint64]()
				}
				if _, err := ours.Command(ctx, "rib", verb, p); err != nil {
					b.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	l := &load{tr: dial(), interest: interest, at: at(interest)}
	for range 256 {
		l.ask()
	}
	first := l.out
	l.out = face.Frames{}
	serve(l, l.tr)
	l.tr.Send(&first)
	eventually(b, "Data", func() bool { return l.got.Load() > 1000 })
	var got, took, cpu [2]float64
	b.ResetTimer()
	for i := range 2 * b.N {
		k := i % 2
		on.Store(k == 1)
		d0, t0, c0 := l.got.Load(), time.Now(), processorTime(b)
		time.Sleep(100 * time.Millisecond)
		got[k] += float64(l.got.Load() - d0)
		took[k] += time.Since(t0).Seconds()
		cpu[k] += processorTime(b) - c0
	}
	b.StopTimer()
	on.Store(false)
	close(stop)
	commanders.Wait()
	lost := func(per [2]float64) float64 { return 100 * (1 - got[1]/per[1]/(got[0]/per[0])) }
	b.ReportMetric(lost(took), "lost-%")
	b.ReportMetric(lost(cpu), "lost-cpu-%")
	b.ReportMetric(got[0]*8000*8/took[0]/1e6, "alone-Mbit/s")
	b.ReportMetric(float64(sent.Load())/took[1], "commands/s")
	b.ReportMetric(0, "ns/op")
}

// processorTime is what this process has used, in seconds.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
