// Package table holds the tables of one forwarding shard: the FIB and the
// strategy choice, the PIT, the content store with its eviction policies, the
// dead nonce list, the measurements, and the timers.
//
// Every table is a plain data structure: it has no lock, clock, goroutine or
// randomness of its own, is bounded by its configuration, and allocates
// nothing in steady state. Two names are equal when their bytes are; a hash
// only says where to look. The dead nonce list alone trusts its keyed 64-bit
// hash, because a wrong answer there costs one Interest and not correctness.
package table
