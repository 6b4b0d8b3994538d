package engine_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// watched is a thing that is watched: what comes by a channel has drifted.
type watched struct {
	thing
	drifted chan string
	fails   error
}

func (w watched) Watch(ctx context.Context, _ resource.Env, specs []*spec, ready func(), wake func(name string)) error {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	w.m.note("watch %s", strings.Join(names, ","))
	ready()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case name, more := <-w.drifted:
			if !more {
				return w.fails
			}
			wake(name)
		}
	}
}

func watchedThings(m *machine, fails error) (*resource.Type, chan string) {
	drifted := make(chan string)

	return resource.Of[*spec, *state, provider](watched{thing: newThing(m, "watched", nil), drifted: drifted, fails: fails}, plain{}), drifted
}

func watch(t *testing.T, ctx context.Context, typ *resource.Type) (ready chan struct{}, woken chan model.Ref, ended chan error) {
	t.Helper()
	plain := resource.Of[*spec, *state, provider](newThing(newMachine(), "thing", nil), plain{})
	named := func(typ *resource.Type, name string) *resource.Resource {
		return &resource.Resource{Type: typ, Spec: &spec{Common: model.Common{Name: name}}}
	}
	excluded, late := named(typ, "excluded"), named(typ, "late")
	excluded.Excluded = "control"
	late.Late = func(context.Context, resource.Outputs) (resource.Spec, []model.Secret, error) { return nil, nil, nil }
	resources := []*resource.Resource{named(typ, "a"), named(plain, "b"), excluded, late, named(typ, "c")}
	ready, woken, ended = make(chan struct{}), make(chan model.Ref), make(chan error, 1)
	env := resource.Env{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	go func() {
		ended <- engine.Watch(ctx, env, resources, func() { close(ready) }, func(ref model.Ref) { woken <- ref })
	}()

	return ready, woken, ended
}

func TestWatch(t *testing.T) {
	m := newMachine()
	typ, drifted := watchedThings(m, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, woken, ended := watch(t, ctx, typ)
	<-ready
	if got := m.actions(); !slices.Equal(got, []string{"watch a,c"}) {
		t.Errorf("the machine saw %q", got)
	}
	for _, name := range []string{"c", "a", "a"} {
		drifted <- name
		if got := (<-woken).String(); got != "watched#"+name {
			t.Errorf("woken by %s, not by %s", got, name)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the end of the context is an error: %v", err)
	}
}

func TestWatchThatFails(t *testing.T) {
	for want, fails := range map[string]error{
		"watching resources of type watched: the kernel has no more watches": errors.New("the kernel has no more watches"),
		"watching resources of type watched: it ended by itself":             nil,
	} {
		typ, drifted := watchedThings(newMachine(), fails)
		ready, _, ended := watch(t, t.Context(), typ)
		<-ready
		close(drifted)
		if err := <-ended; err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %s", err, want)
		}
	}
}

func TestWatchOfNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := engine.Watch(ctx, resource.Env{}, nil, cancel, nil)
	if err != nil || ctx.Err() == nil {
		t.Errorf("it was not ready, or not at its end without an error: %v", err)
	}
}
