// Package strategies lists the strategies that come with ndnpop.
package strategies

import (
	"ndnpop/strategy"
	"ndnpop/strategy/asf"
	"ndnpop/strategy/bestpath"
	"ndnpop/strategy/bestroute"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/loadbalance"
	"ndnpop/strategy/multicast"
	"ndnpop/strategy/nst"
	"ndnpop/strategy/random"
	"ndnpop/strategy/selflearning"
)

// Builtin returns the factories of all built-in strategies.
func Builtin() []strategy.Factory {
	return []strategy.Factory{
		asf.Factory(),
		bestpath.Factory(),
		bestroute.Factory(),
		failover.Factory(),
		loadbalance.Factory(),
		multicast.Factory(),
		nst.Factory(),
		random.Factory(),
		selflearning.Factory(),
	}
}
