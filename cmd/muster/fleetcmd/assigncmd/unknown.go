package assigncmd

import (
	"log/slog"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// warnUnknown warns of what was pushed to targets that no known node is in; where the fleet has nodes, with the
// command that takes it back.
func warnUnknown(log *slog.Logger, names kvstore.Names, done []fleet.Pushed, nodes []model.Node) {
	for _, p := range done {
		t, _, err := fleet.ParseKey(p.Key)
		if err != nil || len(fleetcli.Unknown([]fleet.Target{t}, nodes)) == 0 {
			continue
		}
		var undo []any
		switch {
		case p.Unchanged || len(nodes) == 0:
		case p.Replaced > 0:
			undo = []any{"undo", names.Run("fleet rollback " + p.Key)}
		default:
			undo = []any{"undo", names.Run("fleet rm " + p.Key)}
		}
		fleetcli.WarnUnknownTarget(log, t, nodes, undo...)
	}
}
