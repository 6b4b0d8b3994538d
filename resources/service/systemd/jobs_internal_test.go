package systemd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// changing is a machine on which web.service is in one state until a time, and then in another.
type changing struct {
	now, then unit
	until     time.Time
}

func (c changing) units(_ context.Context, _ resource.Env, names []string) ([]unit, error) {
	out := make([]unit, len(names))
	for i, name := range names {
		out[i] = c.now
		if name != "web.service" || !time.Now().Before(c.until) {
			out[i] = c.then
		}
		out[i].id = name
	}

	return out, nil
}

// TestPendingJob checks the wait for a job: as long as systemd may take for one resource, shorter with
// other resources, and 5 s without a job.
func TestPendingJob(t *testing.T) {
	active, stopping := running("web.service"), running("web.service")
	stopping.active, stopping.job = "deactivating", true
	alone := stopping
	alone.job = false
	for name, c := range map[string]struct {
		now   unit
		takes time.Duration
		names []string
		run   string
		alone bool
		err   string
		// again reports that the resource is observed once more, alone.
		again bool
	}{
		"a restart":              {stopping, 14 * time.Second, []string{"web"}, "1", true, "", false},
		"one that does not end":  {stopping, time.Hour, []string{"web"}, "1", true, "web: it is changing state, still deactivating after 5m0s", false},
		"before it is alone":     {stopping, 14 * time.Second, []string{"web"}, "1", false, "web: it is changing state, still deactivating after 5s", true},
		"beside others":          {stopping, 14 * time.Second, []string{"web", "db"}, "1", false, "web: it is changing state, still deactivating after 5s", true},
		"beside others, quick":   {stopping, 4 * time.Second, []string{"web", "db"}, "1", false, "", false},
		"of no run":              {stopping, 14 * time.Second, []string{"web"}, "", true, "web: it is changing state, still deactivating after 5s", false},
		"by itself":              {alone, 14 * time.Second, []string{"web"}, "1", true, "web: it is changing state, still deactivating after 5s", false},
		"by itself, with others": {alone, 14 * time.Second, []string{"web", "db"}, "1", false, "web: it is changing state, still deactivating after 5s", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, env := ofMuster(t, nil)
			env.RunID, env.InTurn = c.run, c.alone
			synctest.Test(t, func(t *testing.T) {
				p.reader.mu = make(mutex, 1)
				p.reader.sources = []source{changing{c.now, active, time.Now().Add(c.takes)}}
				states, errs := p.StatusAll(t.Context(), env, c.names)
				if c.err == "" {
					if errs[0] != nil || !states[0].Metadata.Running {
						t.Errorf("%+v, %v", states[0], errs[0])
					}
				} else if errs[0] == nil || errs[0].Error() != c.err || errors.Is(errs[0], resource.ErrUnsettled) != c.again {
					t.Errorf("the error is %v", errs[0])
				}
				if last := len(errs) - 1; last > 0 && errs[last] != nil {
					t.Error(errs[last])
				}
			})
		})
	}
}

// TestStartedByOthers is no change, in a repair of drift.
func TestStartedByOthers(t *testing.T) {
	calls := fakeSystemctl(t, "")
	with := func(active string, job bool) unit {
		u := running("web.service")
		u.active, u.job = active, job
		return u
	}
	for name, c := range map[string]struct {
		met       unit
		part      bool
		unchanged bool
	}{
		"nobody starts it":              {with("inactive", false), true, false},
		"it failed":                     {with("failed", false), true, false},
		"it is restarted":               {with("inactive", true), true, true},
		"it begins to run":              {with("activating", true), true, true},
		"it is between two tries":       {with("activating", false), true, false},
		"it runs already":               {with("active", false), true, true},
		"it runs already, in a run":     {with("active", false), false, false},
		"it is stopped, and that lasts": {with("deactivating", true), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, env := ofMuster(t, nil)
			env.Part = c.part
			// It is looked at before the start, and runs after it.
			m := &sequence{c.met, with("active", false)}
			if !c.part {
				m = &sequence{with("active", false)}
			}
			p.reader.sources = []source{m}
			spec := &service.Spec{Common: model.Common{Name: "web"}}
			due := resource.Plan{Changes: []model.Change{{Action: string(service.Start)}}}
			got, err := service.New(p).Apply(t.Context(), env, p, spec, due)
			if err != nil || got.Unchanged != c.unchanged {
				t.Errorf("%+v, %v", got, err)
			}
			*m = sequence{c.met, with("active", false)}
			all, err := service.Type{}.ApplyAll(t.Context(), env, p, []*service.Spec{spec}, []resource.Plan{due})
			if err != nil || all[0].Unchanged != c.unchanged {
				t.Errorf("together: %+v, %v", all, err)
			}
			if got := strings.Join(calls(), "; "); strings.Count(got, "start --system web") != 2 {
				t.Errorf("it called %q", got)
			}
		})
	}
}

// TestRestartedAfterStart: another program restarts a service just after muster started it.
func TestRestartedAfterStart(t *testing.T) {
	fakeSystemctl(t, "")
	restarted, active := running("web.service"), running("web.service")
	restarted.active, restarted.job = "inactive", true
	p, env := ofMuster(t, nil)
	p.reader.sources = []source{&sequence{restarted, restarted, active}}
	if err := p.startAndCheck(t.Context(), env, service.Start, "web"); err != nil {
		t.Error(err)
	}
}

// sequence is the unit that each look finds, the last one for good.
type sequence []unit

func (s *sequence) units(context.Context, resource.Env, []string) ([]unit, error) {
	u := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}

	return []unit{u}, nil
}
