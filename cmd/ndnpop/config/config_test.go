package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ndnpop/ndn"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testKnown = Known{
	Strategies: []string{"best-route", "multicast"},
	Policies:   []string{"lru"},
	Modules:    []string{"rib", "faces"},
	CheckStrategy: func(n ndn.Name) error {
		if strings.Contains(n.String(), "wrong~") {
			return errors.New("unknown parameter \"wrong\"; known are right")
		}
		return nil
	},
}

func base() *Config { return Default("/run/nfd/nfd.sock") }

func TestEmptyFileIsDefault(t *testing.T) {
	c, err := Parse(nil, base(), testKnown)
	if err != nil {
		t.Fatal(err)
	}
	c.pos = nil
	if !reflect.DeepEqual(c, base()) {
		t.Fatalf("got %+v", c)
	}
	if err := base().Validate(testKnown); err != nil {
		t.Fatal(err)
	}
}

func TestSampleReadsBackAsDefault(t *testing.T) {
	var b strings.Builder
	if err := WriteSample(&b, base()); err != nil {
		t.Fatal(err)
	}
	c, err := Parse([]byte(b.String()), base(), testKnown)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	c.pos = nil
	if !reflect.DeepEqual(c, base()) {
		t.Fatalf("got %+v", c)
	}
	// The sample says every default: nothing of another base shines through.
	other := Default("/elsewhere")
	other.CS.Capacity, other.PIT.MaxEntries, other.Log.Level = 1, 1<<18, "error"
	if c, err = Parse([]byte(b.String()), other, testKnown); err != nil {
		t.Fatal(err)
	}
	c.pos = nil
	if !reflect.DeepEqual(c, base()) {
		t.Fatalf("over another base: got %+v", c)
	}
	golden(t, "sample.toml", b.String())
}

// TestSampleExamples reads the sample with the examples of repeated tables
// uncommented.
func TestSampleExamples(t *testing.T) {
	var b strings.Builder
	if err := WriteSample(&b, base()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	in := false
	for i, l := range lines {
		in = in && strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "# [[")
		if in {
			lines[i] = strings.TrimPrefix(l, "# ")
		}
	}
	c, err := Parse([]byte(strings.Join(lines, "\n")), base(), testKnown)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Face) != 1 || len(c.Route) != 1 || len(c.Strategy) != 1 || c.Route[0].Face != c.Face[0].Name {
		t.Fatalf("got %+v", c)
	}
}

func TestErrorsGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/bad*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		_, err := Load(f, base(), testKnown)
		var es Errors
		if !errors.As(err, &es) {
			t.Fatalf("%s: %v", f, err)
		}
		golden(t, strings.TrimSuffix(filepath.Base(f), ".toml")+".golden", err.Error()+"\n")
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Fatalf("%s differs (-update rewrites it); got\n%s", path, got)
	}
}

func TestValues(t *testing.T) {
	c, err := Parse([]byte(`
cs.capacity = "2GB"
network = { producer_regions = ["/cdn/origin"] }
[faces]
udp = { listen = [], idle_timeout = "1m30s" }
[faces.unix]
path = ""
[[face]]
uri = "tcp4://192.0.2.1:6363"
[[route]]
prefix = "/a"
face = "tcp4://192.0.2.1:6363"
[[strategy]]
prefix = "/a"
strategy = "multicast"
params = { b = 2, a = "x" }
`), base(), testKnown)
	if err != nil {
		t.Fatal(err)
	}
	if c.CS.Capacity != 2e9 || len(c.Faces.UDP.Listen) != 0 || c.Faces.Unix.Path != "" ||
		time.Duration(c.Faces.UDP.IdleTimeout) != 90*time.Second || c.Face[0].Persistency != "permanent" ||
		!c.Route[0].ChildInherit || len(c.Network.ProducerRegions) != 1 || c.Faces.UDP.MaxFaces != 4096 {
		t.Fatalf("got %+v", c)
	}
	n, err := c.Strategy[0].FullName(nil)
	if err != nil || n.String() != "/localhost/nfd/strategy/multicast/a~x/b~2" {
		t.Fatal(n, err)
	}
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "1": 1, "10B": 10, "2GB": 2e9, "64MiB": 64 << 20, "1.5kB": 1500, "16 KiB": 16 << 10, "1TiB": 1 << 40,
	} {
		got, err := ParseSize(in)
		if err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
		if back, err := ParseSize(got.String()); err != nil || back != got {
			t.Errorf("%q: written as %q, which reads as %d, %v", in, got, back, err)
		}
	}
	for _, in := range []string{"", "B", "GB", "-1", "1PB", "NaN", "0x10", "Inf", "1e300GB", "1_0"} {
		if v, err := ParseSize(in); err == nil {
			t.Errorf("%q: read as %d", in, v)
		}
	}
}

