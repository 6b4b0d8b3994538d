package drift

import (
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// TestRetriesAfterFailures: the waits grow until the resource reaches its state. Commands are not retried.
func TestRetriesAfterFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes resource.Domain
		left   bool
		want   []time.Duration
	}{
		"a path":    {resource.Paths, true, []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}},
		"a package": {resource.Packages, false, []time.Duration{8, 16, 32, 64, 128, 256, 300, 300}},
		"a command": {resource.Everything, false, nil},
	} {
		m, all, ref, now := New(options(newMachine())), notes("/a"), refOf("/a"), begin
		all[0].Type.Writes = c.writes
		m.Follow("key", Manifest{Resources: all, Limits: model.DefaultFlapping})
		if c.left {
			m.Left("key", ref, "/a", files.Mark{})
		}
		for range 2 {
			var waits []time.Duration
			for m.Note(t.Context(), "key", nil, failed(ref.Name), now); len(waits) < len(c.want); m.Note(t.Context(), "key", nil, failed(ref.Name), now) {
				next := m.Next()
				waits = append(waits, next.Sub(now)/time.Second)
				now = next
				if got := m.Take(now); len(got) != 1 || !got[0].Retry {
					t.Fatalf("%s: taken after %s: %+v", name, waits, got)
				}
			}
			if !slices.Equal(waits, c.want) {
				t.Errorf("%s is tried again after %d s, not %d", name, waits, c.want)
			}
			if m.Note(t.Context(), "key", nil, result(ref.Name), now); !m.Next().IsZero() {
				t.Errorf("%s is tried again at %s, though it is in its state", name, m.Next())
			}
		}
	}
}

// TestEventsOfAFailedResource: a service that cannot start causes events. They wait and are not flapping.
func TestEventsOfAFailedResource(t *testing.T) {
	t.Parallel()
	f := newFlapper(t, model.DefaultFlapping)
	f.Note(f.Context(), key, nil, failed("/a"), f.now)
	f.fails = true
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		failed := f.now
		f.on.happens("/a")
		if f.now = failed.Add(want*time.Second - 1); f.repairs("/a") {
			t.Errorf("tried again before %d s are over", want)
		}
		if f.now = failed.Add(want * time.Second); !f.repairs("/a") {
			t.Errorf("not tried after %d s", want)
		}
	}
	f.reports(time.Hour)
	f.Note(f.Context(), key, nil, result("/a"), f.now)
	if !f.drifts("/a") {
		t.Error("drift waits, though it was in its state")
	}
}
