package drift

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/note"
)

// machine is a machine with events that a test controls.
type machine struct {
	mu    sync.Mutex
	wakes map[string]func()
}

func (m *machine) arm(p watch.Point, wake func()) (watch.Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes[p.Name] = wake

	return armed{}, nil
}

// happens sends an event at a path.
func (m *machine) happens(path string) {
	m.mu.Lock()
	wake := m.wakes[path]
	m.mu.Unlock()
	wake()
}

type armed struct{}

func (armed) Err() error    { return nil }
func (armed) Written() bool { return false }
func (armed) Close()        {}

// options returns the options of a monitor of a machine.
func options(m *machine) Options {
	return Options{
		Arm: m.arm, Wake: func() {}, Log: slog.New(slog.DiscardHandler),
		Look: func(string) (files.Entry, error) { return files.Entry{}, nil },
	}
}

func newMachine() *machine { return &machine{wakes: map[string]func(){}} }

// notes returns resources with the names paths.
func notes(paths ...string) (out []*resource.Resource) {
	for _, path := range paths {
		out = append(out, &resource.Resource{
			Type: note.New(note.Plain{}),
			Spec: &note.Spec{Common: model.Common{Name: path, Ensure: model.EnsurePresent}},
		})
	}

	return out
}

func refOf(path string) model.Ref { return model.Ref{Type: "note", Name: path} }

// TestConcurrentEvents: events from other goroutines are neither lost nor taken twice.
func TestConcurrentEvents(t *testing.T) {
	const count = 1000
	var paths []string
	for i := range count {
		paths = append(paths, "/"+strconv.Itoa(i))
	}
	on, woken := newMachine(), make(chan struct{}, 1)
	o := options(on)
	o.Wake = func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	m := New(o)
	m.Follow("key", Manifest{Resources: notes(paths...), Limits: model.DefaultFlapping})
	for half := range slices.Chunk(paths, count/2) {
		go func() {
			for _, path := range half {
				on.happens(path)
			}
		}()
	}
	taken := map[model.Ref]bool{}
	for len(taken) < count {
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d events were taken", len(taken), count)
		}
		for _, d := range m.Take(time.Now()) {
			for _, ref := range d.Refs {
				if taken[ref] {
					t.Errorf("%s was taken twice", ref)
				}
				taken[ref] = true
			}
		}
	}
	on.happens("/0")
	m.Remove("key")
	if drifted := m.Take(time.Now()); len(drifted) != 0 {
		t.Errorf("%v of a manifest that nobody follows", drifted)
	}
}

// touched is a watch with a written file.
type touched struct {
	armed
	written bool
}

func (w *touched) Written() bool { return w.written }

// TestNoLooksWhileDelayed: a delayed resource is checked once, after its delay, and repaired if it changed.
func TestNoLooksWhileDelayed(t *testing.T) {
	for name, c := range map[string]struct {
		mode    uint32
		written bool
		drifted int
		looks   int
	}{
		"as it was left": {0, false, 0, 1},
		"another mode":   {0o600, false, 1, 1},
		"written to":     {0, true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			looks, w := 0, &touched{}
			entry := files.Entry{}
			on := newMachine()
			o := options(on)
			o.Arm = func(p watch.Point, wake func()) (watch.Watch, error) {
				_, _ = on.arm(p, wake)
				return w, nil
			}
			o.Look = func(string) (files.Entry, error) { looks++; return entry, nil }
			m := New(o)
			m.Follow("key", Manifest{Resources: notes("/f"), Limits: model.DefaultFlapping})
			m.Left("key", refOf("/f"), "/f", entry.Mark())
			for range 10 {
				repair := result("/f")
				repair.Changed = true
				m.Note(t.Context(), "key", nil, repair, begin)
			}
			end := m.manifests["key"].resources[refOf("/f")].backoff.until
			entry.Mode, w.written = c.mode, c.written
			for range 100 {
				on.happens("/f")
				if drifted := m.Take(end.Add(-time.Second)); len(drifted) != 0 || looks != 0 {
					t.Fatalf("drifted %v after %d looks", drifted, looks)
				}
			}
			if drifted := m.Take(end); len(drifted) != c.drifted || looks != c.looks {
				t.Errorf("drifted %v after %d looks", drifted, looks)
			}
		})
	}
}

// TestUnwatchedResourcesAreOneLine: the log has one line for each cause with the number of resources, and
// each resource at level debug.
func TestUnwatchedResourcesAreOneLine(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("/%04d", i))
	}
	var log bytes.Buffer
	on := newMachine()
	o := options(on)
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Arm = func(p watch.Point, wake func()) (watch.Watch, error) {
		switch {
		case p.Name < "/0100":
			return on.arm(p, wake)
		case p.Name == "/0500":
			return nil, &watch.PointError{Point: p, Err: watch.ErrNone}
		default:
			return nil, &watch.PointError{Point: p, Err: watch.ErrLimit}
		}
	}
	m := New(o)
	m.Follow("key", Manifest{Resources: notes(paths...), Limits: model.DefaultFlapping})
	lines := func(level string) (out []string) {
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "level="+level) {
				out = append(out, line)
			}
		}
		return out
	}
	warned := lines("WARN")
	if len(warned) != 2 || !strings.Contains(warned[1], `manifest=key count=899 resources="note#/0100, note#/0101, note#/0102, …" error="limit of watches reached"`) ||
		!strings.Contains(warned[0], "count=1 resources=note#/0500 error=") {
		t.Errorf("logged\n%s", strings.Join(warned, ""))
	}
	if told := lines("DEBUG"); len(told) != 900 {
		t.Errorf("%d lines at debug, not one for each", len(told))
	}
	// The same resources are not logged again.
	m.Take(time.Now().Add(2 * DefaultPoll))
	m.Follow("key", Manifest{Resources: notes(paths...), Limits: model.DefaultFlapping})
	if again := lines("WARN"); len(again) != 2 {
		t.Errorf("logged again\n%s", strings.Join(again, ""))
	}
}
