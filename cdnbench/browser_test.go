package cdnbench

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// pageEnv names the environment variable with the path of a page to look at,
// for one that was made by real runs. The browser must be there then.
const pageEnv = "NDNPOP_TEST_PAGE"

// phone shows the page in a frame as wide as a phone and says what it sees.
const phone = `<!DOCTYPE html><link rel="icon" href="data:,"><iframe id="f" width="390" height="800" src="/page"></iframe><pre id="seen"></pre><script>
document.getElementById("f").onload = function () {
	var w = this.contentWindow, d = w.document;
	document.getElementById("seen").textContent = JSON.stringify({
		width: d.documentElement.scrollWidth,
		fetched: w.performance.getEntriesByType("resource").map(function (e) { return e.name; }),
		plots: d.querySelectorAll("svg").length, sections: d.querySelectorAll("section").length
	});
};
</script>`

// TestPageInBrowser: the page needs nothing from a network, logs nothing to the
// console, and is no wider than a phone.
func TestPageInBrowser(t *testing.T) {
	page := os.Getenv(pageEnv)
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil && browser == "" {
			browser = p
		}
	}
	switch {
	case browser == "" && page != "":
		t.Fatal("there is no Chromium to look at the page with")
	case browser == "":
		t.Skip("there is no Chromium here; Debian has it in the package chromium")
	case page == "":
		dir := t.TempDir()
		r := sampleResult()
		r.Findings = strings.Repeat("long", 100)
		r.Checks[0].What = strings.Repeat("what was held against what ", 10)
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		if err := WriteIndex(dir); err != nil {
			t.Fatal(err)
		}
		page = filepath.Join(dir, "index.html")
	}
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, phone)
		case "/page":
			http.ServeFile(w, r, page)
		default:
			http.NotFound(w, r)
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
	}))
	defer srv.Close()
	c := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--enable-logging=stderr", "--window-size=800,1000", "--virtual-time-budget=10000", "--dump-dom", srv.URL+"/")
	var log strings.Builder
	c.Stderr = &log
	dom, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	m := regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`).FindStringSubmatch(string(dom))
	if m == nil || m[1] == "" {
		t.Fatalf("the page did not load: %.500s\n%s", dom, &log)
	}
	var seen struct {
		Width, Plots, Sections int
		Fetched                []string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Width > 390 {
		t.Errorf("the page is %d pixels wide on a screen of 390", seen.Width)
	}
	if seen.Plots == 0 || seen.Sections == 0 {
		t.Errorf("%d plots in %d sections", seen.Plots, seen.Sections)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen.Fetched) > 0 || strings.Join(asked, " ") != "/ /page" {
		t.Errorf("the page asked for more than itself: %v, %v", seen.Fetched, asked)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("on the console: %s", line)
		}
	}
}
