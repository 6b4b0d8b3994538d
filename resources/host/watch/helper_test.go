package watch_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/watch"
)

// patience is how long a wake may take on a machine with much else to do.
const patience = 20 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(text), 0o644))
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	check(t, os.MkdirAll(path, 0o755))
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	check(t, os.Rename(from, to))
}

func newWatcher(t testing.TB) *watch.Watcher {
	w := watch.New(slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)

	return w
}

// observer is one who wants to know of a point.
type observer struct {
	watch.Watch
	woken chan struct{}
}

func arm(t testing.TB, w *watch.Watcher, p watch.Point) *observer {
	t.Helper()
	o := &observer{woken: make(chan struct{}, 1)}
	var err error
	o.Watch, err = w.Arm(p, func() {
		select {
		case o.woken <- struct{}{}:
		default:
		}
	})
	check(t, err)
	t.Cleanup(o.Close)

	return o
}

// waits until the observer is woken.
func (o *observer) waits(t testing.TB, what string) {
	t.Helper()
	select {
	case <-o.woken:
	case <-time.After(patience):
		t.Fatalf("nobody was woken: %s", what)
	}
}

// pass waits until all earlier events were read, and clears them: it changes a marker file, which is last in
// the queue.
func pass(t testing.TB, w *watch.Watcher, observers ...*observer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mark")
	mark := arm(t, w, watch.Point{Kind: watch.Path, Name: path})
	write(t, path, "")
	mark.waits(t, "the mark")
	mark.Close()
	// The wakes of one reading come one after the other, and the mark may be the first.
	// Another reading begins after the last of them.
	mark = arm(t, w, watch.Point{Kind: watch.Path, Name: path})
	write(t, path, "again")
	mark.waits(t, "the mark, again")
	mark.Close()
	for _, o := range observers {
		select {
		case <-o.woken:
		default:
		}
	}
}

// sleeps checks that nothing so far has woken the observer.
func (o *observer) sleeps(t testing.TB, w *watch.Watcher, what string) {
	t.Helper()
	pass(t, w)
	select {
	case <-o.woken:
		t.Errorf("woken for nothing: %s", what)
	default:
	}
}

// kernelWatches counts what the kernel watches for this process, by all descriptors.
func kernelWatches(t testing.TB) (descriptors, watches int) {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	check(t, err)
	for _, info := range infos {
		link, _ := os.Readlink(strings.Replace(info, "fdinfo", "fd", 1))
		text, err := os.ReadFile(info)
		if err != nil || !strings.Contains(link, "inotify") {
			continue
		}
		descriptors++
		watches += strings.Count(string(text), "inotify wd:")
	}

	return descriptors, watches
}

func path(name string) watch.Point { return watch.Point{Kind: watch.Path, Name: name} }
