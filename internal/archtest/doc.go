// Package archtest has only tests: they hold the sources to the rules of the
// design. Who may import whom, what the cores may not use, what every package
// and exported identifier says about itself.
package archtest
