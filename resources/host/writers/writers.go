// Package writers finds out which processes write a file, for the message about a
// resource that is changed again and again. Everything it returns is a hint: a user
// chooses the names of their processes, may write through those of others, and may
// write without being seen (mmap). Arguments of processes are never read: they may hold
// secrets.
package writers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// maxPaths bounds the paths of a listener.
	maxPaths = 64
	// maxWriters bounds what is remembered: whoever may write the files may do so by
	// any number of processes.
	maxWriters = 16
)

// How a writer was found.
const (
	// byFanotify means that the kernel reported a change of this process.
	byFanotify = "fanotify"
	// byOpenFile means that the process had the file open for writing when it was looked for.
	byOpenFile = "open"
)

// writer is a process that writes a file. Its texts are printable ASCII of bounded length.
type writer struct {
	// Path is which of the paths it writes.
	Path string
	PID  int
	// Name is what the process calls itself, at most 16 bytes; empty when it was gone
	// before it could be looked at, as are the following fields.
	Name string
	// Exe is the path of its program.
	Exe string
	// Unit is its systemd unit, empty where it has none.
	Unit string
	// UID is its effective user, -1 when that is not known.
	UID int
	// How is byFanotify or byOpenFile.
	How string
}

// String returns the writer in a few words, without its path.
func (w writer) String() string {
	if w.Name == "" {
		return fmt.Sprintf("pid %d, already gone", w.PID)
	}
	out := fmt.Sprintf("%s (pid %d", w.Name, w.PID)
	for _, text := range []string{w.Exe, w.Unit} {
		if text != "" {
			out += ", " + text
		}
	}
	if w.UID >= 0 {
		out += fmt.Sprintf(", user %d", w.UID)
	}

	return out + ")"
}

// Listener notes who writes some files. Make it with Listen, and close it.
type Listener struct {
	targets []target
	// group is nil where fanotify is not permitted.
	group *group
	mu    sync.Mutex
	// seen are those that fanotify has reported, open those that a search has found. They
	// have the latest first.
	seen, open []writer
	// searching is that a search is under way, time what is left of searchTime.
	searching bool
	time      time.Duration
	closed    atomic.Bool
	reading   sync.WaitGroup
	// unbind undoes that the end of the context closes the group.
	unbind func() bool
}

// target is a path, the same without links in its directories, and the user that its directory
// belongs to.
type target struct {
	path, real string
	owner      uint32
}

// Listen notes who writes the files at paths, the first 64 of them, until ctx ends or the
// listener is closed. Where the kernel permits it (CAP_SYS_ADMIN, Linux 5.9 or newer) the
// directories of the files are listened at by fanotify: a change of content or
// attributes, a replaced, made or removed file. A path whose directory cannot be
// opened safely, see paths.OpenDir, is left out; the error means that none can. A process
// needs one listener at a time: the kernel counts them.
func Listen(ctx context.Context, files []string) (*Listener, error) {
	l := &Listener{group: newGroup(), time: searchTime, unbind: func() bool { return true }}
	var failed []error
	for _, path := range files[:min(len(files), maxPaths)] {
		if err := l.add(path); err != nil {
			failed = append(failed, err)
		}
	}
	if len(l.targets) == 0 {
		l.Close()
		return nil, fmt.Errorf("no file to listen at: %w", errors.Join(failed...))
	}
	if l.group != nil {
		l.reading.Go(l.read)
		l.unbind = context.AfterFunc(ctx, l.group.close)
	}

	return l, nil
}

// add opens the directory of a path for a moment, and listens at it.
func (l *Listener) add(path string) error {
	dir, err := paths.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir.Fd(), &st); err != nil {
		return err
	}
	l.targets = append(l.targets, target{path: path, real: filepath.Join(real, filepath.Base(path)), owner: st.Uid})
	if l.group != nil {
		l.group.mark(dir, path)
	}

	return nil
}

// Close ends the listening and waits for it. What was seen can still be read.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed.Store(true)
	l.mu.Unlock()
	l.unbind()
	if l.group != nil {
		l.group.close()
	}
	l.reading.Wait()
}

// Seen returns the writers that are known, the latest first, and does not wait: what
// fanotify has reported until now, else the processes that had one of the files open for
// writing when they were looked for. Then it has them looked for once more, for a later call;
// that is done in the background, and no more once all searches have taken searchTime. Without
// CAP_SYS_PTRACE these are processes of the same user. This process is left out.
// Processes that differ in nothing but their number are one, with the number of the latest.
// Each is named in a few words, printable ASCII of bounded length.
// Those that had ended before they could be looked at come last, with the owner of the directory.
func (l *Listener) Seen() []string {
	var out, ended []string
	for _, w := range l.writers() {
		if w.Name != "" {
			out = append(out, w.String())
			continue
		}
		text := w.String()
		if at := slices.IndexFunc(l.targets, func(t target) bool { return t.path == w.Path }); at >= 0 {
			text += fmt.Sprintf(", in a directory of user %d", l.targets[at].owner)
		}
		ended = append(ended, text)
	}

	return append(out, ended...)
}

func (l *Listener) writers() []writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) > 0 {
		return slices.Clone(l.seen)
	}
	if !l.searching && l.time > 0 && !l.closed.Load() {
		l.searching = true
		l.reading.Go(l.search)
	}

	return slices.Clone(l.open)
}

// read notes events until the group is closed.
func (l *Listener) read() {
	buf := make([]byte, 16<<10)
	for {
		n, err := l.group.file.Read(buf)
		if err != nil {
			return
		}
		l.note(parse(buf[:n]))
	}
}

// note remembers who caused events, each process looked at once, and closes their
// descriptors of processes.
func (l *Listener) note(events []event) {
	known := map[int]writer{}
	for _, e := range events {
		path, ours := l.group.files[e.place]
		if !ours || e.pid <= 0 || e.pid == os.Getpid() {
			continue
		}
		w, found := known[e.pid]
		if !found {
			w = identifyBy(e.pid, e.pidfd)
			known[e.pid] = w
		}
		w.Path = path
		l.mu.Lock()
		l.seen = remember(l.seen, w)
		l.mu.Unlock()
	}
	for _, e := range events {
		if e.pidfd >= 0 {
			_ = unix.Close(e.pidfd)
		}
	}
}

// remember puts a writer in front of the others, in place of one that it repeats.
func remember(seen []writer, w writer) []writer {
	at := slices.IndexFunc(seen, func(s writer) bool { return s.repeatedBy(w) })
	if at >= 0 {
		if w.Exe == "" && seen[at].PID == w.PID {
			w = seen[at]
		}
		seen = slices.Delete(seen, at, at+1)
	}
	seen = slices.Insert(seen, 0, w)

	return seen[:min(len(seen), maxWriters)]
}

// repeatedBy reports whether w is the same process, or one that differs in nothing but
// its number. A process that ends is the same with less to be known of it.
func (s writer) repeatedBy(w writer) bool {
	if w.Exe == "" && s.PID == w.PID && s.Path == w.Path {
		return true
	}
	s.PID = w.PID

	return s == w
}

// printable returns the beginning of a text, with a question mark for what is not
// printable ASCII: escape sequences of terminals, and line ends.
func printable(text string, length int) string {
	text = text[:min(len(text), length)]
	clean := []byte(text)
	for i, c := range clean {
		if c < ' ' || c > '~' {
			clean[i] = '?'
		}
	}

	return strings.TrimSpace(string(clean))
}
