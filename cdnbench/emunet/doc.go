// Package emunet builds networks on one machine for experiments with real
// processes: hosts are network namespaces, links between them have rate,
// delay, jitter, loss and a queue, and all of it can change in mid-run.
//
// Where the kernel has no netem, or when seeded loss or drop-tail in bytes
// must be exact, one thread carries the packets in user space between TUN
// devices (emulator "tun"); its decisions are those of package line. With
// virtio headers it passes TCP and UDP super-packets whole. Otherwise the
// kernel does it with netem and tbf on veth pairs (emulator "netem").
//
// The endpoints belong into processes of their own (Host.Command): busy
// goroutines in the process of the emulator make it late. It counts how late
// it was and what was lost to overload; Network.Verify refuses a run where
// that mattered, and Network.Calibrate a network that does not do what it
// was configured for.
//
// Everything dies with the Network: Close kills the processes inside and
// removes the namespaces. When the owner itself was killed, the kernel removes
// devices and links at once, and direct children die with it; New and
// CleanLeftovers find the rest by the owner's process id and start time in the
// names of the namespaces.
//
// Goroutines of a Network: one for the emulator and one for each host, each
// locked to its thread, until Close.
package emunet
