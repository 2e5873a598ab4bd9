//go:build linux

package cdn

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"ndnpop/cdnbench/emunet"
)

// catSummary is what is read of cat's --stats.
type catSummary struct {
	Elapsed float64 `json:"elapsed_s"`
	TTFB    float64 `json:"ttfb_s"`
	Again   int64   `json:"retransmissions"`
}

// seconds turns the seconds of a summary or trace into a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Fetch implements Arm: cat at the client, its output read and checked as it
// comes.
func (a *ndnArm) Fetch(ctx context.Context, f Fetch) (r Fetched, err error) {
	stats, trace := filepath.Join(a.dir, "stats.json"), filepath.Join(a.dir, "trace.jsonl")
	args := []string{"cat", ndnPrefix + "/" + f.Object.Name, "-p", a.c.pipeline, "--stats", stats, "--trace", trace, "-q", "--progress", "never"}
	if a.c.initCwnd > 0 {
		args = append(args, "--init-cwnd", fmt.Sprint(a.c.initCwnd))
	}
	if a.c.reliable {
		args = append(args, "--hop-by-hop", "--max-cwnd", fmt.Sprint(a.t.window()))
	}
	want, end := f.Object.SHA256, f.Object.Size
	if f.Offset > 0 || f.Length > 0 {
		if f.Length > 0 {
			end = f.Offset + f.Length
		}
		args = append(args, "--range", fmt.Sprintf("%d-%d", f.Offset, end-1))
		if want, err = rangeSHA256(f.Object.Path(a.t), f.Offset, end-f.Offset); err != nil {
			return r, err
		}
	}
	c := a.command(Client, args...)
	log, err := os.Create(a.log(Client, "cat"))
	if err != nil {
		return r, err
	}
	defer log.Close()
	c.Stderr = log
	for _, old := range []string{stats, trace} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return r, err
		}
	}
	ended, arrived, err := output(ctx, c, f.Progress)
	if err != nil {
		return r, err
	}
	r.Points, r.Bytes, r.Elapsed = arrived.points, arrived.bytes, time.Since(arrived.begin)
	switch {
	case ctx.Err() != nil:
		// It was killed: its logs end anywhere.
		r.Err = fmt.Errorf("cat: not complete after %v: %w", r.Elapsed.Round(time.Millisecond), ctx.Err())
		return r, nil
	case ended != nil:
		r.Err = fmt.Errorf("cat: %w: %s", ended, lastLine(a.log(Client, "cat")))
	case arrived.sum() != want:
		r.Err = errors.New("cat: the bytes that arrived are not those of the object")
	}
	b, err := os.ReadFile(stats)
	if err != nil {
		return r, errors.Join(r.Err, err)
	}
	var s catSummary
	if err := json.Unmarshal(b, &s); err != nil {
		return r, fmt.Errorf("the summary of cat: %w", err)
	}
	r.First, r.Elapsed, r.Again = seconds(s.TTFB), seconds(s.Elapsed), s.Again
	if len(r.Points) > 0 {
		// What the program needed to start is not the network's doing.
		started := r.Points[0].At - r.First
		for i := range r.Points {
			r.Points[i].At -= started
		}
	}
	return r, a.readTrace(trace, &r)
}

// output runs a program to its end, or that of the context, and reads what it
// writes. ended says how it ended.
func output(ctx context.Context, c *emunet.Cmd, progress func(Point)) (ended error, arrived *arrivals, err error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	arrived = newArrivals(progress)
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() { done <- arrived.read(out) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		_ = c.Process.Kill() // it may have ended
		err = <-done
	}
	return c.Wait(), arrived, err
}

// readTrace takes from cat's trace when Data arrived, in order or not, and
// which arrived twice.
func (a *ndnArm) readTrace(path string, r *Fetched) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	asked, seen := map[uint64]bool{}, map[uint64]bool{}
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		var e struct {
			T       float64
			Kind    string
			Segment *uint64
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("the trace of cat: %w", err)
		}
		switch {
		case e.Kind == "send" && e.Segment != nil:
			if asked[*e.Segment] {
				r.AgainAt = append(r.AgainAt, seconds(e.T))
			}
			asked[*e.Segment] = true
		case e.Kind == "data" && e.Segment != nil:
			r.Packets = append(r.Packets, seconds(e.T))
			if seen[*e.Segment] {
				r.Twice += ndnSegment
			}
			seen[*e.Segment] = true
		}
	}
}

func rangeSHA256(path string, offset, length int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, io.NewSectionReader(f, offset, length))
	return hex.EncodeToString(h.Sum(nil)), err
}

// arrivals notes when how much of a program's output came.
type arrivals struct {
	begin    time.Time
	points   []Point
	bytes    int64
	hash     hash.Hash
	progress func(Point)
}

// Between two points there is at least this much time, so that their number is
// bounded.
const pointSpacing = time.Millisecond

func newArrivals(progress func(Point)) *arrivals {
	return &arrivals{begin: time.Now(), hash: sha256.New(), progress: progress}
}

func (a *arrivals) sum() string { return hex.EncodeToString(a.hash.Sum(nil)) }

// read reads to the end.
func (a *arrivals) read(r io.Reader) error {
	b := make([]byte, 64<<10)
	for {
		n, err := r.Read(b)
		if n > 0 {
			a.hash.Write(b[:n])
			a.bytes += int64(n)
			p := Point{time.Since(a.begin), a.bytes}
			if k := len(a.points); k > 1 && p.At-a.points[k-2].At < pointSpacing {
				a.points[k-1] = p
			} else {
				a.points = append(a.points, p)
			}
			if a.progress != nil {
				a.progress(p)
			}
		}
		if err == io.EOF || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
