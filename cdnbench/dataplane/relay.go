package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"ndnpop/face"
	"ndnpop/face/udp"
)

// Relay passes datagrams between two UDP peers until ctx ends, with the sockets
// and the batches of a forwarder and nothing else: what it costs is what any
// forwarder pays. Each argument is "LOCAL REMOTE", two addresses.
func Relay(ctx context.Context, ends [2][2]string) error {
	var s [2]face.Server
	g := udp.NewGroup(0)
	for i, e := range ends {
		var err error
		if s[i], err = udp.Dial(e[1], udp.Options{Local: e[0], Family: "udp4", Group: g}); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		defer s[i].Close()
	}
	stop := context.AfterFunc(ctx, func() { s[0].Close(); s[1].Close() })
	defer stop()
	var wg sync.WaitGroup
	var errs [2]error
	for i := range s {
		wg.Go(func() { errs[i] = s[i].Serve(&half{to: s[1-i]}) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errs[:]...)
}

// half is one direction of a relay.
type half struct {
	to  face.Server
	out face.Frames
}

func (h *half) Receive(frames [][]byte) {
	for _, f := range frames {
		h.out.Buf = append(h.out.Buf, f...)
		h.out.End()
	}
}

func (h *half) Flush() {
	h.to.Send(&h.out)
	h.out.Reset()
}
func (h *half) Closed(error) {}

// loopback is an address with a port on this machine.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(port)) }
