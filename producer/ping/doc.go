// Package ping is both ends of the ndnping protocol without I/O: the client
// asks for /<prefix>/ping/<number>, the server answers whatever lies under
// /<prefix>/ping. They work with ndn-tools' ndnping and ndnpingserver, and
// with those of ndnd, whose numbers are sequence number components.
package ping

import "ndnpop/ndn"

// Sender takes the packets of either end. Both arguments are valid only
// during the call; f may be nil.
type Sender interface {
	Send(wire []byte, f *ndn.LpFields)
}

// Name returns /<prefix>/ping.
func Name(prefix ndn.Name) ndn.Name { return prefix.Clone().AppendGeneric("ping") }
