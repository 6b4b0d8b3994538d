package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestEndsWith knows which processes of a unit end with it.
func TestEndsWith(t *testing.T) {
	for properties, want := range map[string]bool{
		"MainPID=7\nKillMode=mixed\n": true, "MainPID=7\nKillMode=control-group\n": true, "MainPID=42\nKillMode=process\n": true,
		"MainPID=7\nKillMode=process\n": false, "MainPID=7\nKillMode=none\n": false, "MainPID=421\nKillMode=process\n": false,
	} {
		if got := endsWith(properties, 42); got != want {
			t.Errorf("%q: %t", properties, got)
		}
	}
}

// fakeSystemctl puts a systemctl into PATH that records its calls, and fails where the script fails.
func fakeSystemctl(t *testing.T, script string) (calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	text := "#!/bin/sh\necho \"$*\" >> " + log + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, systemctl), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	return func() []string {
		t.Helper()
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		_ = os.Remove(log)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
}

// memory is what systemd has in memory, by the name that is asked for.
type memory map[string]unit

func (m memory) units(_ context.Context, _ resource.Env, names []string) ([]unit, error) {
	out := make([]unit, len(names))
	for i, name := range names {
		out[i] = m[name]
	}

	return out, nil
}

// running is a unit that runs, and is static.
func running(id string) unit {
	return unit{id: id, load: "loaded", active: "active", unitFile: "static"}
}

// ofMuster is a provider of a machine on which muster runs as muster.service.
func ofMuster(t *testing.T, m memory) (*Provider, resource.Env) {
	p := New(t.TempDir())
	p.reader.sources, p.reader.own.unit = []source{m}, "muster.service"

	return p, resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), RunID: "1"}
}

// apply applies an action to services, and returns the functions for the end of the run, by service.
func apply(t *testing.T, p *Provider, env resource.Env, action service.Action, names ...string) (late map[string]func(context.Context) error) {
	t.Helper()
	specs, plans := make([]*service.Spec, len(names)), make([]resource.Plan, len(names))
	for i, name := range names {
		specs[i] = &service.Spec{Common: model.Common{Name: name}}
		plans[i].Add(model.Change{Action: string(action)})
	}
	outcomes, err := make([]resource.Outcome, 1), error(nil)
	if len(names) == 1 {
		outcomes[0], err = service.New(p).Apply(t.Context(), env, p, specs[0], plans[0])
	} else {
		outcomes, err = service.Type{}.ApplyAll(t.Context(), env, p, specs, plans)
	}
	if err != nil {
		t.Errorf("%s: %v", action, err)
	}
	late = map[string]func(context.Context) error{}
	for i, o := range outcomes {
		if o.AtEnd != nil {
			late[names[i]] = o.AtEnd
		}
	}

	return late
}

// TestOwnUnit is asked for at the end of the run, and not waited for; others are changed at once.
func TestOwnUnit(t *testing.T) {
	calls := fakeSystemctl(t, "")
	for _, action := range []service.Action{service.Restart, service.Stop, service.ReloadOrRestart} {
		p, env := ofMuster(t, memory{"muster.service": running("muster.service"), "web.service": running("web.service")})
		late := apply(t, p, env, action, "web", "muster", "db")
		if got := calls(); !slices.Contains(got, string(action)+" --system web db") || slices.ContainsFunc(got, func(c string) bool { return strings.HasPrefix(c, string(action)) && strings.Contains(c, "muster") }) {
			t.Errorf("%s: it called %q", action, got)
		}
		if len(late) != 1 || late["muster"] == nil {
			t.Fatalf("%s: put off are %v", action, late)
		}
		late = apply(t, p, env, action, "muster.service")
		if got := calls(); len(got) != 1 || got[0] != "" {
			t.Errorf("%s before the end of the run: it called %q", action, got)
		}
		if state, err := p.Status(t.Context(), env, "muster"); err != nil || state.Metadata.Running != (action != service.Stop) {
			t.Errorf("%s: %+v, %v", action, state, err)
		}
		other := env
		other.RunID = "2"
		if state, err := p.Status(t.Context(), other, "muster"); err != nil || !state.Metadata.Running {
			t.Errorf("%s, for another run: %+v, %v", action, state, err)
		}
		calls()
		if err := late["muster.service"](t.Context()); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if got := calls(); !slices.Equal(got, []string{string(action) + " --system --no-block muster.service"}) {
			t.Errorf("%s at the end of the run: it called %q", action, got)
		}
	}
}

