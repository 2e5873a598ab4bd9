// Package unix carries frames over Unix stream sockets.
package unix

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ndnpop/face"
	"ndnpop/face/stream"
)

// Options of a socket. The zero value is usable.
type Options struct {
	// Queue bounds the bytes that wait when the peer does not drain; 0 means
	// stream.DefaultQueue.
	Queue int
	// Mode of the socket file; 0 means 0666, so that every user's
	// applications may connect, as NFD has it. A file that is made again has the
	// mode, owner and group that somebody has given the one before.
	Mode fs.FileMode
	// Failed is told of what keeps a listener from accepting for a while
	// (stream.Listener).
	Failed func(error)
	// Remade is told when a listener has made its socket file again after somebody
	// removed it, if only without the owner and group that it had (the error then),
	// and the first time that it cannot. It runs on a goroutine of the listener's.
	Remade func(made bool, err error)
}

// sendBuffer is the size of a socket's send buffer in bytes: enough that a
// peer that is scheduled a little late does not fill it.
const sendBuffer = 1 << 20

// LiveError says that a process already listens on a socket file.
type LiveError struct {
	Path string
	PID  int // 0 when the system does not tell
}

func (e *LiveError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("unix: %s already listens on %s: stop it, or choose another path", who, e.Path)
}

// Is makes a LiveError an EADDRINUSE for errors.Is.
func (e *LiveError) Is(target error) bool { return target == syscall.EADDRINUSE }

// lookEvery is how often a listener sees whether its socket file is still there.
// When it cannot be made again, up to mostPause looks are left out.
const (
	lookEvery = 2 * time.Second
	mostPause = 15
)

// Listener accepts connections. While it serves, it makes its socket file again
// if somebody removes it, since nobody else could connect until the process is
// started anew. A socket that another process has put there is left to it.
type Listener struct {
	*stream.Listener
	path  string
	opts  Options
	every time.Duration

	mu   sync.Mutex    // held while the file is made and removed
	file fs.FileInfo   // as it was seen last
	dir  fs.FileInfo   // its directory, likewise
	done chan struct{} // closed when the listener is
}

// Listen makes a socket file at path. The directory is made if it does not
// exist. A socket file that nobody listens on is replaced; one that a process
// listens on is refused with a *LiveError, and a file that is no socket is
// left alone.
func Listen(path string, o Options) (*Listener, error) {
	if o.Mode == 0 {
		o.Mode = 0o666
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, cannot("create the directory of", path, err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, cannot("look at the directory of", path, err)
	}
	l, file, err := create(path, o.Mode, nil)
	if err != nil {
		return nil, err
	}
	local := "unix://" + path
	wrap := func(c net.Conn) (*stream.Transport, error) { return accepted(c, local, o) }
	sl := stream.NewListener(l, local, wrap)
	sl.Failed = o.Failed
	return &Listener{Listener: sl, path: path, opts: o, every: lookEvery, file: file, dir: dir, done: make(chan struct{})}, nil
}

// create makes the socket file, in a directory that exists, and says what it is. Its
// owner and group are those of the one before, if there was one.
func create(path string, mode fs.FileMode, before fs.FileInfo) (*net.UnixListener, fs.FileInfo, error) {
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, nil, cannot("create", path, err)
	}
	defer unlock()
	l, err := bind(path, mode)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err := removeStale(path); err != nil {
			return nil, nil, err
		}
		l, err = bind(path, mode)
	}
	if err != nil {
		return nil, nil, cannot("create", path, err)
	}
	l.SetUnlinkOnClose(false)
	// The mode that bind gave is limited by the umask.
	err = setMode(path, mode, before)
	var file fs.FileInfo
	var owner error
	if errors.Is(err, errOwner) {
		owner, err = err, nil
	}
	if err == nil {
		file, err = os.Lstat(path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(path)
		return nil, nil, cannot("set the mode of", path, err)
	}
	return l, file, owner
}

// errOwner says that a socket file is there, but not with the owner and group that
// it should have.
var errOwner = errors.New("its owner and group cannot be set")

