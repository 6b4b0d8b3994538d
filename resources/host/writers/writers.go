// Package writers finds the processes that write a file, for messages about flapping resources. All results
// are hints: users choose the names of their processes, may write through other processes, and may write
// unseen (mmap). Package writers never reads process arguments, which may contain secrets.
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
	// maxPaths limits the paths of a listener.
	maxPaths = 64
	// maxWriters limits the remembered writers. A user may write with any number of processes.
	maxWriters = 16
)

// How the listener found a writer.
const (
	// byFanotify means that the kernel reported a change of this process.
	byFanotify = "fanotify"
	// byOpenFile means that a search found the file open for writing in the process.
	byOpenFile = "open"
)

// writer is a process that writes a file. Its texts are printable ASCII of limited length.
type writer struct {
	// Path is the path that it writes.
	Path string
	PID  int
	// Name is the process name, at most 16 bytes. Name and the following fields are empty if the process
	// ended before it was inspected.
	Name string
	// Exe is the path of its program.
	Exe string
	// Unit is its systemd unit, empty for none.
	Unit string
	// UID is its effective user, -1 if it is unknown.
	UID int
	// How is byFanotify or byOpenFile.
	How string
}

// String describes the writer in a few words without its path.
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

// Listener records the writers of files. Create it with Listen and close it.
type Listener struct {
	targets []target
	// group is nil if fanotify is not permitted.
	group *group
	mu    sync.Mutex
	// seen are the writers from fanotify, open the writers from a search, the latest first.
	seen, open []writer
	// searching means that a search is running. time is the remaining searchTime.
	searching bool
	time      time.Duration
	closed    atomic.Bool
	reading   sync.WaitGroup
	// unbind stops the context from closing the group.
	unbind func() bool
}

// target is a path, the same path without links in its directories, and the owner of its directory.
type target struct {
	path, real string
	owner      uint32
}

// Listen records the writers of the files at paths, at most 64, until ctx ends or the listener is closed. If
// the kernel permits it (CAP_SYS_ADMIN, Linux 5.9 or newer), fanotify reports changes of content and
// attributes, and replaced, created and removed files. Listen skips a path whose directory cannot be opened
// safely, see paths.OpenDir. It returns an error if all paths are skipped. Use one listener per process,
// because the kernel limits their number.
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
		return nil, fmt.Errorf("no file to watch for writers: %w", errors.Join(failed...))
	}
	if l.group != nil {
		l.reading.Go(l.read)
		l.unbind = context.AfterFunc(ctx, l.group.close)
	}

	return l, nil
}

// add opens the directory of a path briefly and marks it.
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

// Close ends the listener and waits for it. Seen still returns the recorded writers.
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

// Seen returns the known writers, the latest first, without waiting: the writers that fanotify reported,
// otherwise the processes that had a file open for writing at the last search. It then starts another search
// in the background for a later call, until all searches have used searchTime. Without CAP_SYS_PTRACE a
// search finds only processes of the same user. This process is never included. Processes that differ only in
// their number count as one, with the latest number. Each is described in a few words of printable ASCII of
// limited length. Processes that ended before they were inspected come last, with the owner of the directory.
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

// note records the processes of events, inspects each process once, and closes the process descriptors.
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

// remember puts a writer before the others and replaces an equal writer.
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

// repeatedBy reports whether w is the same process, or a process that differs only in its number. An ended
// process equals the same process with fewer known properties.
func (s writer) repeatedBy(w writer) bool {
	if w.Exe == "" && s.PID == w.PID && s.Path == w.Path {
		return true
	}
	s.PID = w.PID

	return s == w
}

// printable returns the beginning of a text, with a question mark for each character that is not printable
// ASCII, such as terminal escapes and line ends.
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
