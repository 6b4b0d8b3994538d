package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/service"
)

// TestPlan covers "Phase 1", "Phase 2", "Idempotency" and "Special Cases", and
// the words of noop.
func TestPlan(t *testing.T) {
	yes, no := true, false
	const up, down = true, false
	for _, c := range []struct {
		name             string
		ensure           string
		enable           *bool
		running, enabled bool
		refresh          bool
		words            string
	}{
		{name: "ensure running, running", ensure: "running", running: up},
		{name: "ensure running, stopped", ensure: "running", words: "Would have started"},
		{name: "ensure stopped, stopped", ensure: "stopped"},
		{name: "ensure stopped, running", ensure: "stopped", running: up, words: "Would have stopped"},
		{name: "enable true, enabled", ensure: "running", running: up, enable: &yes, enabled: true},
		{name: "enable true, disabled", ensure: "running", running: up, enable: &yes, words: "Would have enabled"},
		{name: "enable false, enabled", ensure: "running", running: up, enable: &no, enabled: true, words: "Would have disabled"},
		{name: "enable false, disabled", ensure: "running", running: up, enable: &no},
		{name: "enable nil, enabled", ensure: "running", running: up, enabled: true},
		{name: "enable nil, disabled", ensure: "running", running: up},
		{name: "subscribe, ensure stopped, stopped", ensure: "stopped", refresh: true},
		{name: "subscribe, ensure stopped, running", ensure: "stopped", running: up, refresh: true, words: "Would have stopped"},
		{name: "subscribe, not running, ensure running", ensure: "running", running: down, refresh: true, words: "Would have started"},
		{name: "subscribe, running, ensure running", ensure: "running", running: up, refresh: true, words: "Would have restarted"},
		{name: "both", ensure: "running", enable: &yes, words: "Would have started. Would have enabled"},
		{name: "neither", ensure: "stopped", running: up, enable: &no, enabled: true, words: "Would have stopped. Would have disabled"},
		{name: "subscribe and enable", ensure: "running", running: up, refresh: true, enable: &yes, words: "Would have restarted. Would have enabled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &service.Spec{Common: model.Common{Name: "web", Ensure: c.ensure}, Enable: c.enable}
			state := stateOf(c.running, c.enabled)
			plan, err := serviceType().Plan(spec, state, c.refresh)
			if err != nil || plan.Message() != c.words || plan.Unrefreshed != (c.ensure == "stopped") {
				t.Errorf("%q, %v, not %q, a refresh ignored: %t", plan.Message(), err, c.words, plan.Unrefreshed)
			}
			// Desired State Validation: a state with a pending change is refused.
			plan, err = serviceType().Plan(spec, state, false)
			if verdict := serviceType().Verify(spec, outcome(), state); (verdict == nil) != (err == nil && plan.Empty()) {
				t.Errorf("the state is judged with %v, and %q is due", verdict, plan.Message())
			}
		})
	}
}

// TestPlanMasked covers the property masked, and TestPlanRefresh covers refreshes.
func TestPlanMasked(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		ensure         string
		masked, enable *bool
		unitFile       string
		running        bool
		words          string
	}{
		{ensure: "stopped", masked: &yes, unitFile: "disabled", words: "Would have masked"},
		{ensure: "stopped", masked: &yes, unitFile: "disabled", running: true, words: "Would have stopped. Would have masked"},
		{ensure: "stopped", masked: &yes, unitFile: "masked-runtime", words: "Would have masked"},
		{ensure: "stopped", masked: &yes, unitFile: "masked"},
		{ensure: "stopped", masked: &no, unitFile: "masked", words: "Would have unmasked"},
		{ensure: "stopped", masked: &no, unitFile: "masked-runtime", words: "Would have unmasked"},
		{ensure: "stopped", masked: &no, unitFile: "disabled"},
		{ensure: "stopped", unitFile: "masked"},
		{ensure: "running", masked: &no, enable: &yes, unitFile: "masked", words: "Would have unmasked. Would have started. Would have enabled"},
		// It may be enabled below its mask.
		{ensure: "stopped", masked: &no, enable: &no, unitFile: "masked", words: "Would have unmasked. Would have disabled"},
	} {
		spec := &service.Spec{Common: model.Common{Name: "web", Ensure: c.ensure}, Masked: c.masked, Enable: c.enable}
		state := stateOf(c.running, false)
		state.Metadata.UnitFile = c.unitFile
		if strings.HasPrefix(c.unitFile, "masked") {
			state.Obstacles = service.Obstacles{Start: errors.New("masked"), Enable: errors.New("masked")}
		}
		if plan, err := serviceType().Plan(spec, state, false); err != nil || plan.Message() != c.words {
			t.Errorf("%+v: %q, %v", c, plan.Message(), err)
		}
	}
}

