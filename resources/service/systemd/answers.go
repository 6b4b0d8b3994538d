package systemd

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// The answers with a special meaning.
const (
	activating     = "activating"
	enabledRuntime = "enabled-runtime"
	notFound       = "not-found"
)

var (
	errIsActive  = errors.New("invalid systemctl is-active output")
	errIsEnabled = errors.New("invalid systemctl is-enabled output")
)

// stateOf returns the state for the answers of is-active and is-enabled.
func stateOf(name, active, enabled string) (*service.State, error) {
	running, err := isRunning(active)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	starts, obstacles, err := startsAtBoot(enabled)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ensure := service.EnsureStopped
	if running {
		ensure = service.EnsureRunning
	}

	return &service.State{
		CommonState: model.CommonState{Protocol: model.StateProtocol("service"), ResourceType: "service", Name: name, Ensure: ensure},
		Metadata:    service.Metadata{Name: name, Provider: providerName, Enabled: starts, Running: running, Active: active, UnitFile: enabled},
		Obstacles:   obstacles,
		Starting:    active == activating,
	}, nil
}

// isRunning interprets an answer of is-active.
func isRunning(answer string) (bool, error) {
	switch answer {
	case "active":
		return true, nil
	case "inactive", "failed", activating:
		return false, nil
	case "reloading", "deactivating":
		return false, fmt.Errorf("it %w, still %s", resource.ErrUnsettled, answer)
	default:
		return false, fmt.Errorf("%w: %q", errIsActive, answer)
	}
}

// startsAtBoot interprets an answer of is-enabled, and returns the changes that are impossible.
func startsAtBoot(answer string) (starts bool, o service.Obstacles, err error) {
	switch answer {
	case "enabled", enabledRuntime:
		return true, o, nil
	case "static":
		o.Disable = errors.New("its unit is static: it has no [Install] section, what wants it starts it. Leave enable unset, or mask it")
	case "indirect":
		o.Disable = errors.New("its unit is indirect: its [Install] section only names other units, which have to be disabled instead")
	case "generated", "transient":
		o.Disable = fmt.Errorf("its unit is %s: there is no unit file to be disabled. Leave enable unset, or change what makes the unit", answer)
	case "disabled", "linked", "linked-runtime":
		return false, o, nil
	case "masked", "masked-runtime":
		unmask := "systemctl unmask"
		if answer != "masked" {
			unmask += " --runtime"
		}
		masked := fmt.Errorf("its unit is masked: %s makes it usable again", unmask)
		return false, service.Obstacles{Start: masked, Enable: masked}, nil
	case notFound:
		return false, o, service.ErrNotFound
	default:
		return false, o, fmt.Errorf("%w: %q", errIsEnabled, answer)
	}

	return true, o, nil
}
