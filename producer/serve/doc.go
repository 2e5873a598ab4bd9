// Package serve is the driver of applications: it connects a core to the
// local forwarder, registers its prefixes, and comes back when the forwarder
// has restarted.
//
// Goroutines: the one that calls App.Run; one per connection, which receives
// and answers (the core runs on it); for a stream another one, which makes the
// digests of what has been built and writes it; the runtime's timer goroutine
// for the core's deadlines. One lock is held while the core works.
package serve
