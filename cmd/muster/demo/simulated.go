package demo

import (
	"context"
	"fmt"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// simulatedNodes is the number of simulated nodes. It is large enough to show a fleet on the dashboard.
const simulatedNodes = 25

// simulatedManifest is what the simulated nodes are assigned, and the real one is not.
const simulatedManifest = `muster:
  resources:
    - package:
        - chrony: {ensure: present}
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/motd:
            content: |
              Managed by muster.
        - /etc/chrony/chrony.conf:
            content: |
              pool ntp.example.net iburst
              driftfile /var/lib/chrony/chrony.drift
              makestep 1 3
            require: ["package#chrony"]
    - service:
        - chrony:
            ensure: running
            enable: true
            subscribe: ["file#/etc/chrony/chrony.conf"]
`

// simulate begins a fleet around the node, until node ends. It returns when all have joined.
func (d *demo) simulate(ctx, node context.Context) (found string, err error) {
	if _, err := kvstore.NewAssignments(d.store).Put(ctx, model.Key(model.GroupFamily(simulate.GroupSim), "base"), []byte(simulatedManifest)); err != nil {
		return "", err
	}
	f, err := fleetcmd.NewSimulation(fleetcmd.SimulateOptions{Plan: simulate.Plan{Nodes: simulatedNodes, Seed: 1}, Types: d.Types, Open: d.OpenAnother})
	if err != nil {
		return "", err
	}
	joined, ended := make(chan struct{}), make(chan error, 1)
	d.running.Go(func() {
		defer f.Close()
		ended <- f.Run(node, func() { close(joined) })
	})
	select {
	case <-joined:
	case err := <-ended:
		return "", err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	names := f.Names()

	return fmt.Sprintf("%d simulated nodes beside it, %s to %s", len(names), names[0], names[len(names)-1]), nil
}
