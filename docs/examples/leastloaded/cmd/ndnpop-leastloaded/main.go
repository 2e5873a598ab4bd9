// Command ndnpop-leastloaded is ndnpop with one more strategy.
package main

import (
	"os"

	"example.com/leastloaded"
	"ndnpop/cmd/ndnpop/cli"
	"ndnpop/strategy"
)

func main() {
	o := cli.Options{Strategies: []strategy.Factory{leastloaded.Factory()}}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, o))
}
