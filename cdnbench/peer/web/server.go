//go:build linux

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer"

	"golang.org/x/sys/unix"
)

const (
	// Site is the host name that clients ask for.
	Site = "cdn.test"
	// Port is where all servers listen: each has a host of its own.
	Port = 80
	// WarmPath answers with a few bytes that no cache keeps. Asking for it opens
	// the connections on the way to the origin.
	WarmPath = "/warm"

	warmText = "warm\n"
	maxAge   = "max-age=3600"
)

// readyLimit bounds the start of a server on a machine with much else to do.
const readyLimit = 30 * time.Second

// server is a program that has a host to itself, with what it forks.
type server struct {
	host *emunet.Host
	dir  string // its files
	name string
	proc *peer.Process
}

// start starts the program and waits until it answers a request for path.
func (s *server) start(ctx context.Context, path string, env []string, argv ...string) (err error) {
	c := s.host.Command(argv[0], argv[1:]...)
	c.Env = append(c.Environ(), env...)
	if s.proc, err = peer.StartCommand(s.dir, s.name, c.Cmd, c); err != nil {
		return err
	}
	last := errors.New("no answer")
	err = peer.Until(ctx, readyLimit, fmt.Sprintf("%s at %s", s.name, s.host.Name()), func() bool {
		if s.proc.Ended() {
			return true
		}
		var code int
		code, _, last = s.get(ctx, path)
		if last == nil && code != http.StatusOK {
			last = fmt.Errorf("%s answers %s with %d", s.name, path, code)
		}
		return last == nil
	})
	if err == nil {
		err = s.alive(ctx)
	} else {
		err = fmt.Errorf("%w: %w", err, last)
	}
	if err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

// alive returns an error when the server has ended.
func (s *server) alive(ctx context.Context) error {
	if !s.proc.Ended() {
		return nil
	}
	if err := s.proc.Wait(ctx); err != nil {
		return fmt.Errorf("at %s: %w", s.host.Name(), err)
	}
	return fmt.Errorf("%s at %s ended by itself", s.name, s.host.Name())
}

// Kill ends the server, all that it forked, and whatever else runs at the host,
// with SIGKILL, and waits for their end: only then are ports and locks free.
func (s *server) Kill() error {
	if s.proc == nil {
		return nil
	}
	defer s.proc.Stop()
	for end := time.Now().Add(readyLimit); ; { // one may fork while others are killed
		pids, err := s.host.Processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		var all []unix.PollFd
		for _, pid := range pids {
			if fd, err := unix.PidfdOpen(pid, 0); err == nil {
				defer unix.Close(fd)
				all = append(all, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
		if _, err := s.host.Signal(unix.SIGKILL); err != nil {
			return err
		}
		if !ended(all, end) {
			return fmt.Errorf("%s at %s does not die", s.name, s.host.Name())
		}
	}
}

// ended waits until processes, given by their descriptors, have ended.
func ended(all []unix.PollFd, limit time.Time) bool {
	for i := range all {
		for n := 0; n == 0; {
			wait := time.Until(limit)
			if wait <= 0 {
				return false
			}
			var err error
			if n, err = unix.Poll(all[i:i+1], int(wait.Milliseconds())+1); err != nil {
				if err != unix.EINTR {
					return false
				}
				n = 0
			}
		}
	}
	return true
}

// get asks the server for a path over the host's own loopback. The body is cut
// at a megabyte.
func (s *server) get(ctx context.Context, path string) (code int, body []byte, err error) {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port)
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			err = s.host.Do(func() (err error) {
				d := net.Dialer{Timeout: time.Second}
				conn, err = d.DialContext(ctx, network, to.String())
				return err
			})
			return conn, err
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+Site+path, nil)
	if err != nil {
		return 0, nil, err
	}
	a, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	body, err = io.ReadAll(io.LimitReader(a.Body, 1<<20))
	return a.StatusCode, body, err
}
