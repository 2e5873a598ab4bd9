package multicast_test

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
	"ndnpop/face/lp"
	"ndnpop/face/multicast"
	"ndnpop/internal/testbin"
	"ndnpop/ndn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// group is one that only the tests use, so that nobody else on the host hears
// them.
const (
	group4 = "239.255.17.4:56399"
	group6 = "[ff02::1:7704]:56399"
)

func loopback(t *testing.T) *net.Interface {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Name == dummy {
			return &all[i]
		}
	}
	for i := range all {
		if all[i].Flags&net.FlagLoopback != 0 {
			return &all[i]
		}
	}
	t.Skip("no loopback interface")
	return nil
}

// side is a transport that is being served.
type side struct {
	face.Server
	*senders
	done chan error
}

// senders is a facetest.Sink that notes the senders' numbers.
type senders struct {
	facetest.Sink
	mu  sync.Mutex
	ids []uint64
}

func (s *senders) ReceiveFrom(sender uint64, frames [][]byte) {
	s.mu.Lock()
	if !slices.Contains(s.ids, sender) {
		s.ids = append(s.ids, sender)
	}
	s.mu.Unlock()
	s.Receive(frames)
}

func (s *senders) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

func open(t *testing.T, group string) side {
	t.Helper()
	tr, err := multicast.Open(loopback(t), group, multicast.Options{Loop: true})
	testbin.Need(t, err)
	s := side{tr, new(senders), make(chan error, 1)}
	go func() { s.done <- s.Server.Serve(s.senders) }()
	t.Cleanup(func() {
		_ = s.Server.Close()
		if err := <-s.done; !errors.Is(err, face.ErrClosed) || !errors.Is(s.Reason(), face.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
		s.Check(t)
		var b face.Frames
		facetest.Frame(&b, 1, 20)
		if s.Send(&b) != 1 {
			t.Error("a closed transport took a frame")
		}
	})
	return s
}

// TestEverybodyHears: what one sends all others get, and not itself; the
// senders are told apart.
func TestEverybodyHears(t *testing.T) {
	for _, group := range []string{group4, group6} {
		t.Run(group, func(t *testing.T) {
			if group == group6 {
				namespace(t)
			}
			all := []side{open(t, group), open(t, group), open(t, group)}
			for i, s := range all {
				var b face.Frames
				facetest.Frame(&b, uint64(i+1), 100)
				if i == 0 {
					// As large as any packet, whatever the interface takes at once.
					if s.MTU() != ndn.MaxPacketSize {
						t.Errorf("MTU %d", s.MTU())
					}
					facetest.Frame(&b, 100, s.MTU())
				}
				if n := s.Send(&b); n != 0 {
					t.Fatalf("%d frames were dropped", n)
				}
			}
			for i, want := range []int{2, 3, 3} {
				s := all[i]
				facetest.Eventually(t, "the others' frames", func() bool { return s.Count() >= want })
			}
			for i, s := range all {
				n := s.Numbers()
				if slices.Contains(n, uint64(i+1)) {
					t.Errorf("%d heard itself: %d", i, n)
				}
				if s.count() != 2 {
					t.Errorf("%d knows %d senders", i, s.count())
				}
			}
			i := all[0].Info()
			if i.Link != face.LinkMultiAccess || i.Scope != face.ScopeNonLocal || i.Stream ||
				!strings.HasSuffix(i.RemoteURI, ":56399") || !strings.HasPrefix(i.LocalURI, i.RemoteURI[:7]) {
				t.Errorf("%+v", i)
			}
		})
	}
}

// TestFragmentsOfTwoSenders: large packets of two senders with the same
// numbers come whole.
func TestFragmentsOfTwoSenders(t *testing.T) {
	transport := func() face.Server {
		tr, err := multicast.Open(loopback(t), group4, multicast.Options{Loop: true})
		testbin.Need(t, err)
		t.Cleanup(func() { _ = tr.Close() })
		return tr
	}
	a, b, tr := transport(), transport(), transport()
	r := &linkReceiver{link: lp.New(lp.Config{Fragment: true}), got: map[string]int{}}
	done := make(chan error, 1)
	go func() { done <- tr.Serve(r) }()
	defer func() { _ = tr.Close(); <-done }()
	for _, s := range []struct {
		face.Server
		name string
	}{{a, "/a"}, {b, "/b"}} {
		link := lp.New(lp.Config{Fragment: true, MTU: 1000})
		wire, err := ndn.AppendData(nil, &ndn.DataFields{Name: ndn.MustName(s.name), Content: make([]byte, 6000)}, ndn.DigestSigner{})
		if err != nil {
			t.Fatal(err)
		}
		var out face.Frames
		if err := link.Send(1, wire, nil, &out); err != nil {
			t.Fatal(err)
		}
		// All but the last fragment, so that both are incomplete at once.
		r.held = append(r.held, func() {
			last := face.Frames{Buf: slices.Clone(out.Frame(out.Len() - 1))}
			last.End()
			sent(t, s, &last)
		})
		rest := face.Frames{Buf: out.Buf, Ends: out.Ends[:out.Len()-1]}
		sent(t, s, &rest)
	}
	for _, f := range r.held {
		f()
	}
	facetest.Eventually(t, "both packets", func() bool { return r.count("/a") == 1 && r.count("/b") == 1 })
}

// sent sends until the socket takes all: on a busy machine the kernel may still be
// about to hand out what was sent before. What it took it gets again.
func sent(t *testing.T, s face.Server, f *face.Frames) {
	t.Helper()
	facetest.Eventually(t, "room in the socket", func() bool { return s.Send(f) == 0 })
}

type linkReceiver struct {
	link *lp.Link
	held []func()
	mu   sync.Mutex
	got  map[string]int
}

func (r *linkReceiver) Receive([][]byte) {}
func (r *linkReceiver) ReceiveFrom(sender uint64, frames [][]byte) {
	var p ndn.Packet
	for _, f := range frames {
		if ok, _ := r.link.ReceiveFrom(1, sender, f, &p); ok {
			r.mu.Lock()
			r.got[p.Data.Name.String()]++
			r.mu.Unlock()
		}
	}
}
func (r *linkReceiver) Flush()       {}
func (r *linkReceiver) Closed(error) {}
func (r *linkReceiver) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[name]
}

