// Command ndnpop is an NDN forwarder with its consumer, producer and tools.
package main

import (
	"os"

	"ndnpop/cmd/ndnpop/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.Options{})) }
