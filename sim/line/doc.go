// Package line is one direction of a link in virtual time: seeded loss, a
// drop-tail or CoDel queue in bytes, a serialiser with a rate, which two
// directions may share, propagation delay and jitter. The simulator's links
// and the emulated ones between namespaces (cdnbench/emunet) are made of it.
//
// It is a plain state machine that is told the time. A driver pushes packets
// into it, asks Deadline, and takes with Deliver what has arrived by now.
// The order is that of a real link: a packet is lost or not (before it takes
// queue space or serialisation time), waits in the queue, is serialised, and
// travels. Parameters may change at any time: what still waits is re-timed at
// the new rate from the bit that the serialiser had reached, what travels
// keeps the delay that it left with.
//
// A packet may be a super-packet (virtio header with TCP or UDP segmentation
// offload). Loss, queue and rate work on each of its segments; it is split
// only around a dropped segment and so that no piece takes longer than
// ChunkTime to serialise.
package line