func TestNoAllocation(t *testing.T) {
	a, b := open(t, group4), open(t, group4)
	var f face.Frames
	for i := range 10 {
		facetest.Frame(&f, uint64(i), 1000)
	}
	sent(t, a, &f)
	facetest.Eventually(t, "frames", func() bool { return b.Count() >= 10 })
	// What a full socket drops is no matter here.
	if n := testing.AllocsPerRun(50, func() { a.Send(&f) }); n > 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

func TestInterfaces(t *testing.T) {
	lo := loopback(t)
	names := func(patterns ...string) (names []string) {
		is, err := multicast.Interfaces(patterns)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range is {
			names = append(names, i.Name)
		}
		return names
	}
	if slices.Contains(names("*"), lo.Name) {
		t.Error("a pattern matched the loopback interface")
	}
	if !slices.Contains(names(lo.Name), lo.Name) {
		t.Error("the loopback interface was named, and is not there")
	}
	if len(names()) != 0 || len(names("no-such-interface")) != 0 {
		t.Error("interfaces that nobody asked for")
	}
	if _, err := multicast.Interfaces([]string{"["}); err == nil {
		t.Error("a bad pattern")
	}
}

func TestBadGroups(t *testing.T) {
	lo := loopback(t)
	for _, g := range []string{"", "224.0.23.170", "127.0.0.1:56363", "224.0.23.170:0"} {
		if tr, err := multicast.Open(lo, g, multicast.Options{}); err == nil {
			_ = tr.Close()
			t.Errorf("opened %q", g)
		}
	}
	for _, g := range []string{multicast.GroupV4, multicast.GroupV6} {
		if ap, err := netip.ParseAddrPort(g); err != nil || !ap.Addr().IsMulticast() || ap.Port() != 56363 {
			t.Errorf("%s: %v", g, err)
		}
	}
}
