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

// route is the way to something: the names that are looked up for it, each in its
// directory. It belongs to a folder or to a watch.
type route struct {
	folder *folder
	watch  *pathWatch
	hops   []hop
	// walked is when it was resolved last; zero for one that needs no walk.
	walked time.Time
	// places are the directories, without links, that it led to until a link or its end: what
	// is mounted at or above one leads it elsewhere.
	places []string
}

// name is the path that it leads to.
func (r *route) name() string {
	if r.folder != nil {
		return r.folder.path
	}

	return r.watch.point.Name
}

// hop is a name that is looked up in a directory. A route has each once.
type hop struct {
	dir  *dir
	name string
	// at is where it is among the passes of the directory.
	at int
}

// pass is a hop as its directory knows it: the route, and which of its hops. Routes by
// the thousand may pass one name, so none of them is searched for.
type pass struct {
	route *route
	hop   int
}

// setHops makes hops those of the route. They are counted before the former ones are
// released, so that what is in both is watched all the time.
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

// unpass forgets a hop. The last pass takes its place.
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

// maxLinks bounds the links on the way to a path, as the kernel does, and maxNames the
// names in their texts, and so the directories of a point: each text may have some thousand,
// and whoever owns a directory on the way decides about it.
const (
	maxLinks = 40
	maxNames = 256
)

// walk is on the way to a path.
type walk struct {
	inotify *inotify
	// at is the open directory it has come to.
	at   int
	rest []string
	hops []hop
	// links were followed, names were in their texts.
	links, names int
	// places are the directories of those links, and in the end where it has come to.
	places []string
}

// walked is where a walk has come to, and how.
type walked struct {
	hops []hop
	// places are those of a route.
	places []string
	// end is the directory at the path, nil where there is none. Otherwise the caller releases it, and
	// closes fd, its descriptor.
	end *dir
	fd  int
}

// walk goes to an absolute path, and watches each directory on the way before it
// looks up a name in it: no later change escapes. It opens nothing but directories to
// be looked at, so no fifo or device can hold it up. It ends at what is missing or no
// directory. Where the error is not nil the hops are released.
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

// note notes the directory it has come to.
func (w *walk) note() {
	if place, err := os.Readlink(procPath(w.at)); err == nil && !slices.Contains(w.places, place) {
		w.places = append(w.places, place)
	}
}

// push puts the names of a path before those that are left.
func (w *walk) push(path string) {
	names := strings.Split(path, "/")
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] != "" && names[i] != "." {
			w.rest = append(w.rest, names[i])
		}
	}
}

// restart goes to the root directory.
func (w *walk) restart() error {
	fd, err := open(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
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

// step goes through a name, and reports whether that led to a directory, or to a link
// whose names are left now.
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
		// A directory that may be passed and not read can be changed by few others.
	}
	fd, err := open(w.at, name, unix.O_PATH|unix.O_NOFOLLOW)
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

// followLink goes on by the text of a link.
func (w *walk) followLink(link int) (bool, error) {
	w.note()
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", text)
	if w.links++; err != nil || w.links > maxLinks {
		return false, nil
	}
	if w.names += 1 + bytes.Count(text[:n], []byte("/")); w.names > maxNames {
		return false, fmt.Errorf("%w: the links on its way have more than %d names", ErrLimit, maxNames)
	}
	w.push(string(text[:n]))
	if !filepath.IsAbs(string(text[:n])) {
		return true, nil
	}

	return true, w.restart()
}

// open opens a name in a directory.
func open(at int, name string, flags int) (fd int, err error) {
	err = paths.Retry(func() (err error) {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, 0)
		return err
	})

	return fd, err
}
