// Package cdnbench holds what the experiments have in common: what a scenario
// is, what a run reports, and how results are written. The scenarios are in
// its subpackages; the programs that ndnpop is set beside are in peer.
package cdnbench
