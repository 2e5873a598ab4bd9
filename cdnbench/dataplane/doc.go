// Package dataplane compares forwarders on loopback without emulated links:
// one object is published at one end of a chain of one or two forwarders and
// fetched at the other, by ndnpop and by ndnd in turn.
package dataplane
