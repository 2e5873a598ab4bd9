package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ndnpop/consumer/cc"
)

// published puts content under a name, and returns the forwarder's flag.
func published(t *testing.T, name string, size int) (content []byte, transport string) {
	t.Helper()
	transport = forwarder(t)
	path := filepath.Join(t.TempDir(), "published")
	content = randomFile(t, path, size)
	j := begin(t, nil, "put", name, path, transport)
	j.says(&j.err, "fetch it with")
	return content, transport
}

// cat runs the command to its end.
func cat(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	j := begin(t, nil, append([]string{"cat"}, args...)...)
	code = j.wait()
	return j.out.String(), j.err.String(), code
}

func TestCatPipelinesAndStats(t *testing.T) {
	content, transport := published(t, "/cat/f", 3_000_000)
	sum := sha256.Sum256(content)
	fields := []string{
		"name", "version", "bytes", "segments", "elapsed_s", "ttfb_s", "goodput_bps", "pipeline", "rtt_min_s",
		"rtt_avg_s", "rtt_max_s", "interests", "retransmissions", "timeouts", "nacks", "congestion_marks",
		"window_decreases", "replica_switches", "max_gap_s", "sha256", "verified", "complete",
	}
	for _, p := range pipelineNames(t) {
		stats := filepath.Join(t.TempDir(), "stats")
		out, msg, code := cat(t, "/cat/f", transport, "-p", p, "--stats", stats, "--sha256", hex.EncodeToString(sum[:]))
		if code != exitDone || out != string(content) {
			t.Errorf("%s: %d bytes, code %d, %s", p, len(out), code, msg)
			continue
		}
		b, err := os.ReadFile(stats)
		if err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if _, ok := s[f]; !ok {
				t.Errorf("%s: the summary lacks %s", p, f)
			}
		}
		if len(s) != len(fields) || s["pipeline"] != p || s["bytes"] != 3e6 || s["segments"] != 375.0 || s["complete"] != true ||
			s["verified"] != true || s["sha256"] != hex.EncodeToString(sum[:]) || s["name"] != "/cat/f" {
			t.Errorf("%s: summary %s", p, b)
		}
	}
}

func pipelineNames(t *testing.T) []string {
	t.Helper()
	_, msg, code := cat(t, "/x", "-p", "nonsense")
	_, list, ok := strings.Cut(msg, "choose one of ")
	if code != exitUsage || !ok {
		t.Fatalf("code %d, %s", code, msg)
	}
	list, _, _ = strings.Cut(list, ";")
	return strings.Split(list, ", ")
}

