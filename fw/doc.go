// Package fw is one forwarding shard: the complete Interest, Data and Nack
// pipelines over the tables, with strategies making the choices, as one
// deterministic state machine.
//
// A shard has no goroutine, lock, clock or socket. Its driver calls one method
// at a time, tells it the time, and gives it packets that the link services
// have reassembled; the shard sends through a [Sender]. The driver's loop is:
//
//	for {
//		wait for packets, at most until s.Deadline()
//		for each packet { s.Receive(now, face, &packet) }
//		s.Tick(now)
//		flush what the Sender queued
//	}
//
// The same calls with the same arguments and seed give the same packets.
package fw