// Serve implements face.Listener.
func (l *Listener) Serve(accept face.Acceptor) error {
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { l.watch(stop) })
	err := l.Listener.Serve(accept)
	close(stop)
	watch.Wait()
	return err
}

// watch makes the socket file again when it is gone.
func (l *Listener) watch(stop <-chan struct{}) {
	t := time.NewTicker(l.every)
	defer t.Stop()
	// While it cannot be made, fewer and fewer attempts are: another forwarder
	// may be there, which each of them bothers.
	pause, left := 0, 0
	for {
		select {
		case <-t.C:
		case <-stop:
			return
		}
		if left > 0 {
			left--
			continue
		}
		made, err := l.remake()
		if l.opts.Remade != nil && (made || err != nil && pause == 0) {
			l.opts.Remade(made, err)
		}
		if pause = min(2*pause+1, mostPause); made || err == nil {
			pause = 0
		}
		left = pause
	}
}

// remake makes the socket file again unless it is there or the listener is
// closed, and listens on it.
func (l *Listener) remake() (made bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return false, nil
	}
	if fi, err := os.Lstat(l.path); err == nil && os.SameFile(fi, l.file) {
		l.file = fi
		if d, err := os.Stat(filepath.Dir(l.path)); err == nil {
			l.dir = d
		}
		return false, nil
	}
	dir := filepath.Dir(l.path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(dir), 0o755); err == nil {
			err = makeDir(dir, l.dir)
		}
		if err != nil {
			return false, cannot("create the directory of", l.path, err)
		}
	}
	sock, file, err := create(l.path, l.file.Mode().Perm(), l.file)
	if err != nil && !errors.Is(err, errOwner) {
		return false, err
	}
	l.file = file
	return true, errors.Join(l.Replace(sock), err)
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// cannot explains an error about a socket file.
func cannot(what, path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("unix: cannot %s %s: %w: run as a user who may write there, or choose another path for the socket", what, path, err)
	}
	return fmt.Errorf("unix: cannot %s %s: %w", what, path, err)
}

// removeStale removes the socket file of a process that is gone.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cannot("look at", path, err)
	case fi.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("unix: %s exists and is not a socket: remove it, or choose another path", path)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		pid := peerPID(c.(*net.UnixConn))
		_ = c.Close()
		return &LiveError{Path: path, PID: pid}
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, syscall.EAGAIN):
		// Its backlog is full, so somebody has it open.
		return &LiveError{Path: path}
	default:
		return cannot("connect to", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannot("replace", path, err)
	}
	return nil
}

// Close implements face.Listener. It removes the socket file, unless another
// process has replaced it.
func (l *Listener) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return nil
	}
	close(l.done)
	if fi, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(fi, l.file) {
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.Listener.Close())
}

// Dial connects to the socket at path.
func Dial(path string, o Options) (face.Server, error) {
	c, err := net.Dial("unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("unix: there is no socket %s: is a forwarder running? %w", path, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("unix: this user may not use %s: %w", path, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("unix: nobody listens on %s: %w: %w", path, face.ErrRefused, err)
	case err != nil:
		return nil, fmt.Errorf("unix: %w", err)
	}
	return wrap(c, face.Info{RemoteURI: "unix://" + path, LocalURI: fdURI(c)}, o)
}

func accepted(c net.Conn, local string, o Options) (*stream.Transport, error) {
	return wrap(c, face.Info{RemoteURI: fdURI(c), LocalURI: local}, o)
}

func wrap(c net.Conn, info face.Info, o Options) (*stream.Transport, error) {
	uc := c.(*net.UnixConn)
	// Failing costs speed only.
	_ = uc.SetWriteBuffer(sendBuffer)
	info.Scope = face.ScopeLocal
	t, err := stream.New(uc, info, o.Queue)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("unix: %w", err)
	}
	return t, nil
}

// fdURI is the URI of an end that has no path (ndn-cxx: fd://N).
func fdURI(c net.Conn) string {
	n := uintptr(0)
	if raw, err := c.(*net.UnixConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = fd })
	}
	return "fd://" + strconv.FormatUint(uint64(n), 10)
}