// TestOwnUnitFails is an error, and it runs on.
func TestOwnUnitFails(t *testing.T) {
	fakeSystemctl(t, `case "$*" in stop*) echo "it is refused" >&2; exit 1;; esac`)
	p, env := ofMuster(t, memory{"muster.service": running("muster.service")})
	err := apply(t, p, env, service.Stop, "muster")["muster"](t.Context())
	var said resource.CommandError
	if !errors.As(err, &said) || said.Output != "it is refused" {
		t.Errorf("the error is %v", err)
	}
	if state, err := p.Status(t.Context(), env, "muster"); err != nil || !state.Metadata.Running {
		t.Errorf("%+v, %v", state, err)
	}
}

// TestOwnUnitIsStoppedLast: not before all else was done, and for sure then, also where it took several attempts.
func TestOwnUnitIsStoppedLast(t *testing.T) {
	once := filepath.Join(t.TempDir(), "failed")
	calls := fakeSystemctl(t, `case "$*" in disable*muster*) if ! [ -e `+once+` ]; then touch `+once+`; echo busy >&2; exit 1; fi;; esac`)
	planned := func(actions ...service.Action) (plan resource.Plan) {
		for _, a := range actions {
			plan.Add(model.Change{Action: string(a)})
		}
		return plan
	}
	for name, apply := range map[string]func(*Provider, resource.Env, resource.Plan) (resource.Outcome, error){
		"alone": func(p *Provider, env resource.Env, plan resource.Plan) (resource.Outcome, error) {
			return service.New(p).Apply(t.Context(), env, p, &service.Spec{Common: model.Common{Name: "muster"}}, plan)
		},
		"together": func(p *Provider, env resource.Env, plan resource.Plan) (resource.Outcome, error) {
			specs := []*service.Spec{{Common: model.Common{Name: "muster"}}, {Common: model.Common{Name: "web"}}}
			out, err := service.Type{}.ApplyAll(t.Context(), env, p, specs, []resource.Plan{plan, planned(service.Stop)})
			return out[0], err
		},
	} {
		_ = os.Remove(once)
		p, env := ofMuster(t, memory{"muster.service": running("muster.service"), "web.service": running("web.service")})
		runs := func() bool {
			state, err := p.Status(t.Context(), env, "muster")
			if err != nil {
				t.Error(err)
			}
			return state.Metadata.Running
		}
		if o, err := apply(p, env, planned(service.Stop, service.Disable)); err == nil || o.AtEnd != nil || !runs() {
			t.Errorf("%s: it is stopped though %v", name, err)
		}
		if o, err := apply(p, env, planned(service.Stop, service.Disable)); err != nil || o.AtEnd == nil || runs() {
			t.Errorf("%s, again: it is not stopped, %v", name, err)
		}
		// The state still differed: the remaining plan has no stop, because the state includes the deferred stop.
		o, err := apply(p, env, planned(service.Disable))
		if err != nil || o.AtEnd == nil {
			t.Fatalf("%s, once more: it is not stopped, %v", name, err)
		}
		calls()
		if err := o.AtEnd(t.Context()); err != nil || !slices.Equal(calls(), []string{"stop --system --no-block muster.service"}) {
			t.Errorf("%s, at the end of the run: %v", name, err)
		}
		// Another service is none of its business.
		if o, err := service.New(p).Apply(t.Context(), env, p, &service.Spec{Common: model.Common{Name: "web"}}, planned(service.Enable)); err != nil || o.AtEnd != nil {
			t.Errorf("%s: another service stops it, %v", name, err)
		}
	}
}

// TestOwnUnitRuns checks that the unit of muster counts as running while systemd starts or stops it.
func TestOwnUnitRuns(t *testing.T) {
	fakeSystemctl(t, "")
	for _, active := range []string{"activating", "deactivating", "reloading", "active"} {
		u := running("muster.service")
		u.active = active
		p, env := ofMuster(t, memory{"muster.service": u})
		if state, err := p.Status(t.Context(), env, "muster"); err != nil || !state.Metadata.Running || state.Starting {
			t.Errorf("%s: %+v, %v", active, state, err)
		}
	}
}

// TestUnitThatLeavesMusterAlone is waited for: of cron only the main process ends.
func TestUnitThatLeavesMusterAlone(t *testing.T) {
	calls := fakeSystemctl(t, `case "$*" in show*) printf 'MainPID=1\nKillMode=process\n';; esac`)
	p, env := ofMuster(t, memory{"muster.service": running("muster.service")})
	for range 2 {
		if late := apply(t, p, env, service.Restart, "muster"); len(late) > 0 {
			t.Error("it is put off")
		}
	}
	if got := calls(); !slices.Equal(got, []string{
		"show --system --property=MainPID,KillMode -- muster.service", "daemon-reload --system", "restart --system muster", "restart --system muster",
	}) {
		t.Errorf("it called %q", got)
	}
}