func TestValidateNamesKeyAndBound(t *testing.T) {
	c := base()
	c.Shards.Count = 3
	c.Faces.UDP.MTU = 100
	c.CS.Capacity = -1
	c.Face = []Face{{Persistency: "sometimes"}}
	err := c.Validate(testKnown)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"shards.count: 3 is out of bounds, must be 1",
		"faces.udp.mtu: 100 is out of bounds, must be 200 to 8800, or 0",
		"cs.capacity: ",
		"face[0].uri: missing",
		`face[0].persistency: "sometimes" is none of permanent, persistent`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
}

func TestEndlessFileIsRefused(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero")
	}
	if _, err := Load("/dev/zero", base(), testKnown); err == nil || !strings.Contains(err.Error(), "larger than 16MiB") {
		t.Fatal(err)
	}
}

func TestEmptyIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		"[[face]]\nuri = \"\"\n":                                     "2:7: face[0].uri: missing",
		"[[strategy]]\nprefix = \"\"\nstrategy = \"nst\"\n":          "2:10: strategy[0].prefix: missing",
		"[[route]]\nprefix = \"/a\"\n":                               "route[0].face: missing",
		"[[route]]\nprefix = \"/localhost/nfd/rib\"\nface = \"x\"\n": "2:10: route[0].prefix: /localhost/nfd/rib is the forwarder's own",
	} {
		if _, err := Parse([]byte(text), base(), testKnown); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestByteOrderMark: what editors of Windows put before UTF-8 is no key.
func TestByteOrderMark(t *testing.T) {
	c, err := Parse([]byte("\uFEFFlog.level = \"debug\"\n"), base(), testKnown)
	if err != nil || c.Log.Level != "debug" {
		t.Fatalf("%v", err)
	}
	if _, err := Parse([]byte("\uFEFFlog.level = \"loud\"\n"), base(), testKnown); err == nil || !strings.Contains(err.Error(), "1:13") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"bad.toml", "sample.toml"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, base(), testKnown)
		if err == nil {
			if err := c.Validate(testKnown); err != nil {
				t.Fatalf("read without error, but: %v", err)
			}
		}
	})
}

// TestSizeInWords: bounds are named as a person would.
func TestSizeInWords(t *testing.T) {
	for size, want := range map[Size]string{0: "0B", 1e12: "1TB", 8e6: "8MB", 256 << 10: "256KiB", 1 << 40: "1TiB", 1025: "1025B"} {
		if got := size.String(); got != want {
			t.Errorf("%d: %s, want %s", int64(size), got, want)
		}
	}
}

// TestUnknownTablesHaveLines, repeated and empty ones too.
func TestUnknownTablesHaveLines(t *testing.T) {
	_, err := Parse([]byte("[fases]\n[[routes]]\n"), base(), testKnown)
	var es Errors
	if !errors.As(err, &es) || len(es) != 2 || es[0].Line != 1 || es[1].Line != 2 {
		t.Error(err)
	}
}
