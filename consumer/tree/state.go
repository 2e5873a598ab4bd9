package tree

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"ndnpop/consumer/output"
)

// errStateDir: something else has the name of the directory.
var errStateDir = errors.New("it should be a directory")

// state is the directory of what is unfinished, and the list of what is done
// in it: one versioned name in a line.
type state struct {
	root *os.Root
	path string // for messages
	had  map[string]bool

	mu   sync.Mutex
	list *os.File
}

const listFile = "done"

// openState opens or makes the state below root. Without resume it begins
// anew.
func openState(root *os.Root, name string, resume bool) (*state, error) {
	if err := root.Mkdir(stateDir, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if fi, err := root.Lstat(stateDir); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(errStateDir, err))
	}
	f, err := root.OpenFile(path.Join(stateDir, listFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	if err := output.Lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s", output.ErrBusy, name)
	}
	s := &state{root: root, path: name, list: f, had: map[string]bool{}}
	if !resume {
		return s, errors.Join(f.Truncate(0), s.clear())
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) { // a line that a crash cut off is not done
				return s, nil
			}
			return nil, errors.Join(err, f.Close())
		}
		s.had[strings.TrimSuffix(line, "\n")] = true
	}
}

// clear removes what earlier fetches left, the list apart.
func (s *state) clear() error {
	d, err := s.root.Open(stateDir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if e := d.Close(); err == nil {
		err = e
	}
	for _, n := range names {
		if err == nil && n != listFile {
			err = s.root.Remove(path.Join(stateDir, n))
		}
	}
	return err
}

// done reports whether an earlier fetch completed an object.
func (s *state) done(version string) bool { return s.had[version] }

// add notes that an object is complete. Names are URIs, without line breaks.
func (s *state) add(version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.list.WriteString(version + "\n")
	return err
}

// close ends the state. When all is done, or nothing is begun, nothing is
// left of it.
func (s *state) close(all bool) error {
	var err error
	if all || s.empty() {
		err = s.root.RemoveAll(stateDir)
	}
	return errors.Join(err, s.list.Close())
}

func (s *state) empty() bool {
	if fi, err := s.list.Stat(); err != nil || fi.Size() > 0 {
		return false
	}
	d, err := s.root.Open(stateDir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(2)
	return err == nil && len(names) == 1
}
