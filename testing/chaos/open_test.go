package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// holdings are what a process has open.
type holdings struct {
	// descriptors counts open files by kind; goroutines contains a count and their list.
	descriptors map[string]int
	goroutines  int
	list        string
}

// open returns what the agent holds now.
func (w judge) open() holdings {
	w.t.Helper()
	var r holdings
	var err error
	if r.descriptors, err = w.descriptors(); err != nil {
		w.t.Fatal(err)
	}
	_ = os.Remove(w.goroutines())
	w.agent.signal(syscall.SIGUSR1)
	await(w.t, "the agent lists its goroutines", func() error {
		text, err := os.ReadFile(w.goroutines())
		if err == nil {
			r.list = string(text)
			_, err = fmt.Sscanf(r.list, "goroutine profile: total %d", &r.goroutines)
		}
		return err
	})

	return r
}

// checkOpen returns what the agent has open beyond what one at rest has.
func (w judge) checkOpen() error {
	if w.agent == nil || w.usual.descriptors == nil {
		return nil
	}
	now := w.open()
	if now.goroutines > w.usual.goroutines {
		return fmt.Errorf("%d goroutines, not %d: %s\nnot: %s", now.goroutines, w.usual.goroutines, now.list, w.usual.list)
	}
	if more := difference(now.descriptors, w.usual.descriptors); len(more) > 0 {
		return fmt.Errorf("descriptors: %v", more)
	}
	children, err := childrenOf(w.agent.pid())
	if err != nil || len(children) > 0 {
		return fmt.Errorf("children: %v, %w", children, err)
	}

	return nil
}

// descriptors returns what the descriptors of the agent are of, without numbers.
func (w judge) descriptors() (map[string]int, error) {
	dir := fmt.Sprintf("/proc/%d/fd", w.agent.pid())
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	numbers := regexp.MustCompile(`\[[0-9]+\]|[0-9]{20}`)
	own := strings.NewReplacer(fmt.Sprintf("/proc/%d/", w.agent.pid()), "/proc/self/") // a restarted goroutine has another number
	out := map[string]int{}
	for _, e := range entries {
		if of, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil { // else it was closed
			out[numbers.ReplaceAllString(strings.TrimPrefix(own.Replace(of), w.root), "")]++
		}
	}

	return out, nil
}

// difference returns what now has beyond usual.
func difference(now, usual map[string]int) []string {
	var out []string
	for _, of := range slices.Sorted(maps.Keys(now)) {
		most := usual[of]
		if strings.HasSuffix(of, "/outbox/.stable.log") {
			most = max(most, 1) // the segment for stable runs opens with the first of them
		}
		if now[of] > most {
			out = append(out, fmt.Sprintf("%d of %s, not %d", now[of], of, usual[of]))
		}
	}

	return out
}

// childrenOf returns the names of the processes that a process has started.
func childrenOf(pid int) ([]string, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		end := bytes.LastIndexByte(text, ')')
		if fields := strings.Fields(string(text[end+1:])); len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			out = append(out, string(text[:end+1]))
		}
	}

	return out, nil
}
