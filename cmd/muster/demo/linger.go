package demo

import (
	"context"
	"time"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// linger runs the demo until ctx ends. It prints how to try things out, and then the changes of the node.
func (d *demo) linger(ctx context.Context) error {
	d.Print.Printf("\nThe demo runs until ctrl-C. Open the dashboard in a browser:\n\n  %s\n", d.dashboard)
	d.Print.Printf("\nTry it in another terminal (go install ./cmd/muster installs muster):\n\n  export NATS_URL=%s NATS_USER=%s NATS_PASSWORD_FILE=%s\n  muster fleet nodes\n  muster fleet exec --node %s -- uptime\n  echo tampered >> %s\n", d.url, adminName, d.password(adminName), nodeName, d.path("motd"))
	d.Print.Printf("\nThe reports, live: changes of the node %s. The dashboard shows all nodes.\n", nodeName)
	err := d.showReports(ctx)
	if ctx.Err() != nil {
		return nil
	}

	return err
}

// linesPerAddress is how many reports are shown before the address of the dashboard is repeated.
const linesPerAddress = 6

// showReports prints the new reports of the node, except for runs without changes.
func (d *demo) showReports(ctx context.Context) error {
	lines := 0
	for r, err := range kvstore.NewReports(d.store).Reports(ctx, model.ReportRange{Node: nodeName, Since: time.Now(), Follow: true}) {
		if err != nil {
			return err
		}
		if r.Kind == model.KindRun && r.Outcome == model.OutcomeStable {
			continue
		}
		d.Print.Printf("  %s\n", fleetcmd.ReportLine(d.Print, r))
		if lines++; lines%linesPerAddress == 0 {
			d.Print.Printf("  dashboard: %s\n", d.dashboard)
		}
	}

	return nil
}
