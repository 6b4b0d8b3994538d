package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// route is a list of names that lead to a path, each in its directory. It belongs to a folder or to a watch.
type route struct {
	folder *folder
	watch  *pathWatch
	hops   []hop
	// walked is the time of the last resolution, zero for a route without hops.
	walked time.Time
	// places are the directories before each link and at the end of the route, without links. A mount at or
	// above one of them changes the route.
	places []string
}

func (r *route) name() string {
	if r.folder != nil {
		return r.folder.path
	}

	return r.watch.point.Name
}

// hop is a lookup of a name in a directory. A route has each hop once.
type hop struct {
	dir  *dir
	name string
	// at is its index in the passes of the directory.
	at int
}

// pass is a hop from the view of its directory: the route and the index of its hop. Thousands of routes may
// pass one name, so no route is searched.
type pass struct {
	route *route
	hop   int
}

// setHops sets the hops of the route. It counts the new hops before it releases the old ones, so that common
// directories stay watched.
func (r *route) setHops(n *inotify, hops []hop) {
	former := r.hops
	for _, h := range former {
		h.dir.unpass(h)
	}
	r.hops = hops
	for i, h := range hops {
		passes := h.dir.hops[h.name]
		hops[i].at = len(passes)
		h.dir.hops[h.name] = append(passes, pass{r, i})
	}
	for _, h := range former {
		n.release(h.dir)
	}
}

// unpass removes a hop. The last pass takes its index.
func (d *dir) unpass(h hop) {
	passes := d.hops[h.name]
	last := len(passes) - 1
	if last == 0 {
		delete(d.hops, h.name)
		return
	}
	moved := passes[last]
	moved.route.hops[moved.hop].at = h.at
	passes[h.at], passes[last] = moved, pass{}
	d.hops[h.name] = passes[:last]
}

// maxLinks limits the links of a path, as in the kernel. maxNames limits the names in their texts, and
// therefore the directories of a point: the owner of a directory on the path chooses the texts.
const (
	maxLinks = 40
	maxNames = 256
)

type walk struct {
	inotify *inotify
	// at is the current open directory.
	at   int
	rest []string
	hops []hop
	// links counts the followed links, names the names in their texts.
	links, names int
	// places are the directories of these links and the current directory.
	places []string
}

type walked struct {
	hops []hop
	// places are the places of the route.
	places []string
	// end is the directory at the path, nil if there is none. Otherwise the caller releases it and closes its
	// descriptor fd.
	end *dir
	fd  int
}

// walk resolves an absolute path. It watches each directory before it looks up a name in it, so it misses no
// later change. It opens only directories, so a fifo or device cannot block it. It ends at a missing name or
// a file that is no directory. If the error is not nil, the hops are released.
func (n *inotify) walk(path string) (out walked, err error) {
	w := walk{inotify: n, at: -1}
	w.push(path)
	defer func() {
		if err == nil && out.end != nil {
			return
		}
		if w.at >= 0 {
			_ = unix.Close(w.at)
		}
		for _, h := range w.hops {
			if err != nil {
				n.release(h.dir)
			}
		}
	}()
	if err := w.restart(); err != nil {
		return walked{}, err
	}
	for len(w.rest) > 0 {
		next := w.rest[len(w.rest)-1]
		w.rest = w.rest[:len(w.rest)-1]
		arrived, err := w.step(next)
		if err != nil {
			return walked{}, err
		}
		if !arrived {
			w.note()
			return walked{hops: w.hops, places: w.places}, nil
		}
	}
	end, err := n.watch(w.at)
	if err != nil {
		return walked{}, err
	}

	w.note()

	return walked{hops: w.hops, places: w.places, end: end, fd: w.at}, nil
}

func (w *walk) note() {
	if place, err := os.Readlink(procPath(w.at)); err == nil && !slices.Contains(w.places, place) {
		w.places = append(w.places, place)
	}
}

func (w *walk) push(path string) {
	names := strings.Split(path, "/")
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] != "" && names[i] != "." {
			w.rest = append(w.rest, names[i])
		}
	}
}

func (w *walk) restart() error {
	fd, err := paths.OpenAt(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return limit("open", err)
	}
	w.move(fd)

	return nil
}

func (w *walk) move(fd int) {
	if w.at >= 0 {
		_ = unix.Close(w.at)
	}
	w.at = fd
}

// step looks up a name. It reports whether the name is a directory, or a link whose names now remain.
func (w *walk) step(name string) (bool, error) {
	if name != ".." {
		switch d, err := w.inotify.watch(w.at); {
		case err == nil && w.links > 0 && slices.Contains(w.hops, hop{dir: d, name: name}):
			w.inotify.release(d)
		case err == nil:
			w.hops = append(w.hops, hop{dir: d, name: name})
		case !errors.Is(err, unix.EACCES):
			return false, err
		}
		// Few users can change a directory that muster may pass but not read.
	}
	fd, err := paths.OpenAt(w.at, name, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return false, limit("open", err)
	}
	if err != nil {
		return false, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		w.move(fd)
		return true, nil
	}
	defer func() { _ = unix.Close(fd) }()
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return false, nil
	}

	return w.followLink(fd)
}

func (w *walk) followLink(link int) (bool, error) {
	w.note()
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", text)
	if w.links++; err != nil || w.links > maxLinks {
		return false, nil
	}
	if w.names += 1 + bytes.Count(text[:n], []byte("/")); w.names > maxNames {
		return false, fmt.Errorf("%w: the links on the path have more than %d names", ErrLimit, maxNames)
	}
	w.push(string(text[:n]))
	if !filepath.IsAbs(string(text[:n])) {
		return true, nil
	}

	return true, w.restart()
}
