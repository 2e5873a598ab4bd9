//go:build linux

package emunet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// nsDir is where named network namespaces are mounted, as by ip netns.
const nsDir = "/run/netns"

// nsPrefix starts the name of every namespace of ours:
// emunet-<pid of the owner>-<its start time>-<network>-<host>.
const nsPrefix = "emunet-"

// ownPrefix is the part that names this process. The start time tells a
// process from a later one with the same id.
func ownPrefix() (string, error) {
	t, err := startTime(os.Getpid())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d-%d-", nsPrefix, os.Getpid(), t), nil
}

// startTime is when a process started, in clock ticks since boot (field 22 of
// /proc/PID/stat).
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field, the command in parentheses, may contain anything.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// orphaned reports whether a namespace has a name of ours whose owner is gone.
func orphaned(name string) bool {
	rest, ok := strings.CutPrefix(name, nsPrefix)
	f := strings.SplitN(rest, "-", 3)
	if !ok || len(f) < 3 {
		return false
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil {
		return false
	}
	start, err := strconv.ParseUint(f[1], 10, 64)
	if err != nil {
		return false
	}
	now, err := startTime(pid)
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && now != start
}

// MkdirTemp creates a directory for the files of this process's experiments,
// readable for everybody. The caller removes it; if the process is killed
// first, CleanLeftovers does.
func MkdirTemp() (string, error) {
	own, err := ownPrefix()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", own+"files-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// CleanLeftovers kills the processes in, and removes, the namespaces whose
// owner died without closing its Network, and its directories of MkdirTemp. It
// returns the names of the namespaces. New calls it.
func CleanLeftovers() (cleaned []string, err error) {
	var errs []error
	names, err := os.ReadDir(nsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, e := range names {
		if !orphaned(e.Name()) {
			continue
		}
		if err := removeNamespace(e.Name()); err != nil {
			errs = append(errs, err)
			continue
		}
		cleaned = append(cleaned, e.Name())
	}
	files, err := os.ReadDir(os.TempDir())
	errs = append(errs, err)
	for _, f := range files {
		if f.IsDir() && orphaned(f.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(os.TempDir(), f.Name())))
		}
	}
	return cleaned, errors.Join(errs...)
}

// removeNamespace kills what runs in a named namespace and removes it. That it
// is gone already is no error.
func removeNamespace(name string) error {
	path := filepath.Join(nsDir, name)
	if id, err := nsID(path); err == nil {
		if err := killAll(id); err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	// EINVAL: its owner died before it mounted the namespace.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// nsID identifies the namespace behind a path as /proc/PID/ns/net does.
func nsID(path string) (string, error) {
	var s, proc unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return "", err
	}
	if err := unix.Stat("/proc/self/ns/net", &proc); err != nil {
		return "", err
	}
	if s.Dev != proc.Dev {
		return "", fmt.Errorf("%s is not a namespace", path)
	}
	return fmt.Sprintf("net:[%d]", s.Ino), nil
}

// processesIn lists the processes in a namespace, without our own.
func processesIn(id string) ([]int, error) {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range dir {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if l, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && l == id {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// pidfdsIn opens the processes in a namespace, without our own. The caller closes
// the descriptors.
func pidfdsIn(id string) (fds []int, err error) {
	pids, err := processesIn(id)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it ended
		}
		// The descriptor is of the process that has the id now: check again.
		if l, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); l != id {
			unix.Close(fd)
			continue
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// signalIn sends sig to the processes in a namespace and returns to how many.
func signalIn(id string, sig unix.Signal) (n int, err error) {
	fds, err := pidfdsIn(id)
	if err != nil {
		return 0, err
	}
	for _, fd := range fds {
		if unix.PidfdSendSignal(fd, sig, nil, 0) == nil {
			n++
		}
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return n, nil
}

// killAll kills until no process is left in a namespace: one may fork while we
// look.
func killAll(id string) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := signalIn(id, unix.SIGKILL)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes do not die", n)
		}
	}
}

// onThread starts f on an OS thread of its own; the channel is closed when f has
// ended. It is never the main thread, whose namespace is that of the process in
// the eyes of /proc. If f returns false the thread ends with it.
func onThread(f func() (clean bool)) <-chan struct{} {
	done := make(chan struct{})
	body := func() {
		defer close(done)
		if f() {
			runtime.UnlockOSThread()
		}
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			body()
			return
		}
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			body()
		}()
		<-locked // holding the main thread, so that the other is another
		runtime.UnlockOSThread()
	}()
	return done
}

// inNamespace runs f on a thread that enter moves into a namespace for that time.
func inNamespace(enter, f func() error) (err error) {
	<-onThread(func() bool {
		var own netns.NsHandle
		if own, err = netns.Get(); err != nil {
			return true
		}
		defer own.Close()
		if err = enter(); err != nil {
			err = fmt.Errorf("enter namespace: %w", err)
			return true
		}
		err = errors.New("the function ended its goroutine")
		err = f()
		return netns.Set(own) == nil
	})
	return err
}
