package drift

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
)

const key = "group.all.files"

// flapper is a monitor of /a and /b that notes what it tells, by a clock of its own.
type flapper struct {
	*testing.T
	*Monitor
	on  *machine
	now time.Time
	// told are the calls of Flapping and Calm since they were last asked for.
	told []string
	// writers are who writes /a; listening counts who is looked for.
	writers   []string
	listening int
}

func newFlapper(t *testing.T, limits model.Flapping) *flapper {
	f := &flapper{T: t, on: newMachine(), now: begin}
	o := options(f.on)
	o.Listen = func(_ context.Context, paths []string) (Writers, error) {
		if !slices.Equal(paths, []string{"/a"}) {
			return nil, errors.New("nobody can listen there")
		}
		f.listening++
		return listener{f}, nil
	}
	o.Flapping = func(s model.FlappingState) { f.told = append(f.told, "flapping "+s.Resource.Name+" "+s.Writer) }
	o.Calm = func(s model.FlappingState) { f.told = append(f.told, "calm "+s.Resource.Name) }
	f.Monitor = New(o)
	f.Follow(key, Manifest{Resources: settings("/a", "/b"), Limits: limits})

	return f
}

// listener says who writes.
type listener struct{ f *flapper }

func (l listener) Seen() []string { return l.f.writers }
func (l listener) Close()         { l.f.listening-- }

// drifts has a resource drift, and repairs it if it is not delayed.
func (f *flapper) drifts(path string) (repaired bool) {
	f.on.happens(path)

	return f.repairs(path)
}

// repairs repairs a resource if there is something to do.
func (f *flapper) repairs(path string) bool {
	due := false
	for _, d := range f.Take(f.now) {
		due = due || d.Key == key && slices.Contains(d.Refs, refOf(path))
	}
	if due {
		f.Repaired(f.Context(), key, refOf(path), f.now)
	}

	return due
}

// begins has a resource begin to flap.
func (f *flapper) begins(path string) {
	f.Helper()
	for range model.DefaultFlapping.Repairs + 1 {
		if !f.drifts(path) {
			f.Fatal("delayed before it flaps")
		}
	}
}

// tells checks what was told since it was last called, at a time from the first repair on.
func (f *flapper) tells(after time.Duration, want ...string) {
	f.Helper()
	f.now = at(after)
	f.Take(f.now)
	if !slices.Equal(f.told, want) {
		f.Errorf("after %s: told %q, want %q", after, f.told, want)
	}
	f.told = nil
}

// TestFlappingIsToldOnce when it begins, as soon as the writer is known, and once when it
// is over.
func TestFlappingIsToldOnce(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.tells(0)
	if f.listening != 1 || len(f.Flapping()) != 0 || !f.Next().Equal(at(time.Second)) {
		t.Errorf("%d listen, %v flap, next %s", f.listening, f.Flapping(), f.Next())
	}
	f.writers = []string{"puppet", "sh", "vi", "ed"}
	f.tells(time.Second, "flapping /a puppet, sh, vi")
	want := model.FlappingState{Manifest: key, Resource: refOf("/a"), Since: begin.UTC(), Writer: "puppet, sh, vi"}
	if got := f.Flapping(); len(got) != 1 || got[0] != want || f.listening != 0 {
		t.Errorf("%+v, %d listen", got, f.listening)
	}
	f.tells(12 * time.Second)
	// Left alone for the delay of 12 seconds, and a minute.
	f.tells(72*time.Second - 1)
	if !f.Next().Equal(at(72 * time.Second)) {
		t.Errorf("next %s", f.Next())
	}
	f.tells(72*time.Second, "calm /a")
	f.tells(time.Hour)
	if got := f.Flapping(); len(got) != 0 || !f.Next().IsZero() {
		t.Errorf("%v flap, next %s", got, f.Next())
	}
	f.begins("/a") // it counts from the beginning
	f.tells(time.Hour, "flapping /a puppet, sh, vi")
}

// TestFlappingByNobodyKnown is told after ten seconds, also where nobody can listen.
func TestFlappingByNobodyKnown(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/b")
	f.begins("/a")
	f.tells(tellWithin - 1)
	f.tells(tellWithin, "flapping /a ", "flapping /b ")
	if f.listening != 0 {
		t.Errorf("%d still listen", f.listening)
	}
}

