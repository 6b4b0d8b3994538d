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

// flapper is a monitor of /a and /b with a fake clock.
type flapper struct {
	*testing.T
	*Monitor
	on  *machine
	now time.Time
	// reported holds the results of Flaps since the last check.
	reported []string
	// fails makes repairs fail.
	fails bool
	// writers are the writers of /a. listening counts the searches for writers.
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
	f.Monitor = New(o)
	f.Follow(key, Manifest{Resources: notes("/a", "/b"), Limits: limits})

	return f
}

// listener returns the writers of a flapper.
type listener struct{ f *flapper }

func (l listener) Seen() []string { return l.f.writers }
func (l listener) Close()         { l.f.listening-- }

// take calls Flaps and Take, as the runner does.
func (f *flapper) take() []Drift {
	began, ended := f.Flaps(f.now)
	for _, s := range began {
		f.reported = append(f.reported, "flapping "+s.Resource.Name+" "+s.Writer)
	}
	for _, s := range ended {
		f.reported = append(f.reported, "calm "+s.Resource.Name)
	}

	return f.Take(f.now)
}

// result returns a result of a drift repair.
func result(path string) *model.Transaction {
	return &model.Transaction{Type: refOf(path).Type, Name: path, Cause: model.CauseDrift}
}

// failed returns the result of a failed attempt that no drift caused.
func failed(path string) *model.Transaction {
	t := result(path)
	t.Cause, t.Failed = model.CauseSchedule, true

	return t
}

// drifts lets a resource drift. It repairs the resource unless its repair is delayed.
func (f *flapper) drifts(path string) (repaired bool) {
	f.on.happens(path)

	return f.repairs(path)
}

// repairs repairs a resource if it is due.
func (f *flapper) repairs(path string) bool {
	due := false
	for _, d := range f.take() {
		due = due || d.Key == key && slices.Contains(d.Refs, refOf(path))
	}
	if due {
		t := result(path)
		t.Changed, t.Failed = !f.fails, f.fails
		f.Note(f.Context(), key, nil, t, f.now)
	}

	return due
}

// begins lets a resource begin to flap.
func (f *flapper) begins(path string) {
	f.Helper()
	for range model.DefaultFlapping.Repairs + 1 {
		if !f.drifts(path) {
			f.Fatal("delayed before it flaps")
		}
	}
}

// reports compares the calls since the last check. after is the time since the first repair.
func (f *flapper) reports(after time.Duration, want ...string) {
	f.Helper()
	f.now = at(after)
	f.take()
	if !slices.Equal(f.reported, want) {
		f.Errorf("after %s: reported %q, want %q", after, f.reported, want)
	}
	f.reported = nil
}

// TestFlappingIsReportedOnce: Flapping is called once the writer is known, and Calm once at the end.
func TestFlappingIsReportedOnce(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.reports(0)
	if f.listening != 1 || len(f.Flapping()) != 0 || !f.Next().Equal(at(time.Second)) {
		t.Errorf("%d listen, %v flap, next %s", f.listening, f.Flapping(), f.Next())
	}
	f.writers = []string{"puppet", "sh", "vi", "ed"}
	f.reports(time.Second, "flapping /a puppet, sh, vi")
	want := model.FlappingState{Manifest: key, Resource: refOf("/a"), Since: begin.UTC(), Writer: "puppet, sh, vi"}
	if got := f.Flapping(); len(got) != 1 || got[0] != want || f.listening != 0 {
		t.Errorf("%+v, %d listen", got, f.listening)
	}
	f.reports(12 * time.Second)
	// The delay is 12 seconds and the period of the limits one minute.
	f.reports(72*time.Second - 1)
	if !f.Next().Equal(at(72 * time.Second)) {
		t.Errorf("next %s", f.Next())
	}
	f.reports(72*time.Second, "calm /a")
	f.reports(time.Hour)
	if got := f.Flapping(); len(got) != 0 || !f.Next().IsZero() {
		t.Errorf("%v flap, next %s", got, f.Next())
	}
	f.begins("/a") // it counts from the beginning
	f.reports(time.Hour, "flapping /a puppet, sh, vi")
}

