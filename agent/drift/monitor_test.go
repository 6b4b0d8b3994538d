package drift

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/setting"
)

// machine is what a monitor watches, of which a test says what happens.
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

// happens says that something happened at a path.
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

// options are those of a monitor of a machine.
func options(m *machine) Options {
	return Options{
		Arm: m.arm, Wake: func() {}, Log: slog.New(slog.DiscardHandler),
		Look: func(string) (files.Entry, error) { return files.Entry{}, nil },
	}
}

func newMachine() *machine { return &machine{wakes: map[string]func(){}} }

// settings are resources with paths for names.
func settings(paths ...string) (out []*resource.Resource) {
	for _, path := range paths {
		out = append(out, &resource.Resource{
			Type: setting.New(setting.Plain{}),
			Spec: &setting.Spec{Common: model.Common{Name: path, Ensure: model.EnsurePresent}},
		})
	}

	return out
}

func refOf(path string) model.Ref { return model.Ref{Type: "setting", Name: path} }

// TestEventsWhileTheyAreTaken come from other goroutines than the one that takes them:
// none is lost, and none is taken twice.
func TestEventsWhileTheyAreTaken(t *testing.T) {
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
	m.Follow("key", nil, settings(paths...), model.DefaultFlapping)
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
