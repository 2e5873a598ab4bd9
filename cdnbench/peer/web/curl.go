//go:build linux

package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/textproto"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"ndnpop/cdnbench/emunet"
	"ndnpop/cdnbench/peer/debian"
)

// Request is what a client asks for.
type Request struct {
	Host *emunet.Host
	To   netip.Addr // of the server
	Path string     // with its slash
	// The bytes [Offset, End); an End of 0 is that of the content. All of it is
	// asked for without a range if both are 0.
	Offset, End int64
	// Kept asks for WarmPath first, on the same connection.
	Kept bool
	// Stall ends a transfer that has brought nothing for so long, in whole
	// seconds; 0 leaves that to the kernel.
	Stall time.Duration
}

// Reply is what became of a Request.
type Reply struct {
	Status int // of HTTP, 0 without a header
	// Start is where in the content the reply's body starts: 0 when a server
	// that was asked for a range sends all.
	Start int64
	// By curl's clock, from its first packet: until the reply's first byte
	// arrived, and until the end.
	First, Total time.Duration
	// Err is why the reply is not complete, nil if it is.
	Err error
}

const curlPath = "/usr/bin/curl"

// Ensure installs what Get, StartOrigin and StartCache need, if it is absent, with
// slices also what caches need that keep blocks.
func Ensure(ctx context.Context, log io.Writer, origin OriginKind, slices bool) error {
	c := CacheConfig{}
	if slices {
		c.Block = 1
	}
	files := append([]debian.File{{Path: curlPath, Package: "curl"}}, origin.files()...)
	return debian.Ensure(ctx, log, append(files, c.files()...)...)
}

// Get runs curl. Once the reply's header has arrived it calls body, which reads
// what follows to its end as it comes; it may call no method of the Host. The
// error is body's or a failure to run curl.
func Get(ctx context.Context, q Request, body func(r *Reply, from io.Reader) error) (r Reply, err error) {
	c := q.Host.CommandContext(ctx, curlPath, q.args()...)
	var report bytes.Buffer
	c.Stderr = &report
	out, err := c.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := c.Start(); err != nil {
		return r, err
	}
	in := bufio.NewReaderSize(out, 64<<10)
	if err = r.header(in); err == nil {
		err = body(&r, in)
	} else if errors.Is(err, io.EOF) {
		err = nil // curl's report says why
	}
	if err != nil {
		_ = c.Process.Kill() // it may have ended
	}
	ended := c.Wait()
	if err != nil {
		return r, err
	}
	return r, r.report(report.Bytes(), ended)
}

// args are curl's arguments. It reads no configuration file.
func (q *Request) args() []string {
	url := "http://" + Site
	common := []string{"--silent", "--no-buffer", "--noproxy", "*",
		"--resolve", fmt.Sprintf("%s:%d:%s", Site, Port, q.To), "--connect-timeout", "10"}
	args := []string{"--disable"}
	if q.Kept {
		args = append(append(args, common...), "--output", "/dev/null", url+WarmPath, "--next")
	}
	args = append(append(args, common...), "--include", "--output", "-", "--write-out", "%{stderr}%{json}")
	if q.Stall > 0 {
		args = append(args, "--speed-limit", "1", "--speed-time", fmt.Sprint(int(q.Stall.Seconds())))
	}
	switch {
	case q.End > 0:
		args = append(args, "--range", fmt.Sprintf("%d-%d", q.Offset, q.End-1))
	case q.Offset > 0:
		args = append(args, "--range", fmt.Sprintf("%d-", q.Offset))
	}
	return append(args, url+q.Path)
}

// header reads the reply's header.
func (r *Reply) header(in *bufio.Reader) error {
	t := textproto.NewReader(in)
	line, err := t.ReadLine()
	if err != nil {
		return err
	}
	_, status, _ := strings.Cut(line, " ")
	status, _, _ = strings.Cut(status, " ")
	if r.Status, err = strconv.Atoi(status); err != nil {
		return fmt.Errorf("curl: %q is no status line of HTTP", line)
	}
	h, err := t.ReadMIMEHeader()
	if err != nil {
		return err
	}
	if r.Status == http.StatusPartialContent {
		// bytes 100-199/1000
		from, _, _ := strings.Cut(strings.TrimPrefix(h.Get("Content-Range"), "bytes "), "-")
		if r.Start, err = strconv.ParseInt(from, 10, 64); err != nil {
			return fmt.Errorf("content-range %q: %w", h.Get("Content-Range"), err)
		}
	}
	return nil
}

// report takes from curl's own account how the transfer went.
func (r *Reply) report(text []byte, ended error) error {
	var exit *exec.ExitError
	if ended != nil && !errors.As(ended, &exit) {
		return ended
	}
	var s struct {
		First   float64 `json:"time_starttransfer"`
		Total   float64 `json:"time_total"`
		Message string  `json:"errormsg"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		if ended != nil { // it was killed
			r.Err = fmt.Errorf("curl: %w", ended)
			return nil
		}
		return fmt.Errorf("curl's report: %w: %s", err, text)
	}
	r.First, r.Total = time.Duration(s.First*float64(time.Second)), time.Duration(s.Total*float64(time.Second))
	switch {
	case ended != nil:
		r.Err = fmt.Errorf("curl: %w: %s", ended, s.Message)
	case r.Status != http.StatusOK && r.Status != http.StatusPartialContent:
		r.Err = fmt.Errorf("curl: the server answered with status %d", r.Status)
	}
	return nil
}