// TestFlappingUnit names the unit, of which nobody can be seen who stops it.
func TestFlappingUnit(t *testing.T) {
	t.Parallel()
	f := follower{points: []watch.Point{{Kind: watch.Path, Name: "/a"}, {Kind: watch.Unit, Name: "a.service"}}}
	if got := f.unit(); got != "a.service" {
		t.Errorf("the unit is %q", got)
	}
	if got := (&follower{points: f.points[:1]}).unit(); got != "" {
		t.Errorf("the unit of a file is %q", got)
	}
}

// TestRetriesAreNoFlapping: a repair that fails, as on a full disk, is tried again and again,
// and nobody else has a part in it. What somebody changes meanwhile counts.
func TestRetriesAreNoFlapping(t *testing.T) {
	f := newFlapper(t, model.Flapping{Repairs: 5, Within: model.Duration(24 * time.Hour)})
	f.Left(key, refOf("/a"), "/a", files.Mark{})
	f.Monitor.o.Look = func(string) (files.Entry, error) { return files.Entry{}, errors.New("not as left") }
	f.on.happens("/a")
	for range 20 {
		if !f.repairs("/a") {
			t.Fatal("a try is delayed")
		}
		f.Failed(key, refOf("/a"), f.now)
		f.now = f.Next()
	}
	for range 5 {
		if !f.drifts("/a") {
			t.Fatal("delayed before it flaps")
		}
	}
	if f.drifts("/a") {
		t.Error("not delayed, though it flaps")
	}
}

// TestDelaysOfWhatFlapsDouble up to MaxDelay; others are repaired at once.
func TestDelaysOfWhatFlapsDouble(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	for _, want := range []time.Duration{12 * time.Second, 24 * time.Second, 48 * time.Second, 96 * time.Second, 192 * time.Second, MaxDelay, MaxDelay} {
		repaired := f.now
		if f.drifts("/a") {
			t.Fatalf("repaired at once, want after %s", want)
		}
		if !f.drifts("/b") {
			t.Error("another resource is delayed")
		}
		f.now = repaired.Add(want - 1)
		if f.repairs("/a") {
			t.Errorf("repaired before %s", want)
		}
		f.now = repaired.Add(want)
		if !f.repairs("/a") {
			t.Errorf("not repaired after %s", want)
		}
	}
	if len(f.told) != 1 {
		t.Errorf("told %q, want once", f.told)
	}
}

// TestFlappingOff delays nothing, and ends what flaps already, without a word.
func TestFlappingOff(t *testing.T) {
	f := newFlapper(t, model.Flapping{})
	for range 100 {
		if !f.drifts("/a") {
			t.Fatal("delayed")
		}
	}
	f.tells(time.Hour)
	f = newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.tells(tellWithin, "flapping /a ")
	if f.drifts("/a") {
		t.Fatal("not delayed")
	}
	f.Follow(key, Manifest{Resources: settings("/a", "/b"), Limits: model.Flapping{}})
	if got := f.Flapping(); len(got) != 0 || !f.repairs("/a") {
		t.Errorf("%v flap, or it is still delayed", got)
	}
	f.tells(time.Hour)
}

// TestFlappingAcrossVersions is forgotten, without a word, with a resource that a new
// version does not have, and goes on with one that is the same.
func TestFlappingAcrossVersions(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.begins("/b")
	f.tells(0)
	f.Follow(key, Manifest{Resources: settings("/b"), Limits: model.DefaultFlapping})
	if f.listening != 0 {
		t.Error("somebody listens for a resource that is gone")
	}
	f.tells(tellWithin, "flapping /b ")
	f.Follow(key, Manifest{Resources: settings("/a", "/b"), Limits: model.DefaultFlapping})
	if got := f.Flapping(); len(got) != 1 || got[0].Resource != refOf("/b") {
		t.Errorf("%v flap", got)
	}
	if !f.drifts("/a") || f.drifts("/b") {
		t.Error("what was forgotten is delayed, or what was not is repaired at once")
	}
	f.Close()
	f.tells(time.Hour)
	if got := f.Flapping(); len(got) != 0 || !f.Next().IsZero() {
		t.Errorf("%v flap, next %s", got, f.Next())
	}
}

// TestChecksOfWhatIsTouchedAllTheTime are delayed when they find nothing.
func TestChecksOfWhatIsTouchedAllTheTime(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	checks := 0
	for n := range 1000 {
		f.now = at(time.Duration(n) * 10 * time.Millisecond)
		f.on.happens("/a")
		if len(f.Take(f.now)) > 0 {
			checks++
			f.NothingDue(key, refOf("/a"), f.now)
		}
	}
	if checks < idleChecks || checks > idleChecks+5 {
		t.Errorf("%d checks in ten seconds", checks)
	}
	f.tells(time.Hour)
}
