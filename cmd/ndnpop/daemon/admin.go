package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"ndnpop/cmd/ndnpop/config"
	"ndnpop/face/crowd"
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
	adminConns  = 64
	adminHeader = 5 * time.Second
	adminIdle   = 2 * time.Minute
	// For the whole request, and for the answer from then on. A body that is
	// announced is waited for, though nobody wants it.
	adminRead  = 20 * time.Second
	adminWrite = 20 * time.Second
)

// httpLog makes what net/http has to say a line of the log.
type httpLog struct{ log *zerolog.Logger }

// Write implements io.Writer.
func (l httpLog) Write(b []byte) (int, error) {
	s := strings.TrimSpace(string(b))
	// The listener has said it, once.
	if !strings.HasPrefix(s, "http: Accept error") {
		l.log.Warn().Str("reason", s).Msg("admin server")
	}
	return len(b), nil
}

// answer is an HTTP response in memory.
type answer struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// oneByOne has h make one answer at a time, in memory: so many who ask at once
// take one processor, and who reads slowly keeps nobody waiting.
func oneByOne(h http.Handler) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{code: http.StatusOK, header: w.Header()}
		select {
		case turn <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		func() {
			defer func() { <-turn }()
			h.ServeHTTP(a, r)
		}()
		w.WriteHeader(a.code)
		_, _ = w.Write(a.body.Bytes())
	})
}

// patient gives h the seconds that its query asks for, beside the read time-out:
// the server watches connections with that while it answers. The deadline for
// writing h moves by itself.
func patient(h http.HandlerFunc, read time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := strconv.ParseFloat(r.URL.Query().Get("seconds"), 64)
		if err != nil || s <= 0 {
			s = pprofSeconds
		}
		s = min(s, float64(time.Hour/time.Second))
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(read + time.Duration(s*float64(time.Second))))
		h(w, r)
	}
}

// pprofSeconds is how long the profiler works when it is not told.
const pprofSeconds = 30

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
	mux.Handle("GET /metrics", oneByOne(promhttp.HandlerFor(reg, promhttp.HandlerOpts{})))
	if c.Pprof {
		mux.HandleFunc("/debug/pprof/", patient(pprof.Index, adminRead))
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", patient(pprof.Profile, adminRead))
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", patient(pprof.Trace, adminRead))
	}
	clients := crowd.New(l, adminConns)
	clients.Failed = d.starved("tcp://" + a.addr)
	a.srv = &http.Server{
		Handler: mux, ReadHeaderTimeout: adminHeader, ReadTimeout: adminRead, IdleTimeout: adminIdle, WriteTimeout: adminWrite,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(httpLog{&d.strangers}, "", 0), ConnState: clients.Changed,
	}
	a.done.Go(func() {
		if err := a.srv.Serve(clients); !errors.Is(err, http.ErrServerClosed) {
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
