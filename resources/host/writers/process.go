package writers

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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

// identify returns the known properties of the process with a number.
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
