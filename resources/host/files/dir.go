package files

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Dir is an open directory: what is done below it is done in this very
// directory, whoever exchanges its path meanwhile. Make it with OpenDir, and
// close it.
type Dir struct {
	fd   int
	path string

	approval
	party party
}

// OpenDir opens the directory at path. It passes directories and links of root
// and the running user; from those of another user it goes on only to
// directories of that same user, and from a directory that everybody may write
// to, without the sticky bit, only to such ones. Anything else wraps ErrUnsafe,
// and names what leads elsewhere, its owner and the remedy.
func OpenDir(path string) (*Dir, error) { return (&approvals{}).dir(path) }

// Path returns the path that the directory was opened by.
func (d *Dir) Path() string { return d.path }

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Root returns the directory as a root for work on the tree below it: nothing
// leads out of that. The caller closes it; it stays valid when d is closed.
func (d *Dir) Root() (*os.Root, error) {
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(d.fd))
}

// stat returns what the walk needs of the directory's attributes.
func (d *Dir) stat() *unix.Stat_t { return &unix.Stat_t{Mode: d.mode, Uid: d.uid} }
