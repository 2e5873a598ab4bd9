// Package cdn holds the experiments that set ndnpop beside the software that a
// content delivery network runs: the same objects over the same emulated
// links, each side with real processes.
//
// An experiment knows arms only by the interface Arm; what an arm starts at the
// nodes of a Topology is its own affair.
package cdn
