//go:build linux

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer"
	"ndnpop/cdnbench/peer/debian"
)

// CacheConfig describes a cache, which is an Apache Traffic Server. Without
// Tuned it has the server's defaults.
type CacheConfig struct {
	Host *emunet.Host
	Dir  string // for its files and the content; Start creates it
	// Bytes is the capacity, at least 128 MB.
	Bytes int64
	// Parents are asked for what the cache does not hold, in the order of
	// preference.
	Parents []netip.Addr
	// Origins says that the parents are origin servers, not proxies.
	Origins bool
	// RoundRobin asks the parents in turn instead of the first that works.
	RoundRobin bool
	// Managed runs the server under its manager, for SetParents. It needs three
	// seconds to start then.
	Managed bool
	// Tuned shares connections to parents among threads, lets one reader follow
	// another's fill, keeps large objects in memory, and turns away from a parent
	// that has been silent for ParentSilence.
	Tuned bool
	// Block, if not 0, cuts what clients ask for into ranges of so many bytes,
	// which are fetched and kept one by one (slice.so).
	Block int64
	// Ranges keeps what is asked for in ranges, one by one
	// (cache_range_requests.so): for the parents of a cache with a Block.
	Ranges bool
}

// ParentSilence is how long a tuned cache waits for a parent.
const ParentSilence = 3 * time.Second

const (
	atsServer  = "/usr/bin/traffic_server"
	atsManager = "/usr/bin/traffic_manager"
	atsControl = "/usr/bin/traffic_ctl"
	atsModules = "/usr/lib/trafficserver/modules"
	statsPath  = "_stats"
)

func (c *CacheConfig) files() []debian.File {
	f := []debian.File{{Path: atsServer, Package: "trafficserver", Units: []string{"trafficserver"}}}
	if c.Block > 0 {
		f = append(f, debian.File{Path: atsModules + "/slice.so", Package: "trafficserver-experimental-plugins"})
	}
	return f
}

// Cache is an Apache Traffic Server that runs.
type Cache struct {
	server
	config CacheConfig
	log    io.Writer
}

// launches is how often a cache is started that does not come up: now and then
// the server crashes as it starts, and whoever operates one starts it again.
const launches = 3

// StartCache starts a cache that holds nothing, and installs the server if it is
// absent. A parent must answer already: the way to it is tried and left open.
// Stop it with Kill.
func StartCache(ctx context.Context, log io.Writer, config CacheConfig) (*Cache, error) {
	if err := debian.Ensure(ctx, log, config.files()...); err != nil {
		return nil, err
	}
	for _, d := range []string{"etc", "run", "log", "cache"} {
		if err := os.MkdirAll(filepath.Join(config.Dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for name, text := range config.texts() {
		if err := os.WriteFile(filepath.Join(config.Dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	c := &Cache{server{host: config.Host, dir: config.Dir, name: "traffic_server"}, config, log}
	return c, c.launch(ctx)
}

func (c *Cache) launch(ctx context.Context) error {
	program := atsServer
	if c.config.Managed {
		program = atsManager
	}
	for n := 1; ; n++ {
		err := c.start(ctx, "/"+statsPath, c.env(), program)
		if err == nil {
			if err = c.Warm(ctx); err == nil {
				return nil
			}
			err = errors.Join(err, c.Kill())
		}
		if n == launches || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(c.log, "%v; %s is started again\n", err, c.name)
	}
}

// Warm opens the connections of the cache to a parent and, through it, to the
// origin. The first requests of a server to another take 40 ms more than later
// ones.
func (c *Cache) Warm(ctx context.Context) error {
	last, left := errors.New("no answer"), 4
	err := peer.Until(ctx, readyLimit, "the way through the cache at "+c.host.Name(), func() bool {
		for left > 0 && !c.proc.Ended() {
			var code int
			if code, _, last = c.get(ctx, WarmPath); last == nil && code != http.StatusOK {
				last = fmt.Errorf("it answers with status %d", code)
			}
			if last != nil {
				return false
			}
			left--
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return c.alive(ctx)
}

func (c *Cache) env() []string { return []string{"TS_RUNROOT=" + c.dir} }

// Clear empties the cache: the server is killed, its content removed, and
// started again.
func (c *Cache) Clear(ctx context.Context) error {
	if err := c.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(c.dir, "cache", "cache.db")); err != nil {
		return err
	}
	return c.launch(ctx)
}

// Metric reads one of the server's metrics, such as
// "proxy.process.cache.bytes_used".
func (c *Cache) Metric(ctx context.Context, name string) (int64, error) {
	code, body, err := c.get(ctx, "/"+statsPath)
	if err != nil {
		return 0, err
	}
	var m struct{ Global map[string]string }
	if err := json.Unmarshal(body, &m); err != nil {
		return 0, fmt.Errorf("metrics of %s (status %d): %w", c.host.Name(), code, err)
	}
	v, ok := m.Global[name]
	if !ok {
		return 0, fmt.Errorf("traffic_server has no metric %s", name)
	}
	return strconv.ParseInt(v, 10, 64)
}

// syncEvery is how often the server writes out what it has gathered to write,
// and its directory.
const syncEvery = time.Second

// Held is how many bytes the cache has on its disk, headers included, once it
// has written out what it gathered.
func (c *Cache) Held(ctx context.Context) (held int64, err error) {
	since := time.Now()
	var failed error
	err = peer.Until(ctx, readyLimit, "the cache at "+c.host.Name()+" to be written out", func() bool {
		now, err := c.Metric(ctx, "proxy.process.cache.bytes_used")
		if err != nil {
			failed = err
			return true
		}
		if now != held {
			held, since = now, time.Now()
		}
		return time.Since(since) > 5*syncEvery/2
	})
	return held, errors.Join(err, failed)
}

// SetParents makes new requests go to these parents, while others go on. It
// needs a Managed cache.
func (c *Cache) SetParents(ctx context.Context, parents []netip.Addr) error {
	if !c.config.Managed {
		return errors.New("the parents of a cache without a manager cannot be changed")
	}
	c.config.Parents = slices.Clone(parents)
	if err := os.WriteFile(filepath.Join(c.dir, "etc", "parent.config"), []byte(c.config.parents()), 0o644); err != nil {
		return err
	}
	const loaded = "parent.config finished loading"
	log := filepath.Join(c.dir, "log", "diags.log")
	before := count(log, loaded)
	cmd := c.host.CommandContext(ctx, atsControl, "config", "reload")
	cmd.Env = append(cmd.Environ(), c.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("traffic_ctl config reload: %w: %s", err, out)
	}
	return peer.Until(ctx, 20*time.Second, "the new parents of "+c.host.Name(), func() bool { return count(log, loaded) > before })
}
