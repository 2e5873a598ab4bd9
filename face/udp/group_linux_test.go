package udp

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndnpop/face"
	"ndnpop/face/internal/facetest"
)

// turns is a handler that notes how often its socket had its turn.
type turns struct {
	took func()
	end  atomic.Bool
}

func (h *turns) over() bool        { return h.end.Load() }
func (h *turns) arrived(*arrivals) { h.took() }
func (h *turns) flush()            {}

func listen(t *testing.T, g *Group) *Listener {
	t.Helper()
	l, err := Listen("127.0.0.1:0", Options{Group: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dialTo(t *testing.T, addr string, g *Group) *connected {
	t.Helper()
	d, err := Dial(addr, Options{Group: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.(*connected)
}

// However much comes for some sockets, all have their turn.
func TestBusySocketsTakeTurns(t *testing.T) {
	const sockets, perSocket = 3 * roundSockets, 4
	g := NewGroup(1)
	loop := g.loops[0]
	loop.duty <- struct{}{} // nobody receives yet
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	var handlers [sockets]*turns
	var all [sockets]*Listener
	for i := range sockets {
		all[i] = listen(t, g)
		from := dialTo(t, all[i].local.String(), nil)
		var b face.Frames
		for range perSocket * rxMessages {
			b.Reset() // a batch would be one message
			facetest.Frame(&b, 1, 20)
			if from.Send(&b) != 0 {
				t.Fatal("dropped")
			}
		}
		handlers[i] = &turns{took: func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		}}
		wg.Go(func() {
			if err := all[i].sock.serve(handlers[i]); err != nil {
				t.Error(err)
			}
		})
	}
	facetest.Eventually(t, "all to be served", func() bool {
		loop.mu.Lock()
		defer loop.mu.Unlock()
		return loop.serving == sockets
	})
	<-loop.duty
	facetest.Eventually(t, "all to be received", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(order) == sockets*perSocket
	})
	for i := range handlers {
		handlers[i].end.Store(true)
		all[i].sock.wake()
	}
	wg.Wait()
	var had [sockets]int
	for n, i := range order {
		if had[i]++; had[i] > n/sockets+1 {
			t.Fatalf("socket %d has turn %d when there were %d in all: %v", i, had[i], n+1, order)
		}
	}
}

// Whoever receives for the group passes that on at its own end.
func TestDutyIsPassedOn(t *testing.T) {
	g := NewGroup(1)
	there := listen(t, nil)
	var sinks [4]*facetest.Sink
	var faces [4]*connected
	var wg sync.WaitGroup
	for i := range faces {
		faces[i], sinks[i] = dialTo(t, there.local.String(), g), new(facetest.Sink)
		wg.Go(func() { _ = faces[i].Serve(sinks[i]) })
	}
	peers := make(chan face.Transport, len(faces))
	wg.Go(func() {
		_ = there.Serve(func(p face.Transport) (face.Receiver, error) {
			peers <- p
			return new(facetest.Sink), nil
		})
	})
	var b face.Frames
	facetest.Frame(&b, 1, 20)
	for i, d := range faces {
		d.Send(&b)
		p := <-peers
		p.Send(&b)
		facetest.Eventually(t, "the frame", func() bool { return sinks[i].Count() == 1 })
	}
	for i, d := range faces {
		_ = d.Close()
		facetest.Eventually(t, "the end", func() bool { return sinks[i].Reason() != nil })
		if !errors.Is(sinks[i].Reason(), face.ErrClosed) {
			t.Error(sinks[i].Reason())
		}
		for k := i + 1; k < len(faces); k++ {
			before := sinks[k].Count()
			for p := range peersOf(there) {
				p.Send(&b)
			}
			facetest.Eventually(t, "a frame for who is left", func() bool { return sinks[k].Count() > before })
		}
	}
	_ = there.Close()
	wg.Wait()
	if l := g.loops[0]; l.epoll != nil || len(l.members) != 0 || len(l.active) != 0 || len(l.asked) != 0 || l.rx != nil {
		t.Errorf("something is left: %d members, %d active, %d asked, memory %v", len(l.members), len(l.active), len(l.asked), l.rx != nil)
	}
}

func peersOf(l *Listener) map[*peer]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[*peer]bool)
	for _, p := range l.peers {
		all[p] = true
	}
	return all
}

// Sockets come and go, under traffic, so that numbers of descriptors are used
// again while events of their last users are on the way.
func TestSocketsComeAndGo(t *testing.T) {
	g := NewGroup(2)
	there := listen(t, g)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = there.Serve(func(face.Transport) (face.Receiver, error) { return new(facetest.Sink), nil })
	})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			var b face.Frames
			for n := range 50 {
				d, err := Dial(there.local.String(), Options{Group: g})
				if err != nil {
					t.Error(err)
					return
				}
				sink := new(facetest.Sink)
				done := make(chan error)
				go func() { done <- d.Serve(sink) }()
				b.Reset()
				for i := range uint64(1 + n%20) {
					facetest.Frame(&b, i, 50)
				}
				d.Send(&b)
				for p := range peersOf(there) {
					p.Send(&b)
				}
				_ = d.Close()
				if err := <-done; !errors.Is(err, face.ErrClosed) {
					t.Errorf("Serve returned %v", err)
				}
				sink.Check(t)
			}
		})
	}
	workers.Wait()
	_ = there.Close()
	wg.Wait()
}

// The error queue makes a socket ready. It is emptied, even if somebody else
// has taken the socket's error before.
func TestErrorQueueIsEmptied(t *testing.T) {
	gone := listen(t, nil)
	to := gone.local
	_ = gone.Close()
	l := listen(t, nil)
	e := new(endpoint)
	e.init(l.sock, l.local, to, 8800)
	s := l.sock.(*fast)
	h := &turns{took: func() {}}
	m, err := s.loop.add(s, h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.loop.leave()
	loop := s.loop
	loop.rx = newMessages()
	loop.attend()
	_ = loop.epoll.SetReadDeadline(time.Time{})
	var b face.Frames
	facetest.Frame(&b, 1, 20)
	e.Send(&b)
	facetest.Eventually(t, "the error", func() (refused bool) {
		_ = s.raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_DONTWAIT)
			refused = errors.Is(err, unix.ECONNREFUSED)
		})
		return refused
	})
	_ = loop.epoll.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	for n := 0; ; n++ {
		err := loop.wait()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil || n > 100 {
			t.Fatalf("the socket stays ready; %v", err)
		}
		loop.round()
	}
	loop.end(m, nil)
}
