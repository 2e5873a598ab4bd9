package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCmd(*env) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Writes a manual page for each command into DIR, which is made if it does not
exist: ndnpop.1, ndnpop-cat.1 and so on.`,
		Example: "  ndnpop man ~/.local/share/man/man1 && man ndnpop-cat",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Source: "ndnpop " + version, Manual: "ndnpop",
			}, args[0])
		},
	}
}
