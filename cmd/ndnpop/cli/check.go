package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCheckCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a configuration without starting it",
		Long: `Validate a configuration without starting it.

Everything that is wrong is listed with line and column. The exit code is 2
then, and 0 when "ndnpop run -c FILE" will accept the file; what has no effect
there is warned of.`,
		Example: "  ndnpop check /etc/ndnpop/ndnpop.toml",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := loadConfig(args[0], e.strategies)
			if err != nil {
				return err
			}
			for _, w := range c.Warnings() {
				w.File = args[0]
				fmt.Fprintf(e.stderr, "ndnpop: warning: %v\n", w)
			}
			_, err = fmt.Fprintf(e.stdout, "%s is valid: %s, %s, %s\n", args[0],
				count(len(c.Face), "face"), count(len(c.Route), "route"), count(len(c.Strategy), "strategy choice"))
			return err
		},
	}
}

func count[T int | uint64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
