//go:build linux

package debian

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// policyFile is asked by Debian's maintainer scripts whether a service may be
// started (invoke-rc.d(8)).
const policyFile = "/usr/sbin/policy-rc.d"

// savedSuffix marks the administrator's own policy while ours is in its place.
const savedSuffix = ".before-ndnpop"

const policyMark = "# Written by ndnpop while it installs packages."

const policy = "#!/bin/sh\n" + policyMark + "\nexit 101\n"

// denyServices forbids the start of services until restore. What an earlier
// run left behind when it was killed is put right first.
func denyServices(file string) (restore func() error, err error) {
	saved := file + savedSuffix
	restore = func() error {
		b, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(b), policyMark) {
			err = os.Remove(file)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Rename(saved, file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := restore(); err != nil {
		return nil, fmt.Errorf("restore %s: %w", file, err)
	}
	if err := os.Rename(file, saved); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(policy), 0o755); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// lock keeps two runs from installing at once.
func lock() (release func(), err error) {
	f, err := os.OpenFile("/run/ndnpop-install.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil // which unlocks it
}

// disable keeps the services of the packages from starting with the machine,
// by init scripts and by systemd.
func disable(files []File) error {
	var errs []error
	for _, f := range files {
		for _, u := range f.Units {
			if out, err := exec.Command("update-rc.d", u, "disable").CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("update-rc.d %s disable: %w: %s", u, err, tail(out)))
			}
		}
	}
	return errors.Join(errs...)
}

// processes lists what runs on the machine.
func processes() ([]int, error) {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range dir {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// stopNew ends processes that were not there before and run a file of the
// packages: a maintainer script that asks no policy.
func stopNew(before []int, names []string) error {
	now, err := processes()
	if err != nil {
		return err
	}
	out, err := exec.Command("dpkg", append([]string{"-L"}, names...)...).Output()
	if err != nil {
		return nil // not installed: apt-get's error says why
	}
	files := strings.Split(string(out), "\n")
	var errs []error
	for _, pid := range now {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || slices.Contains(before, pid) || !slices.Contains(files, exe) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("stop %s (process %d), which the installation started: %w", exe, pid, err))
		}
	}
	return errors.Join(errs...)
}
