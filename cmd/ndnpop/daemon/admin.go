package daemon

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"

	"ndnpop/cmd/ndnpop/config"
)

// adminServer is the operator's HTTP server.
type adminServer struct {
	addr  string
	ready atomic.Bool
	srv   *http.Server
	done  sync.WaitGroup
}

// What a client of the admin server may take. Who connects to it and does nothing
// must not use up the descriptors that faces need.
const (
	adminConns = 64
	adminIdle  = 2 * time.Minute
	adminWrite = 2 * time.Minute // a profile takes the seconds that were asked for
	// A body that is announced is waited for, though nobody wants it. The server
	// watches connections with the same deadline while it answers.
	adminRead = adminWrite
)

// httpLog makes what net/http has to say a line of the log.
type httpLog struct{ log *zerolog.Logger }

// Write implements io.Writer.
func (l httpLog) Write(b []byte) (int, error) {
	l.log.Warn().Str("reason", strings.TrimSpace(string(b))).Msg("admin server")
	return len(b), nil
}

func startAdmin(d *Daemon, c config.Admin) (*adminServer, error) {
	network := "tcp"
	if ap, err := netip.ParseAddrPort(c.Listen); err == nil && ap.Addr().Is4() {
		network = "tcp4" // 0.0.0.0 does not mean [::] as well, which no filter of IPv4 keeps
	}
	l, err := net.Listen(network, c.Listen)
	if err != nil {
		return nil, inUse("TCP", c.Listen, "admin.listen")(err)
	}
	a := &adminServer{addr: l.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		// Takes every shard's lock: one that is stuck lets the request time out.
		d.fwd.Loads()
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	reg := prometheus.NewRegistry()
	reg.MustRegister(newMetrics(d), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	if c.Pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	a.srv = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: adminRead, IdleTimeout: adminIdle, WriteTimeout: adminWrite,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(httpLog{&d.strangers}, "", 0),
	}
	a.done.Go(func() {
		if err := a.srv.Serve(netutil.LimitListener(l, adminConns)); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error().Err(err).Msg("admin server failed")
		}
	})
	return a, nil
}

func (a *adminServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if a.srv.Shutdown(ctx) != nil {
		_ = a.srv.Close()
	}
	a.done.Wait()
}
