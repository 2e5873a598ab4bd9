package unix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// setMode sets the mode of the socket file at path, and the owner and group of
// the file that was there before, if there was one; an errOwner is about these
// alone. It does so to nothing that whoever may write in its directory puts there
// instead: a link to a file of root's, say.
func setMode(path string, mode fs.FileMode, before fs.FileInfo) error {
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
	var owner error
	if before != nil {
		if b := before.Sys().(*syscall.Stat_t); b.Uid != st.Uid || b.Gid != st.Gid {
			if err := unix.Fchownat(fd, "", int(b.Uid), int(b.Gid), unix.AT_EMPTY_PATH); err != nil {
				owner = fmt.Errorf("%w: %w", errOwner, err)
				_ = unix.Fchownat(fd, "", -1, int(b.Gid), unix.AT_EMPTY_PATH) // which it may, as a member
			}
		}
	}
	// A descriptor of this kind has a mode by its name only.
	err = os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	if errors.Is(err, fs.ErrNotExist) { // no /proc
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return err
	}
	return owner
}