func TestCatToFile(t *testing.T) {
	content, transport := published(t, "/cat/f", 200_000)
	path := filepath.Join(t.TempDir(), "out")
	if out, msg, code := cat(t, "/cat/f", transport, "-o", path, "-v"); code != exitDone || out != "" ||
		!strings.Contains(msg, "200000 bytes") || !strings.Contains(msg, "verified") {
		t.Fatalf("code %d, %s%s", code, out, msg)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for r, want := range map[string][]byte{
		"0-0": content[:1], "7999-8000": content[7999:8001], "199990-": content[199990:], "-10": content[199990:],
	} {
		if out, msg, code := cat(t, "/cat/f", transport, "--range", r); code != exitDone || out != string(want) {
			t.Errorf("range %s: %d bytes, code %d, %s", r, len(out), code, msg)
		}
	}
	if out, _, code := cat(t, "/cat/f", transport, "--segments", "1-2"); code != exitDone || out != string(content[8000:24000]) {
		t.Errorf("segments: %d bytes, code %d", len(out), code)
	}
	if _, msg, code := cat(t, "/cat/f", transport, "--range", "200000-"); code != exitFailed || !strings.Contains(msg, "200000 bytes") {
		t.Errorf("a range beyond the end: code %d, %s", code, msg)
	}
	if _, msg, code := cat(t, "/cat/f", transport, "-o", path, "--resume"); code != exitFailed || !strings.Contains(msg, "nothing to resume") {
		t.Errorf("nothing to resume: code %d, %s", code, msg)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if _, msg, code := cat(t, "/cat/f", transport, "-o", wrong, "--sha256", strings.Repeat("00", 32)); code != exitVerify {
		t.Errorf("a wrong hash: code %d, %s", code, msg)
	}
	if left, _ := filepath.Glob(wrong + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCatThroughLink: the file that a link leads to is written, whether it exists
// or not, and the link stays.
func TestCatThroughLink(t *testing.T) {
	content, transport := published(t, "/cat/f", 20_000)
	dir := t.TempDir()
	for _, name := range []string{"data", "links"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	file, link, again := filepath.Join(dir, "data", "f"), filepath.Join(dir, "links", "l"), filepath.Join(dir, "again")
	// below leads to data/sub, so that what is beside that is in data.
	if err := os.Mkdir(filepath.Join(dir, "data", "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(dir, "links", "below")
	for at, to := range map[string]string{below: "../data/sub", link: "below/../f", again: link} {
		if err := os.Symlink(to, at); err != nil {
			t.Skip(err)
		}
	}
	for range 2 {
		if _, msg, code := cat(t, "/cat/f", transport, "-o", again); code != exitDone {
			t.Fatalf("code %d, %s", code, msg)
		}
		if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		for _, l := range []string{link, again} {
			if fi, err := os.Lstat(l); err != nil || fi.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s: %v, %v", l, fi, err)
			}
		}
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if _, msg, code := cat(t, "/cat/f", transport, "-o", loop); code != exitFailed || !strings.Contains(msg, "symbolic links") {
		t.Errorf("code %d, %s", code, msg)
	}
}

// A summary that cannot be written is known before hours of fetching.
func TestCatBadStats(t *testing.T) {
	_, transport := published(t, "/cat/f", 10_000)
	path := filepath.Join(t.TempDir(), "out")
	if _, msg, code := cat(t, "/cat/f", transport, "-o", path, "--stats", filepath.Join(path, "stats")); code != exitFailed {
		t.Errorf("code %d, %s", code, msg)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("it was fetched: %v", left)
	}
}

func TestCatInterruptedAndResumed(t *testing.T) {
	content, transport := published(t, "/cat/f", 3_000_000)
	path := filepath.Join(t.TempDir(), "out")
	j := begin(t, nil, "cat", "/cat/f", transport, "-o", path, "--max-rate", "8mbit")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if fi, err := os.Stat(path + ".part"); err == nil && fi.Size() > 100_000 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives")
		}
	}
	if code := j.end(errors.New("interrupt signal received")); code != exitInterrupted || !strings.Contains(j.err.String(), "--resume") {
		t.Fatalf("code %d, %s", code, j.err.String())
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the final name exists")
	}
	sum := sha256.Sum256(content)
	stats := filepath.Join(t.TempDir(), "stats")
	_, msg, code := cat(t, "/cat/f", transport, "-o", path, "--resume", "--sha256", hex.EncodeToString(sum[:]), "--stats", stats)
	if code != exitDone {
		t.Fatalf("code %d, %s", code, msg)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	var s catSummary
	b, _ := os.ReadFile(stats)
	if err := json.Unmarshal(b, &s); err != nil || s.Bytes > 2_900_000 {
		t.Errorf("fetched %d bytes again: %v", s.Bytes, err)
	}
}

// A part file of which a power failure kept the end, or something within, from
// the disk is gone on with where it is whole.
func TestCatResumesAfterPowerFailure(t *testing.T) {
	content, transport := published(t, "/cat/f", 3_000_000)
	path := filepath.Join(t.TempDir(), "out")
	j := begin(t, nil, "cat", "/cat/f", transport, "-o", path, "--max-rate", "8mbit")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if fi, err := os.Stat(path + ".part"); err == nil && fi.Size() > 1_000_000 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing arrives")
		}
	}
	j.end(errors.New("interrupt signal received"))
	part, err := os.ReadFile(path + ".part")
	if err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(path + ".part.journal")
	if err != nil {
		t.Fatal(err)
	}
	left := len(part) - 50_000
	hole := bytes.Clone(part)
	clear(hole[left : left+4096])
	sum := sha256.Sum256(content)
	for what, c := range map[string]struct {
		part, journal []byte
		kept          bool
	}{
		"short":         {part[:left], journal, true},
		"hole":          {hole, journal, true},
		"empty":         {nil, journal, false},
		"zeros":         {make([]byte, len(part)), journal, false},
		"empty journal": {part, nil, false},
	} {
		for file, b := range map[string][]byte{".part": c.part, ".part.journal": c.journal} {
			if err := os.WriteFile(path+file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(path)
		stats := filepath.Join(t.TempDir(), "stats")
		_, msg, code := cat(t, "/cat/f", transport, "-o", path, "--resume", "--sha256", hex.EncodeToString(sum[:]), "--stats", stats)
		if code != exitDone || !strings.Contains(msg, "fetched again") {
			t.Fatalf("%s: code %d, %s", what, code, msg)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, content) {
			t.Fatalf("%s: %d bytes, %v", what, len(b), err)
		}
		var s catSummary
		b, _ := os.ReadFile(stats)
		if err := json.Unmarshal(b, &s); err != nil || (s.Bytes < uint64(len(content))) != c.kept {
			t.Errorf("%s: fetched %d bytes again: %v", what, s.Bytes, err)
		}
	}
}

func TestCatFailures(t *testing.T) {
	_, transport := published(t, "/cat/f", 50_000)
	dir := t.TempDir()
	u, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := u.LocalAddr().String() // nobody listens there from now on
	u.Close()
	for _, c := range []struct {
		what string
		args []string
		code int
		says string
	}{
		{"no such content", []string{"/cat/f/other", transport}, exitNoContent, "/cat/f/other"},
		{"no route", []string{"/nobody/here", transport}, exitGaveUp, "no route"},
		{"no forwarder", []string{"/cat/f", "--transport", "unix://" + dir + "/none.sock"}, exitGaveUp, dir + "/none.sock"},
		{"no forwarder, datagrams", []string{"/cat/f", "--transport", "udp4://" + refused}, exitGaveUp, "no forwarder at udp4://" + refused},
		{"no forwarder, remedy", []string{"/cat/f", "--transport", "unix://" + dir + "/none.sock"}, exitGaveUp, "ndnpop run"},
		{"no URI", []string{"/cat/f", "--transport", "here"}, exitUsage, "unix:///"},
		{"no directory", []string{"/cat/f", transport, "-o", dir + "/a/b"}, exitFailed, dir + "/a/b"},
		{"a directory", []string{"/cat/f", transport, "-o", dir}, exitFailed, "directory"},
		{"no name", nil, exitUsage, "--help"},
		{"bad name", []string{"/%zz"}, exitUsage, "name"},
		{"empty name", []string{"/"}, exitUsage, "empty"},
		{"long name", []string{"/" + strings.Repeat("x", 8700)}, exitUsage, "no room"},
		{"deep name", []string{strings.Repeat("/x", 30)}, exitUsage, "at most 32"},
		{"bad flag", []string{"/x", "--nonsense"}, exitUsage, "--nonsense"},
		{"bad verify", []string{"/x", "--verify", "maybe"}, exitUsage, "none, digest"},
		{"bad progress", []string{"/x", "--progress", "maybe"}, exitUsage, "auto, always, never"},
		{"bad range", []string{"/x", "--range", "b-a"}, exitUsage, "--range"},
		{"huge range", []string{"/x", "--range", "0-99999999999999999999"}, exitUsage, "99999999999999999999 is too large"},
		{"two ranges", []string{"/x", "--range", "1-2", "--segments", "1-2"}, exitUsage, "exclude"},
		{"resume without file", []string{"/x", "--resume"}, exitUsage, "-o FILE"},
		{"one file twice", []string{"/x", "-o", dir + "/f", "--stats", dir + "/./f"}, exitUsage, "--stats and -o would both write"},
		{"the part file twice", []string{"/x", "-o", dir + "/f", "--trace", dir + "/f.part"}, exitUsage, dir + "/f.part"},
		{"one log twice", []string{"/x", "--trace", dir + "/f", "--log-rtt", dir + "/f"}, exitUsage, "--trace and --log-rtt"},
		{"bad hash", []string{"/x", "--sha256", "abc"}, exitUsage, "64"},
		{"bad rate", []string{"/x", "--max-rate", "fast"}, exitUsage, "mbit"},
		{"bad lifetime", []string{"/x", "-l", "0"}, exitUsage, "--lifetime"},
		{"bad retries", []string{"/x", "-r", "-2"}, exitUsage, "--retries"},
	} {
		out, msg, code := cat(t, c.args...)
		if code != c.code || !strings.Contains(msg, c.says) || out != "" {
			t.Errorf("%s: code %d, want %d; it said %q, without %q", c.what, code, c.code, msg, c.says)
		}
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCatNothingToResume: who got nothing is not told to go on with it.
func TestCatNothingToResume(t *testing.T) {
	transport := forwarder(t)
	out := filepath.Join(t.TempDir(), "out")
	// The forwarder's own face takes the Interests, and never answers.
	if j := begin(t, nil, "ctl", "route", "add", "/hole", "1", transport); j.wait() != exitDone {
		t.Fatal(j.err.String())
	}
	if _, msg, code := cat(t, "/hole/x", "-o", out, "-l", "10", "-r", "0", transport); code != exitGaveUp || strings.Contains(msg, "--resume") {
		t.Errorf("code %d, %s", code, msg)
	}
	j := begin(t, nil, "cat", "/hole/x", "-o", out, "-r", "-1", transport, "--trace", out+".trace")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(out + ".trace"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not begin")
		}
	}
	if code := j.end(errors.New("interrupt signal received")); code != exitInterrupted || strings.Contains(j.err.String(), "--resume") {
		t.Errorf("code %d, %s", code, j.err.String())
	}
}

func TestCatLogs(t *testing.T) {
	_, transport := published(t, "/cat/f", 500_000)
	dir := t.TempDir()
	if _, msg, code := cat(t, "/cat/f", transport, "--trace", dir+"/trace", "--log-cwnd", dir+"/cwnd", "--log-rtt", dir+"/rtt",
		"--progress", "always", "-o", dir+"/out"); code != exitDone || msg == "" {
		t.Fatalf("code %d, %s", code, msg)
	}
	b, err := os.ReadFile(dir + "/trace")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil || e["kind"] == nil || e["t"] == nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	for _, f := range []string{"cwnd", "rtt"} {
		if b, err := os.ReadFile(dir + "/" + f); err != nil || bytes.Count(b, []byte("\n")) < 10 {
			t.Errorf("%s: %d bytes, %v", f, len(b), err)
		}
	}
}

func TestCatWindows(t *testing.T) {
	for _, args := range [][]string{
		{"-s", "NaN"}, {"-s", "Inf"}, {"-s", "0.5"}, {"-s", "1e300"}, {"--init-cwnd", "NaN"}, {"--init-cwnd", "-1"}, {"--max-cwnd", "0.5"}, {"--max-cwnd", "NaN"}, {"--init-ssthresh", "Inf"},
	} {
		if _, msg, code := cat(t, append(args, "/cat/f")...); code != exitUsage || !strings.Contains(msg, args[1]) && !strings.Contains(msg, "+Inf") && !strings.Contains(msg, "e+300") {
			t.Errorf("%s: code %d, %s", args, code, msg)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{"": 0, "8": 1, "8bit": 1, "1kbit": 125, "100mbit": 12.5e6, "2.5Gbit": 312.5e6} {
		if v, err := parseRate("--pacing", s); err != nil || v != want {
			t.Errorf("%s: %v, %v", s, v, err)
		}
	}
	for _, s := range []string{"mbit", "-1mbit", "0", "NaN", "1e99", "5mb"} {
		if v, err := parseRate("--pacing", s); err == nil {
			t.Errorf("%s was taken as %v", s, v)
		}
	}
}

// TestOwnPipeline: a main program may bring congestion controls, but not under
// the name of one that there is.
func TestOwnPipeline(t *testing.T) {
	for name, says := range map[string]string{"half": "cubic, vegas", "reno": "reno"} {
		var out, msg strings.Builder
		o := Options{Pipelines: []cc.Factory{{Name: name, About: "half a window", New: cc.NewFixed}}}
		code := Main([]string{"cat", "/x", "-p", "nonsense"}, strings.NewReader(""), &out, &msg, o)
		if code != exitUsage || !strings.Contains(msg.String(), says) || strings.Contains(msg.String(), "half") != (name == "half") {
			t.Errorf("%s: code %d, %s", name, code, msg.String())
		}
	}
}

// TestCatComesBack: cat says that the forwarder went away and came back, and when
// it gives up, that this is why.
func TestCatComesBack(t *testing.T) {
	dir, err := os.MkdirTemp("", "ndnpop")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, published := filepath.Join(dir, "s"), filepath.Join(dir, "f")
	want := randomFile(t, published, 200_000)
	first := forwarderAt(t, socket)
	p := begin(t, nil, "put", "/cdn/f", published, first.transport)
	p.says(&p.err, "fetch it with")
	waits := begin(t, nil, "cat", "/cdn/f", first.transport, "--max-rate", "800kbit")
	gives := begin(t, nil, "cat", "/cdn/f", first.transport, "--max-rate", "800kbit", "-r", "0", "-o", filepath.Join(dir, "out"))
	waits.says(&waits.out, string(want[:1000]))
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if fi, err := os.Stat(filepath.Join(dir, "out.part")); err == nil && fi.Size() > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no content")
		}
	}
	first.end(errors.New("terminated signal received"))
	// The system adds that the connection was reset where something was still unread.
	waits.says(&waits.err, "ended (face: closed by the peer")
	waits.says(&waits.err, "); trying to come back\n")
	if code := gives.wait(); code != exitGaveUp || !strings.Contains(gives.err.String(), "ended (face: closed by the peer") ||
		!strings.Contains(gives.err.String(), "), and there is no other (") ||
		!strings.Contains(gives.err.String(), "--resume goes on later") {
		t.Errorf("code %d, %s", code, gives.err.String())
	}
	forwarderAt(t, socket)
	waits.says(&waits.err, backAgain+"\n")
	if code := waits.wait(); code != exitDone || waits.out.String() != string(want) || strings.Count(waits.err.String(), "\n") != 2 {
		t.Errorf("code %d, %s", code, waits.err.String())
	}
}

// TestCatTreeWaits for the forwarder also with files that it has not begun.
func TestCatTreeWaits(t *testing.T) {
	dir, err := os.MkdirTemp("", "ndnpop")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, published, to := filepath.Join(dir, "s"), filepath.Join(dir, "tree"), filepath.Join(dir, "to")
	if err := os.Mkdir(published, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * treeParallel {
		randomFile(t, filepath.Join(published, strings.Repeat("f", i+1)), 40_000)
	}
	first := forwarderAt(t, socket)
	p := begin(t, nil, "put", "/cdn/tree", published, first.transport)
	p.says(&p.err, "fetch it with")
	all := begin(t, nil, "cat", "/cdn/tree", "-o", to+"/", first.transport, "--max-rate", "800kbit", "-v")
	all.says(&all.err, "f\n")
	// Connections stay, but no file that begins now gets one.
	err = os.Remove(socket)
	if err == nil {
		err = os.WriteFile(socket, nil, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	all.says(&all.err, "trying to come back")
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	all.says(&all.err, backAgain)
	if code := all.wait(); code != exitDone {
		t.Errorf("code %d, %s", code, all.err.String())
	}
}

// TestCatOutageIsOne for all files of a tree.
func TestCatOutageIsOne(t *testing.T) {
	var out bytes.Buffer
	o := &catOutage{e: &env{stderr: &out}, f: &catFlags{transport: "unix:///x"}}
	for range 2 {
		for _, ended := range []error{errors.New("gone"), errors.New("gone"), nil, nil} {
			o.told(ended)
		}
	}
	if s := out.String(); strings.Count(s, "gone") != 2 || strings.Count(s, backAgain) != 2 {
		t.Error(s)
	}
}
