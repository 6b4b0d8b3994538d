package writers

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxOpen limits the inspected descriptors of one process, maxLooks the descriptors of all processes. A
	// user can open any number.
	maxOpen  = 1 << 12
	maxLooks = 1 << 17
	// lookAgain is the number of descriptors between two checks for the end of the search.
	lookAgain = 64
)

type file struct {
	path         string
	major, minor uint32
	inode        uint64
}

// searchTime limits the CPU time of all searches of a listener together.
const searchTime = 200 * time.Millisecond

// search finds the processes that have files open, until its time is over.
type search struct {
	files map[string]file
	looks int
	found []writer
	over  func() bool
}

// search records the processes that have one of the files open for writing.
func (l *Listener) search() {
	runtime.LockOSThread() // CPU time is counted per thread
	defer runtime.UnlockOSThread()
	began := threadTime()
	over := func() bool { return l.closed.Load() || threadTime()-began > l.time }
	found := holders(l.targets, over)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.searching = false; !over() {
		l.open = nil // otherwise an ended process stays in the list
	}
	for _, w := range found {
		l.open = remember(l.open, w)
	}
	l.time -= threadTime() - began
}

func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // never fails for the calling thread

	return time.Duration(ts.Nano())
}

// holders returns the processes that have one of the files open for writing. The result is incomplete if the
// time is over.
func holders(targets []target, over func() bool) []writer {
	s := search{files: map[string]file{}, over: over}
	for _, t := range targets {
		if f, ok := look(t.real, unix.AT_SYMLINK_NOFOLLOW); ok {
			f.path = t.path
			s.files[t.real] = f
		}
	}
	if len(s.files) == 0 {
		return nil
	}
	for _, name := range names("/proc", -1) {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() && s.looks < maxLooks && !over() {
			s.process(pid)
		}
	}

	return s.found
}

func (s *search) process(pid int) {
	dir := procPath(pid, "fd")
	for _, name := range names(dir, maxOpen) {
		if s.looks++; s.looks%lookAgain == 0 && s.over() {
			return
		}
		link := filepath.Join(dir, name)
		f, found := s.holds(link)
		if !found {
			continue
		}
		w := identify(pid)
		w.Path, w.How = f.path, byOpenFile
		// Otherwise the process has ended, and another process may have its number.
		if again, found := s.holds(link); found && again == f && w.Name != "" {
			s.found = append(s.found, w)
		}
	}
}

// holds returns the file that a descriptor has open for writing. It compares the path first, so that it
// inspects few descriptors.
func (s *search) holds(link string) (file, bool) {
	real, err := os.Readlink(link)
	f, found := s.files[real]
	if err != nil || !found {
		return file{}, false
	}
	mode, err := os.Lstat(link)
	if err != nil || mode.Mode()&0o200 == 0 {
		return file{}, false
	}
	open, ok := look(link, 0)
	open.path = f.path

	return f, ok && open == f
}

// look identifies a file from the data of the kernel. It does not access the file system of a user, where
// another mount namespace has the same path, so it cannot block.
func look(path string, flags int) (file, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, flags|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)

	return file{major: st.Dev_major, minor: st.Dev_minor, inode: st.Ino}, err == nil
}

func names(dir string, most int) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	out, _ := f.Readdirnames(most)

	return out
}

const (
	maxName = 16
	maxText = 256
)

// identifyBy inspects the process of an event. For an ended process it returns only the number, which another
// process may have now.
func identifyBy(pid, pidfd int) writer {
	w := identify(pid)
	w.How = byFanotify
	ended := pidfd == gonePidfd || pidfd >= 0 && unix.PidfdSendSignal(pidfd, 0, nil, 0) == unix.ESRCH
	if ended {
		return writer{PID: pid, UID: -1, How: byFanotify}
	}

	return w
}

func identify(pid int) writer {
	read := func(name string) string {
		data, _ := os.ReadFile(procPath(pid, name))
		return string(data)
	}
	exe, _ := os.Readlink(procPath(pid, "exe"))

	return writer{
		PID:  pid,
		Name: printable(strings.TrimSuffix(read("comm"), "\n"), maxName),
		Exe:  printable(exe, maxText),
		Unit: printable(unitOf(read("cgroup")), maxText),
		UID:  effectiveUser(read("status")),
	}
}

func procPath(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// effectiveUser reads the user from /proc/PID/status, or returns -1. The kernel escapes line ends in process
// names.
func effectiveUser(status string) int {
	for line := range strings.Lines(status) {
		rest, found := strings.CutPrefix(line, "Uid:")
		if fields := strings.Fields(rest); found && len(fields) > 1 {
			if uid, err := strconv.Atoi(fields[1]); err == nil {
				return uid
			}
		}
	}

	return -1
}

// unit matches the unit of a process: the first component below the slices. The unit itself creates and names
// the lower components.
var unit = regexp.MustCompile(`(?m)^(?:0:|[0-9]+:name=systemd):/(?:[^/\n]*\.slice/)*_?([^/\n]+\.(?:service|scope|socket|mount|swap))(?:/|$)`)

// unitOf reads the unit from /proc/PID/cgroup. It is empty for a process without a unit.
func unitOf(cgroup string) string {
	found := unit.FindStringSubmatch(cgroup)
	if found == nil {
		return ""
	}

	return found[1]
}
