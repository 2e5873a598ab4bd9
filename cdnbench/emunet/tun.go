//go:build linux

package emunet

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tunQueue is how many packets wait in a TUN device for the emulator. They
// wait there only while its thread is not scheduled.
const tunQueue = 4000

// openTun creates a TUN device in the namespace of the calling thread. The
// descriptor is non-blocking, and the device disappears when it is closed. With
// vnet, packets have a virtio header and may be super-packets; UDP ones only
// where the kernel has them (6.2).
func openTun(name string, vnet bool) (fd int, err error) {
	fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/net/tun: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return -1, fmt.Errorf("device name %q: %w", name, err)
	}
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if vnet {
		flags |= unix.IFF_VNET_HDR
	}
	ifr.SetUint16(flags)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(ifr))); errno != 0 {
		return -1, fmt.Errorf("TUNSETIFF %s: %w", name, errno)
	}
	if vnet {
		offload := unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
		if unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload|unix.TUN_F_USO4|unix.TUN_F_USO6) != nil {
			if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offload); err != nil {
				return -1, fmt.Errorf("TUNSETOFFLOAD %s: %w", name, err)
			}
		}
	}
	return fd, nil
}

// setCarrier plugs the cable of a TUN device in or pulls it out.
func setCarrier(fd int, on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, v); err != nil {
		return fmt.Errorf("TUNSETCARRIER: %w", err)
	}
	return nil
}
