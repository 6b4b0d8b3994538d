package command

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// markPrefix is the prefix of an environment entry that only the processes of one run have.
const markPrefix = "MUSTER_RUN="

// killTree kills a command without a control group, and its processes: its session, its descendants, and
// orphans in other sessions whose environment contains the mark of the command. It stops all of them before
// it kills any, so that none escapes.
func killTree(leader int, env []string) {
	mark := ""
	for _, entry := range env {
		if strings.HasPrefix(entry, markPrefix) {
			mark = entry
		}
	}
	stopped := map[int]bool{}
	for found := true; found; {
		found = false
		for _, pid := range tree(leader, mark) {
			if !stopped[pid] {
				stopped[pid], found = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// process is an entry of /proc.
type process struct {
	pid, parent, session int
	// began is the start time, in ticks since boot.
	began int
}

// tree returns the processes of a command.
func tree(leader int, mark string) []int {
	all := processes()
	at := slices.IndexFunc(all, func(p process) bool { return p.pid == leader })
	if at < 0 {
		return nil
	}
	began, in := all[at].began, map[int]bool{leader: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && p.began >= began && (in[p.parent] || p.session == leader || isOrphan(p, mark)) {
				in[p.pid], grown = true, true
			}
		}
	}
	var out []int
	for pid := range in {
		out = append(out, pid)
	}

	return out
}

// isOrphan reports whether a process with the mark has lost its parent. Other processes with the mark may
// belong to another command of the run.
func isOrphan(p process, mark string) bool {
	return p.parent != os.Getpid() && hasMark(p.pid, mark) && !hasMark(p.parent, mark)
}

// hasMark reports whether the environment of a process contains an entry.
func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")

	return err == nil && mark != "" && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(entry []byte) bool { return string(entry) == mark })
}

// processes returns all processes.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat")
		// The program name is in parentheses and may contain any character.
		if p, ok := parseStat(string(stat[bytes.LastIndexByte(stat, ')')+1:])); ok {
			p.pid = pid
			out = append(out, p)
		}
	}

	return out
}

// parseStat parses the fields after the program name: state, parent, group, session and, fifteen fields
// further, the start time.
func parseStat(text string) (process, bool) {
	fields := strings.Fields(text)
	if len(fields) < 20 {
		return process{}, false
	}
	var p process
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(fields[1])
	p.session, errs[1] = strconv.Atoi(fields[3])
	p.began, errs[2] = strconv.Atoi(fields[19])

	return p, errs == [3]error{}
}
