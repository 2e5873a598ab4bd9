//go:build linux

package web

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// texts are the server's files by name. Its tool traffic_layout would write a
// runroot.yaml with the paths of the system.
func (c *CacheConfig) texts() map[string]string {
	return map[string]string{
		"runroot.yaml":       c.runroot(),
		"etc/records.config": c.records(),
		"etc/storage.config": fmt.Sprintf("%s %d\n", filepath.Join(c.Dir, "cache"), c.Bytes),
		"etc/parent.config":  c.parents(),
		"etc/remap.config":   c.remap(),
		"etc/plugin.config":  "stats_over_http.so " + statsPath + "\n",
		"etc/ip_allow.yaml":  "ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: allow\n    methods: ALL\n",
		"etc/logging.yaml":   "logging:\n",
	}
}

func (c *CacheConfig) runroot() string {
	var b strings.Builder
	for _, d := range [][2]string{
		{"prefix", c.Dir}, {"exec_prefix", "/usr"}, {"bindir", "/usr/bin"}, {"sbindir", "/usr/sbin"},
		{"libdir", filepath.Dir(atsModules)}, {"libexecdir", atsModules}, {"includedir", "/usr/include"}, {"mandir", "/usr/share/man"},
		{"sysconfdir", filepath.Join(c.Dir, "etc")}, {"datadir", c.Dir}, {"localstatedir", c.Dir},
		{"runtimedir", filepath.Join(c.Dir, "run")}, {"logdir", filepath.Join(c.Dir, "log")}, {"cachedir", filepath.Join(c.Dir, "cache")},
	} {
		fmt.Fprintf(&b, "%s: %s\n", d[0], d[1])
	}
	return b.String()
}

// connectSeconds is how long a tuned cache waits for a parent to accept a
// connection, several of the round trips there.
const connectSeconds = 1

// records are the parameters. Names are those of the server's records.config,
// without "proxy.config.".
func (c *CacheConfig) records() string {
	var b strings.Builder
	set := func(name string, value any) {
		kind := "INT"
		if _, ok := value.(string); ok {
			kind = "STRING"
		}
		fmt.Fprintf(&b, "CONFIG proxy.config.%s %s %v\n", name, kind, value)
	}
	set("http.server_ports", fmt.Sprint(Port))
	set("admin.user_id", "#-1")        // stay who we are
	set("crash_log_helper", "NULL")    // no second process
	set("log.logging_enabled", 0)      // no access log
	set("url_remap.remap_required", 1) // nothing but the site
	set("net.connections_throttle", 1000)
	// Its own account of what it holds lags by no more than this.
	set("cache.dir.sync_frequency", int(syncEvery.Seconds()))
	set("raw_stat_sync_interval_ms", syncEvery.Milliseconds()/2)
	// No name server is in reach, and parents have addresses.
	set("http.no_dns_just_forward_to_parent", 1)
	set("http.uncacheable_requests_bypass_parent", 0)
	if !c.Tuned {
		return b.String()
	}
	silence := int(ParentSilence.Seconds())
	set("http.server_session_sharing.pool", "global")
	// One fill for all who ask meanwhile.
	set("cache.enable_read_while_writer", 1)
	set("http.cache.max_open_read_retries", 5)
	set("http.cache.open_read_retry_time", 100)
	set("http.background_fill_active_timeout", 0)
	set("cache.max_doc_size", 0)
	// The default keeps objects over 4 MB out of memory.
	set("cache.ram_cache.size", 256<<20)
	set("cache.ram_cache_cutoff", 200<<20)
	// Turn away from a dead or silent parent soon, and try it again soon.
	set("http.transaction_no_activity_timeout_out", silence)
	set("http.connect_attempts_timeout", connectSeconds)
	set("http.parent_proxy.connect_attempts_timeout", connectSeconds)
	set("http.parent_proxy.per_parent_connect_attempts", 1)
	set("http.parent_proxy.total_connect_attempts", 2*max(1, len(c.Parents)))
	set("http.parent_proxy.fail_threshold", 1)
	set("http.parent_proxy.retry_time", 10)
	set("http.parent_proxy.enable_parent_timeout_markdowns", 1)
	set("http.parent_proxy.mark_down_hostdb", 1)
	return b.String()
}

func (c *CacheConfig) parents() string {
	var list []string
	for _, p := range c.Parents {
		list = append(list, fmt.Sprintf("%s:%d", p, Port))
	}
	order, kind := "false", ""
	if c.RoundRobin {
		order = "strict"
	}
	if c.Origins {
		kind = " parent_is_proxy=false"
	}
	return fmt.Sprintf("dest_domain=%s parent=\"%s\" round_robin=%s go_direct=false%s\n", Site, strings.Join(list, ";"), order, kind)
}

func (c *CacheConfig) remap() string {
	plugins := ""
	if c.Block > 0 {
		plugins += fmt.Sprintf(" @plugin=slice.so @pparam=--blockbytes=%d @pparam=--prefetch-count=4", c.Block)
	}
	if c.Block > 0 || c.Ranges {
		plugins += " @plugin=cache_range_requests.so"
	}
	site := "http://" + Site + "/"
	return fmt.Sprintf("map %s %s%s\n", site, site, plugins)
}

// count says how often text stands in a file, 0 if it cannot be read.
func count(file, text string) int {
	b, _ := os.ReadFile(file)
	return bytes.Count(b, []byte(text))
}
