package service_test

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

func outcome() resource.Outcome { return resource.Outcome{} }

func stateOf(running, enabled bool) *service.State {
	ensure := service.EnsureStopped
	if running {
		ensure = service.EnsureRunning
	}

	return &service.State{
		CommonState: model.CommonState{Ensure: ensure},
		Metadata:    service.Metadata{Name: "web", Provider: "systemd", Running: running, Enabled: enabled},
	}
}
