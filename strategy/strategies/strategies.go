// Package strategies lists the strategies that come with ndnpop.
package strategies

import (
	"ndnpop/strategy"
	"ndnpop/strategy/bestpath"
	"ndnpop/strategy/bestroute"
	"ndnpop/strategy/failover"
	"ndnpop/strategy/multicast"
	"ndnpop/strategy/nst"
)

// Builtin returns the factories of all built-in strategies.
func Builtin() []strategy.Factory {
	return []strategy.Factory{bestpath.Factory(), bestroute.Factory(), failover.Factory(), multicast.Factory(), nst.Factory()}
}
