package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// NdndVersion is the release of ndnd that results name.
const NdndVersion = "v1.5.3"

const ndndModule = "module ndndtool\n\ngo 1.26\n\nrequire github.com/named-data/ndnd " + NdndVersion + "\n"

// Ndnd returns the path of ndnd's program: the one that NDND names, or one
// built from its module into cache, a directory that is made if need be. It is a module of its own, so its
// dependencies do not meet ours.
func Ndnd(ctx context.Context, cache string) (string, error) {
	if p := os.Getenv("NDND"); p != "" {
		return p, nil
	}
	const where = "set XDG_CACHE_HOME to where it may be kept, or NDND to the path of a built one"
	if cache == "" {
		return "", fmt.Errorf("there is no place for a built ndnd: %s", where)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("there is no place for a built ndnd (%w): %s", err, where)
	}
	bin := filepath.Join(cache, "ndnd-"+NdndVersion)
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	dir, err := os.MkdirTemp(cache, "build-ndnd-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(ndndModule), 0o644); err != nil {
		return "", err
	}
	tmp := filepath.Join(dir, "ndnd")
	c := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", tmp, "github.com/named-data/ndnd/cmd/ndnd")
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building ndnd %s (set NDND to the path of a built one): %w\n%s", NdndVersion, err, out)
	}
	return bin, errors.Join(os.Rename(tmp, bin))
}
