package dial

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DefaultLocal is the forwarder's socket when nothing else is said (NFD's on
// Linux).
const DefaultLocal = "unix:///run/nfd/nfd.sock"

// Local finds the local forwarder's URI: the flag if it is not empty, then
// the environment's NDN_CLIENT_TRANSPORT, then transport= in the first
// client.conf of ~/.ndn, /usr/local/etc/ndn and /etc/ndn (ndn-cxx), then
// DefaultLocal. An error is one of reading a client.conf that exists.
func Local(flag string) (uri string, err error) {
	if flag != "" {
		return flag, nil
	}
	if v := os.Getenv("NDN_CLIENT_TRANSPORT"); v != "" {
		return v, nil
	}
	dirs := []string{"/usr/local/etc/ndn", "/etc/ndn"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append([]string{filepath.Join(home, ".ndn")}, dirs...)
	}
	return fromConf(dirs)
}

// fromConf reads the first client.conf in dirs.
func fromConf(dirs []string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, "client.conf")
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("dial: %w", err)
		}
		uri, err := transportOf(bufio.NewScanner(f))
		f.Close()
		if err != nil {
			return "", fmt.Errorf("dial: read %s: %w", path, err)
		}
		if uri != "" {
			return uri, nil
		}
		break
	}
	return DefaultLocal, nil
}

// transportOf finds the transport= line; comments begin with ; or #.
func transportOf(s *bufio.Scanner) (string, error) {
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "transport" {
			return strings.Trim(strings.TrimSpace(value), `"`), nil
		}
	}
	return "", s.Err()
}
