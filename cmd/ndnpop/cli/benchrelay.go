package cli

import (
	"github.com/spf13/cobra"

	"ndnpop/cdnbench/dataplane"
)

// newBenchRelayCmd is what dataplane measures forwarders against, as a process
// of its own.
func newBenchRelayCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "relay LOCAL REMOTE LOCAL REMOTE",
		Short:   "Pass datagrams between two UDP peers",
		Example: "  ndnpop bench relay 127.0.0.1:7001 127.0.0.1:7000 127.0.0.1:7002 127.0.0.1:7003",
		Hidden:  true,
		Args:    usageArgs(cobra.ExactArgs(4)),
		RunE: func(c *cobra.Command, a []string) error {
			return dataplane.Relay(c.Context(), [2][2]string{{a[0], a[1]}, {a[2], a[3]}})
		},
	}
}
