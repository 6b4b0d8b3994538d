package systemd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/service"
)

// TestIsActive covers the table "Active State Detection".
func TestIsActive(t *testing.T) {
	for answer, want := range map[string]struct {
		ensure string
		err    string
	}{
		"active":     {ensure: "running"},
		"inactive":   {ensure: "stopped"},
		"failed":     {ensure: "stopped"},
		"activating": {ensure: "stopped"},
		// Other: those that pass are looked at again.
		"reloading":    {err: "web: it is changing state, still reloading"},
		"deactivating": {err: "web: it is changing state, still deactivating"},
		"maintenance":  {err: `web: invalid systemctl is-active output: "maintenance"`},
		"unknown":      {err: `web: invalid systemctl is-active output: "unknown"`},
		"":             {err: `web: invalid systemctl is-active output: ""`},
	} {
		state, err := stateOf("web", answer, "enabled")
		if want.err != "" {
			if err == nil || err.Error() != want.err {
				t.Errorf("%q gives the error %v, not %q", answer, err, want.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", answer, err)
			continue
		}
		if state.Ensure != want.ensure || state.Metadata.Running != (want.ensure == "running") || state.Metadata.Active != answer {
			t.Errorf("%q is %+v", answer, state)
		}
	}
}

// TestIsEnabled covers the table "Enabled State Detection", and what cannot be
// done to a service that has one of its answers.
func TestIsEnabled(t *testing.T) {
	for answer, want := range map[string]struct {
		enabled                bool
		start, enable, disable string
		err                    string
	}{
		"enabled":         {enabled: true},
		"enabled-runtime": {enabled: true},
		"static":          {enabled: true, disable: "static"},
		"indirect":        {enabled: true, disable: "indirect"},
		"generated":       {enabled: true, disable: "generated"},
		"transient":       {enabled: true, disable: "transient"},
		"linked":          {},
		"linked-runtime":  {},
		"masked":          {start: "systemctl unmask makes", enable: "systemctl unmask makes"},
		"masked-runtime":  {start: "systemctl unmask --runtime makes", enable: "systemctl unmask --runtime makes"},
		"disabled":        {},
		"not-found":       {err: "web: service not found"},
		"bad":             {err: `web: invalid systemctl is-enabled output: "bad"`},
		"":                {err: `web: invalid systemctl is-enabled output: ""`},
	} {
		state, err := stateOf("web", "active", answer)
		if want.err != "" {
			if err == nil || err.Error() != want.err || errors.Is(err, service.ErrNotFound) != (answer == "not-found") {
				t.Errorf("%q gives the error %v, not %q", answer, err, want.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", answer, err)
			continue
		}
		if m := state.Metadata; m.Enabled != want.enabled || m.UnitFile != answer || m.Provider != "systemd" || m.Name != "web" {
			t.Errorf("%q is %+v", answer, m)
		}
		for _, obstacle := range []struct {
			got  error
			want string
		}{{state.Obstacles.Start, want.start}, {state.Obstacles.Enable, want.enable}, {state.Obstacles.Disable, want.disable}} {
			if (obstacle.got != nil) != (obstacle.want != "") || (obstacle.got != nil && !strings.Contains(obstacle.got.Error(), obstacle.want)) {
				t.Errorf("%q: the obstacle is %v, without %q", answer, obstacle.got, obstacle.want)
			}
		}
	}
}

// TestMemory covers what systemd remembers about a unit, and when is-enabled must still run.
func TestMemory(t *testing.T) {
	set := func(name string) map[string]struct{} { return map[string]struct{}{name: {}} }
	linked, masked := links{enabling: set("web.service")}, links{masked: set("web.service")}
	for name, c := range map[string]struct {
		unit   unit
		links  links
		script bool
		answer string
		sure   bool
	}{
		"enabled":                    {unit: unit{unitFile: "enabled"}, links: linked, answer: "enabled", sure: true},
		"enabled, the link is gone":  {unit: unit{unitFile: "enabled"}, answer: "enabled"},
		"enabled, masked since":      {unit: unit{unitFile: "enabled"}, links: masked, answer: "enabled"},
		"until the next boot":        {unit: unit{unitFile: "enabled-runtime"}, links: linked, answer: "enabled-runtime", sure: true},
		"disabled":                   {unit: unit{unitFile: "disabled"}, answer: "disabled", sure: true},
		"disabled, there is a link":  {unit: unit{unitFile: "disabled"}, links: linked, answer: "disabled"},
		"static":                     {unit: unit{unitFile: "static"}, answer: "static", sure: true},
		"masked":                     {unit: unit{unitFile: "masked"}, links: masked, answer: "masked", sure: true},
		"masked, the link is gone":   {unit: unit{unitFile: "masked"}, answer: "masked"},
		"transient":                  {unit: unit{unitFile: "transient"}, answer: "transient", sure: true},
		"generated":                  {unit: unit{unitFile: "generated"}, answer: "generated", sure: true},
		"generated from a script":    {unit: unit{unitFile: "generated"}, script: true, answer: "generated"},
		"not there":                  {unit: unit{load: "not-found"}, answer: "not-found", sure: true},
		"not there, but a script is": {unit: unit{load: "not-found"}, script: true, answer: "not-found"},
		"no file at all":             {unit: unit{load: "loaded"}, answer: "not-found", sure: true},
	} {
		if c.unit.id == "" {
			c.unit.id = "web.service"
		}
		if answer, sure := c.unit.isEnabled(c.links, c.script); answer != c.answer || sure != c.sure {
			t.Errorf("%s: %q, sure %t", name, answer, sure)
		}
	}
}

// TestNames has a unit observed under two names in one run.
func TestNames(t *testing.T) {
	var n names
	for _, c := range []struct{ run, name, unit, err string }{
		{"1", "a.service", "a.service", ""},
		{"1", "b.service", "a.service", "a.service and b.service are names of one unit, a.service, which is declared twice"},
		{"1", "a.service", "a.service", ""},
		{"2", "b.service", "a.service", ""},
		{"2", "a.service", "a.service", "b.service and a.service are names of one unit"},
		{"", "a.service", "a.service", ""},
		{"", "b.service", "a.service", ""},
	} {
		if err := n.note(c.run, c.name, c.unit); (c.err == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for run, want := range map[string][]string{
		"1": {"a.service", "a.service", "c"}, "2": {"a.service", "a.service", "c"}, "": {"a.service", "a.service", "c"}, "3": {"b", "b.service", "c"},
	} {
		if got := n.resolve(run, []string{"b", "b.service", "c"}); !slices.Equal(got, want) {
			t.Errorf("in run %q they are %q", run, got)
		}
	}
	for i := range 3 * maxNamed {
		_ = n.note(fmt.Sprint("run ", i), "a.service", "a.service")
	}
	if len(n.runs) > maxNamed {
		t.Errorf("it knows %d runs", len(n.runs))
	}
}

// TestAlias changes a service by a name that differs from the name of its unit.
func TestAlias(t *testing.T) {
	calls := fakeSystemctl(t, "case \"$*\" in is-enabled*) echo enabled;; esac")
	p, env := ofMuster(t, memory{"sshd.service": running("ssh.service"), "ssh.service": running("ssh.service")})
	for _, action := range []service.Action{service.Start, service.Restart, service.Reload, service.Disable, service.Stop} {
		if _, err := p.Status(t.Context(), env, "sshd"); err != nil {
			t.Fatal(err)
		}
		calls()
		if err := p.Change(t.Context(), env, action, "sshd"); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if got := calls(); !slices.Contains(got, string(action)+" --system ssh.service") {
			t.Errorf("%s: it called %q", action, got)
		}
		if errs := p.ChangeAll(t.Context(), env, action, []string{"sshd"}); errs[0] != nil {
			t.Errorf("%s: %v", action, errs)
		}
		if got := calls(); !slices.Contains(got, string(action)+" --system ssh.service") {
			t.Errorf("%s together: it called %q", action, got)
		}
	}
	if _, err := p.Status(t.Context(), env, "ssh"); err == nil || !strings.Contains(err.Error(), "declared twice") {
		t.Errorf("declared twice: %v", err)
	}
}
