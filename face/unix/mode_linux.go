package unix

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setMode sets the mode of the socket file at path, and of nothing that whoever may
// write in its directory puts there instead: a link to a file of root's, say.
func setMode(path string, mode fs.FileMode) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errors.New("somebody has put something else there")
	}
	// A descriptor of this kind has a mode by its name only.
	err = os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	if errors.Is(err, fs.ErrNotExist) { // no /proc
		err = os.Chmod(path, mode)
	}
	return err
}
