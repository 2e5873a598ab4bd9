// Package run is the daemon's driver: it carries packets from sockets to the
// shard and back, gives faces their life (listeners, on-demand, persistent
// and permanent faces), keeps the RIB and turns it into the FIB.
//
// A Forwarder is a library object: several may live in one process. It writes
// no log; who wants to know what happens observes its events.
//
// # The way of a packet
//
// A receive goroutine runs to completion. It takes a batch of frames from a
// transport, parses them with the face's link service,
// locks the shard once for the batch, lets it work and unlocks. While it
// worked, the shard queued what it sends with the link service of each egress
// face; afterwards, outside the shard's lock, every face that got something is
// flushed with one call of its transport. Nobody waits for a peer.
//
// # Locks
//
// From the outside in: the RIB's, the face table's, a shard's, a face's link.
// Never two shards, never two faces. The path of a packet takes only the last
// two, and neither a receive goroutine nor the timer waits for the RIB's. The
// lock that serialises a transport's Send is tried, not awaited:
// whoever holds it sends what others added meanwhile.
//
// # Goroutines
//
// One timer goroutine; one that removes the routes of faces that have gone, and
// those that have expired; one receive goroutine per UDP listener and per stream
// or dialled face; one accept goroutine per stream listener; one for the
// internal face. Of those of a udp.Group one receives for all, and the others
// wait. A permanent face's goroutine also reconnects it. All end before Close
// returns.
package run
