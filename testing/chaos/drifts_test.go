package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// eventsOverflow loses events: while the agent stands still, 100,000 come.
func eventsOverflow(t *testing.T, r *rand.Rand) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	w.agent.signal(syscall.SIGSTOP)
	// The same event twice in a row is one.
	for i := range max(100_000, 2*most) {
		if err := os.Chmod(w.files[i%2*2], os.FileMode(0o600+i%2)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		w.driftSome(w.rand)
	}
	w.agent.signal(syscall.SIGCONT)
	w.judge()
	w.end()
}

// directoryAway renames a directory away and back, while files in it drift, there and
// elsewhere.
func directoryAway(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	away := filepath.Join(w.root, "away")
	w.during(func() {
		for range 3 {
			w.pass(200 * time.Millisecond)
			if err := os.Rename(w.sub(), away); err != nil {
				t.Fatal(err)
			}
			w.pass(200 * time.Millisecond)
			if w.rand.IntN(2) == 0 {
				w.driftOf(w.rand, filepath.Join(away, filepath.Base(w.files[1])))
			}
			if err := os.Rename(away, w.sub()); err != nil {
				t.Fatal(err)
			}
		}
	})
	w.judge()
	w.end()
}

// manyDrifts changes a thousand files in a second.
func manyDrifts(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 100, srv.URL(), store)
	tick := time.NewTicker(time.Millisecond)
	for range 1000 {
		<-tick.C
		w.driftSome(w.rand)
	}
	tick.Stop()
	w.judge()
	w.end()
}

// manyChanges puts version after version, and files drift.
func manyChanges(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	for range scaled(t, 1000, 10_000) {
		w.put()
	}
	w.judge()
	w.end()
}

// TestFlat repairs 100,000 drifts, each before the next: memory and descriptors stay as
// they are, and each repair has its reports.
func TestFlat(t *testing.T) {
	t.Parallel()
	most := scaled(t, 400, 100_000)
	srv, store := inProcess(t)
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), 100, srv.URL(), store)
	var early int
	for i := range most {
		path := w.files[1+i%(len(w.files)-1)] // nothing follows these
		before := w.history.count(path)
		if err := overwrite(path, "drift"); err != nil {
			t.Fatal(err)
		}
		w.history.awaitMore(path, before)
		if i == most/5 {
			early = w.resident()
		}
	}
	w.judge()
	late := w.resident()
	t.Logf("%d kB resident after %d drifts, %d kB after %d", early, most/5, late, most)
	if late > early+early/4+8<<10 {
		t.Errorf("%d kB resident after %d drifts, %d kB after %d", early, most/5, late, most)
	}
	w.end()
}

// resident returns the resident memory of the agent in kB.
func (w *world) resident() int {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.agent.pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nVmRSS:")
	var kB int
	if _, err := fmt.Sscan(after, &kB); err != nil {
		w.t.Fatal(err)
	}

	return kB
}
