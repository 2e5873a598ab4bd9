package multicast_test

import (
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ndnpop/face/multicast"
	"ndnpop/internal/testbin"
)

// dummy is an interface of the namespace, whose other end is there too. IPv6 multicast
// needs one: Linux has no such route on the loopback interface.
const dummy = "mcast0"

// namespace moves the rest of the test into a network namespace of its own.
func namespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		testbin.Need(t, fmt.Errorf("no network namespace: %w", err))
	}
	for _, c := range []string{
		"link add " + dummy + " type veth peer name mcast1", "link set mcast1 up", "link set " + dummy + " up",
		"addr add fe80::1/64 dev " + dummy + " nodad",
	} {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			testbin.Need(t, fmt.Errorf("ip %s: %w: %s", c, err, out))
		}
	}
}

// TestTentative: a face can be made while the host still asks whether anybody
// else has the interface's address.
func TestTentative(t *testing.T) {
	namespace(t)
	for _, c := range []string{
		"addr flush dev " + dummy,
		"addr add fe80::2/64 dev " + dummy, // tentative for a second
	} {
		if out, err := exec.Command("ip", strings.Fields(c)...).CombinedOutput(); err != nil {
			testbin.Need(t, fmt.Errorf("ip %s: %w: %s", c, err, out))
		}
	}
	i, err := net.InterfaceByName(dummy)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := multicast.Open(i, group6, multicast.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if uri := tr.Info().LocalURI; !strings.HasPrefix(uri, "udp6://[fe80::2%"+dummy+"]:") {
		t.Errorf("sends from %s", uri)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}