func TestPlanRefresh(t *testing.T) {
	for refresh, words := range map[service.Action]string{"": "Would have restarted", "restart": "Would have restarted", "reload": "Would have reloaded", "reload-or-restart": "Would have reloaded or restarted"} {
		spec := &service.Spec{Common: model.Common{Name: "web", Ensure: "running"}, Refresh: refresh}
		state := stateOf(true, false)
		if plan, err := serviceType().Plan(spec, state, true); err != nil || plan.Message() != words {
			t.Errorf("%s: %q, %v", refresh, plan.Message(), err)
		}
		state.Obstacles.Reload = errors.New("no")
		if _, err := serviceType().Plan(spec, state, true); (err != nil) != (refresh == "reload") {
			t.Errorf("%s: %v", refresh, err)
		}
	}
}

// TestPlanStarting covers services that are starting or restarting repeatedly: ensure stopped stops
// them.
func TestPlanStarting(t *testing.T) {
	for ensure, words := range map[string]string{"running": "Would have started", "stopped": "Would have stopped"} {
		spec := &service.Spec{Common: model.Common{Name: "web", Ensure: ensure}}
		state := stateOf(false, false)
		state.Starting, state.Metadata.Active = true, "activating"
		for _, refresh := range []bool{false, true} {
			plan, err := serviceType().Plan(spec, state, refresh)
			if err != nil || plan.Message() != words || plan.Changes[0].From != "activating" || plan.Changes[0].To != ensure {
				t.Errorf("%s, refresh %t: %+v, %v", ensure, refresh, plan, err)
			}
		}
		if err := serviceType().Verify(spec, outcome(), state); err == nil {
			t.Errorf("%s: it is where it should be", ensure)
		}
	}
}

// TestObstacles covers changes that are impossible in the state of the service. Noop reports them.
func TestObstacles(t *testing.T) {
	yes, no := true, false
	masked, static := errors.New("masked"), errors.New("static")
	for _, c := range []struct {
		name             string
		ensure           string
		enable           *bool
		running, enabled bool
		refresh          bool
		obstacles        service.Obstacles
		err              string
	}{
		{name: "enable false, static", ensure: "running", running: true, enable: &no, enabled: true, obstacles: service.Obstacles{Disable: static}, err: "web cannot be disabled: static"},
		{name: "enable true, static", ensure: "running", running: true, enable: &yes, enabled: true, obstacles: service.Obstacles{Disable: static}},
		{name: "enable nil, static", ensure: "running", running: true, enabled: true, obstacles: service.Obstacles{Disable: static}},
		{name: "enable true, masked", ensure: "stopped", enable: &yes, obstacles: service.Obstacles{Start: masked, Enable: masked}, err: "web cannot be enabled: masked"},
		{name: "enable false, masked", ensure: "stopped", enable: &no, obstacles: service.Obstacles{Start: masked, Enable: masked}},
		{name: "start, masked", ensure: "running", obstacles: service.Obstacles{Start: masked, Enable: masked}, err: "web cannot be started: masked"},
		{name: "restart, masked", ensure: "running", running: true, refresh: true, obstacles: service.Obstacles{Start: masked, Enable: masked}, err: "web cannot be restarted: masked"},
		{name: "running, masked", ensure: "running", running: true, obstacles: service.Obstacles{Start: masked, Enable: masked}},
		{name: "stop, masked", ensure: "stopped", running: true, obstacles: service.Obstacles{Start: masked, Enable: masked}},
		{name: "both at once", ensure: "running", enable: &yes, obstacles: service.Obstacles{Start: masked, Enable: masked}, err: "web cannot be started: masked\nweb cannot be enabled: masked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &service.Spec{Common: model.Common{Name: "web", Ensure: c.ensure}, Enable: c.enable}
			state := stateOf(c.running, c.enabled)
			state.Obstacles = c.obstacles
			_, err := serviceType().Plan(spec, state, c.refresh)
			if (c.err == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%v, not %q", err, c.err)
			}
		})
	}
}
