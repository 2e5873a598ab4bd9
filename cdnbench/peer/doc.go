// Package peer finds, builds and watches the programs that an experiment runs:
// ndnpop itself and what it is set beside.
package peer
