package testbin

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestOutlivesThread: a process does not die with the thread of whoever asked for
// it.
func TestOutlivesThread(t *testing.T) {
	r, w := io.Pipe()
	c := sh(t, "read line; echo $line")
	c.Stdin = r
	asked := make(chan int)
	var p *Proc
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		p = Start(t, c)
		asked <- syscall.Gettid()
	}()
	if tid := <-asked; tid != os.Getpid() { // the main thread never ends
		Eventually(t, 10*time.Second, "the thread to end", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid))
			return os.IsNotExist(err)
		}, p)
	}
	_, err := io.WriteString(w, "alive\n")
	w.Close()
	if code := p.Wait(t, 10*time.Second); err != nil || code != 0 || p.Stdout.String() != "alive\n" {
		t.Errorf("exit %d, %q, %v", code, p.Stdout, err)
	}
}