// TestFlappingByAnUnknownWriter: Flapping is called after ten seconds.
func TestFlappingByAnUnknownWriter(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/b")
	f.begins("/a")
	f.reports(reportWithin - 1)
	f.reports(reportWithin, "flapping /a ", "flapping /b ")
	if f.listening != 0 {
		t.Errorf("%d still listen", f.listening)
	}
}

// TestFlappingUnit: the state names the unit, because no search finds the program that stops it.
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

// TestRetriesAreNotFlapping: retries of a failed repair, as on a full disk, do not count as repairs, but
// changes by other programs do.
func TestRetriesAreNotFlapping(t *testing.T) {
	f := newFlapper(t, model.Flapping{Repairs: 5, Within: model.Duration(24 * time.Hour)})
	f.Left(key, refOf("/a"), "/a", files.Mark{})
	f.Monitor.o.Look = func(string) (files.Entry, error) { return files.Entry{}, errors.New("not as left") }
	f.on.happens("/a")
	f.fails = true
	for range 20 {
		if !f.repairs("/a") {
			t.Fatal("a try is delayed")
		}
		f.now = f.Next()
	}
	f.fails = false
	for range 5 {
		if !f.drifts("/a") {
			t.Fatal("delayed before it flaps")
		}
	}
	if f.drifts("/a") {
		t.Error("not delayed, though it flaps")
	}
}

// TestDelaysDouble: the delay of a resource that flaps doubles up to MaxDelay. Other resources have no
// delay.
func TestDelaysDouble(t *testing.T) {
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
	if len(f.reported) != 1 {
		t.Errorf("reported %q, want once", f.reported)
	}
}

// TestFlappingOff: without limits no repair is delayed, and flapping ends without a call.
func TestFlappingOff(t *testing.T) {
	f := newFlapper(t, model.Flapping{})
	for range 100 {
		if !f.drifts("/a") {
			t.Fatal("delayed")
		}
	}
	f.reports(time.Hour)
	f = newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.reports(reportWithin, "flapping /a ")
	if f.drifts("/a") {
		t.Fatal("not delayed")
	}
	f.Follow(key, Manifest{Resources: notes("/a", "/b"), Limits: model.Flapping{}})
	if got := f.Flapping(); len(got) != 0 || !f.repairs("/a") {
		t.Errorf("%v flap, or it is still delayed", got)
	}
	f.reports(time.Hour)
}

// TestFlappingAcrossVersions: an unchanged resource of a new version still flaps. A removed resource is
// forgotten without a call.
func TestFlappingAcrossVersions(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	f.begins("/a")
	f.begins("/b")
	f.reports(0)
	f.Follow(key, Manifest{Resources: notes("/b"), Limits: model.DefaultFlapping})
	if f.listening != 0 {
		t.Error("somebody listens for a resource that is gone")
	}
	f.reports(reportWithin, "flapping /b ")
	f.Follow(key, Manifest{Resources: notes("/a", "/b"), Limits: model.DefaultFlapping})
	if got := f.Flapping(); len(got) != 1 || got[0].Resource != refOf("/b") {
		t.Errorf("%v flap", got)
	}
	if !f.drifts("/a") || f.drifts("/b") {
		t.Error("what was forgotten is delayed, or what was not is repaired at once")
	}
	f.Close()
	f.reports(time.Hour)
	if got := f.Flapping(); len(got) != 0 || !f.Next().IsZero() {
		t.Errorf("%v flap, next %s", got, f.Next())
	}
}

// TestChecksOfManyEvents: checks that find nothing are delayed.
func TestChecksOfManyEvents(t *testing.T) {
	f := newFlapper(t, model.DefaultFlapping)
	checks := 0
	for n := range 1000 {
		f.now = at(time.Duration(n) * 10 * time.Millisecond)
		f.on.happens("/a")
		if len(f.take()) > 0 {
			checks++
			f.Note(f.Context(), key, []model.Ref{refOf("/a")}, result("/a"), f.now)
		}
	}
	if checks < idleChecks || checks > idleChecks+5 {
		t.Errorf("%d checks in ten seconds", checks)
	}
	f.reports(time.Hour)
}
