package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wanted are the events of a directory. Writes count because a program may keep the file open. Closing counts
// because a program may have mapped the file into memory. Removed and replaced files are not followed.
const wanted = entries | unix.IN_ATTRIB | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// inotify is the descriptor, nil until it is opened, and the directories that it watches. All users of a
// directory share one watch.
type inotify struct {
	file *os.File
	fd   int
	dirs map[int32]*dir
	// most is the kernel's limit of watches for all processes of a user.
	most int
	// noise contains the directories that are not watched because they have too many events.
	noise noise
}

// dir is a watched directory, identified by inode and not by path.
type dir struct {
	wd int32
	id identity
	// refs counts the hops in the directory, and the routes and trees that end in it.
	refs int
	// hops are the routes through a name in the directory.
	hops map[string][]pass
	// trees are the trees that contain the directory.
	trees []*tree
}

// open opens the descriptor. The error may be ErrLimit.
func (n *inotify) open() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return limit("inotify_init1", err)
	}
	n.file, n.fd, n.most = os.NewFile(uintptr(fd), "inotify"), fd, maxUserWatches()

	return nil
}

// maxUserWatches returns fs.inotify.max_user_watches, or a large number if the kernel does not have it.
func maxUserWatches() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return math.MaxInt
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return math.MaxInt
	}

	return most
}

// close closes the descriptor if it is open. This ends all watches of the kernel.
func (n *inotify) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}

func limit(call string, err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: %s (raise the sysctl fs.inotify.max_user_watches)", ErrLimit, call)
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: %s (raise the sysctl fs.inotify.max_user_instances, or the open files of the process)", ErrLimit, call)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%w: %s: %w", ErrLimit, call, err)
	default:
		return fmt.Errorf("%w: %s: %w", ErrNone, call, err)
	}
}

// watch watches the directory of a descriptor and counts the use. It does not use the path, which may lead to
// another directory now.
func (n *inotify) watch(fd int) (*dir, error) {
	id, err := identify(fd)
	if err != nil {
		return nil, limit("fstat", err)
	}
	if err := n.noise.check(id, time.Now()); err != nil {
		return nil, err
	}
	wd, err := unix.InotifyAddWatch(n.fd, procPath(fd), wanted)
	if err != nil {
		return nil, limit("inotify_add_watch", err)
	}
	d := n.dirs[int32(wd)]
	if d == nil {
		d = &dir{wd: int32(wd), id: id, hops: map[string][]pass{}}
		n.dirs[d.wd] = d
	}
	d.refs++

	return d, nil
}

// release ends one use of a directory. The last release ends the watch.
func (n *inotify) release(d *dir) {
	if d.refs--; d.refs > 0 || n.dirs[d.wd] != d {
		return
	}
	n.forget(d)
}

func (n *inotify) forget(d *dir) {
	delete(n.dirs, d.wd)
	// The directory may not exist any more.
	_, _ = unix.InotifyRmWatch(n.fd, uint32(d.wd))
}

func without[T comparable](list []T, value T) []T {
	at := slices.Index(list, value)
	if at < 0 {
		return list
	}
	last := len(list) - 1
	list[at] = list[last]
	var none T
	list[last] = none

	return list[:last]
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// event is an inotify event. The name points into the read buffer. It is empty for an event of the directory
// itself.
type event struct {
	wd   int32
	mask uint32
	name []byte
}

var errEvents = errors.New("events of inotify that cannot be read")

func nextEvent(buffer []byte) (e event, rest []byte, err error) {
	if len(buffer) < unix.SizeofInotifyEvent {
		return e, nil, errEvents
	}
	e.wd = int32(binary.NativeEndian.Uint32(buffer))
	e.mask = binary.NativeEndian.Uint32(buffer[4:])
	length := uint64(binary.NativeEndian.Uint32(buffer[12:]))
	buffer = buffer[unix.SizeofInotifyEvent:]
	if length > uint64(len(buffer)) {
		return e, nil, errEvents
	}
	e.name = buffer[:length]
	if end := bytes.IndexByte(e.name, 0); end >= 0 {
		e.name = e.name[:end]
	}

	return e, buffer[length:], nil
}

func (e event) has(kinds uint32) bool { return e.mask&kinds != 0 }

// entries are the events after which a name may refer to another file.
const entries = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
