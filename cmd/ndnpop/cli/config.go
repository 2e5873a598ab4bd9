package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/spf13/cobra"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/cmd/ndnpop/daemon"
	"ndnpop/strategy"
)

func newConfigCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the annotated sample configuration",
		Example: `  ndnpop config > ndnpop.toml
  ndnpop check ndnpop.toml
  ndnpop run -c ndnpop.toml`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return config.WriteSample(e.stdout, defaultConfig())
		},
	}
}

func defaultConfig() *config.Config {
	return config.Default(config.SystemUnixPath(runtime.GOOS))
}

// loadConfig reads a configuration file, or returns the defaults when path is
// empty. What is wrong with it exits with exitUsage.
func loadConfig(path string, set *strategy.Set) (*config.Config, error) {
	c := defaultConfig()
	if path != "" {
		var err error
		c, err = config.Load(path, c, daemon.Known(set))
		var wrong config.Errors
		switch {
		case errors.As(err, &wrong):
			return nil, withCode(exitUsage, wrongConfig(path, wrong))
		case errors.Is(err, fs.ErrNotExist):
			return nil, withCode(exitUsage, fmt.Errorf("there is no file %s; \"ndnpop config > %s\" makes one", path, path))
		case err != nil:
			return nil, withCode(exitUsage, err)
		}
	}
	if err := daemon.CheckFiles(c); err != nil {
		var wrong *config.Error
		if errors.As(err, &wrong) {
			wrong.File = path
		}
		return nil, withCode(exitUsage, err)
	}
	return c, nil
}

// wrongConfig puts a line before the list of errors.
func wrongConfig(path string, wrong config.Errors) error {
	what := "1 error"
	if len(wrong) > 1 {
		what = fmt.Sprintf("%d errors", len(wrong))
	}
	return fmt.Errorf("%s in %s:\n%w", what, path, wrong)
}
