// Package ndn is the vocabulary of the project: names, zero-copy views of
// Interest, Data, Nack and NDNLPv2 packets, their encoders, and time.
//
// A view points into the buffer it was parsed from: nothing is copied and
// nothing is allocated. A view is valid as long as its buffer is neither
// reused nor changed; whoever keeps bytes longer copies them.
//
// The formats are those of the NDN packet specification v0.3
// (https://docs.named-data.net/NDN-packet-spec/current/) and of NDNLPv2. The
// evolvability rules of the specification hold everywhere: an element that is
// not recognised, or is recognised but out of order, is ignored when its type
// is non-critical (even and above 31) and makes the packet invalid otherwise.
package ndn
