//go:build linux

package web

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer/debian"
)

// OriginKind is the program of an origin server.
type OriginKind string

// The origin servers.
const (
	Nginx OriginKind = "nginx"
	Httpd OriginKind = "httpd"
)

// files are those of the Debian packages.
func (k OriginKind) files() []debian.File {
	if k == Httpd {
		// Without the package apache2, which would bring a service.
		return []debian.File{{Path: "/usr/sbin/apache2", Package: "apache2-bin"}}
	}
	return []debian.File{{Path: "/usr/sbin/nginx", Package: "nginx", Units: []string{"nginx"}}}
}

// Origin is an origin server that runs.
type Origin struct{ server }

// StartOrigin serves the files below root at a host, to be kept by caches for an
// hour, and installs the server if it is absent. It keeps its own files in dir,
// which it creates. Stop it with Kill. For httpd, which does not run as root,
// root must be readable for everybody.
func StartOrigin(ctx context.Context, log io.Writer, k OriginKind, host *emunet.Host, dir, root string) (*Origin, error) {
	if k != Nginx && k != Httpd {
		return nil, fmt.Errorf("origin server %q: want %s or %s", k, Nginx, Httpd)
	}
	files := k.files()
	if err := debian.Ensure(ctx, log, files...); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config, argv := nginxConfig(dir, root), []string{files[0].Path, "-e", filepath.Join(dir, "error.log"), "-c"}
	if k == Httpd {
		config, argv = httpdConfig(dir, root), []string{files[0].Path, "-d", dir, "-D", "FOREGROUND", "-f"}
		if err := os.WriteFile(filepath.Join(dir, "warm"), []byte(warmText), 0o644); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(dir, "server.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	o := &Origin{server{host: host, dir: dir, name: string(k)}}
	return o, o.start(ctx, WarmPath, nil, append(argv, file)...)
}

func nginxConfig(dir, root string) string {
	var temp strings.Builder
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temp, "\t%s_temp_path %q;\n", what, filepath.Join(dir, what))
	}
	return fmt.Sprintf(`daemon off;
worker_processes 1;
user root;
pid %q;
events { worker_connections 1024; }
http {
%s	access_log off;
	default_type application/octet-stream;
	sendfile on;
	keepalive_timeout 300s;
	keepalive_requests 1000000;
	server {
		listen %d;
		root %q;
		add_header Cache-Control %q;
		location = %s {
			add_header Cache-Control no-store;
			return 200 %q;
		}
	}
}
`, filepath.Join(dir, "pid"), temp.String(), Port, root, maxAge, WarmPath, warmText)
}

func httpdConfig(dir, root string) string {
	var modules strings.Builder
	for _, m := range []string{"mpm_event", "authz_core", "alias", "headers"} {
		fmt.Fprintf(&modules, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", m, m)
	}
	return fmt.Sprintf(`%sServerName %s
PidFile %q
DefaultRuntimeDir %q
ErrorLog %q
Listen %d
User nobody
Group nogroup
DocumentRoot %q
<Directory />
	Require all granted
</Directory>
Header set Cache-Control %q
Alias %s %q
<Location %s>
	Header set Cache-Control no-store
</Location>
`, modules.String(), Site, filepath.Join(dir, "pid"), dir, filepath.Join(dir, "error.log"), Port, root, maxAge, WarmPath, filepath.Join(dir, "warm"), WarmPath)
}
