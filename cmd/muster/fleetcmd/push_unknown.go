package fleetcmd

import (
	"log/slog"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// warnUnknown warns of pushes to targets without known nodes. If the fleet has nodes, the warning includes
// the command that undoes the push.
func warnUnknown(log *slog.Logger, names kvstore.Names, done []assign.Pushed, nodes []model.Node) {
	for _, p := range done {
		t, _, err := fleet.ParseKey(p.Key)
		if err != nil || len(Unknown([]fleet.Target{t}, nodes)) == 0 {
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
		WarnUnknownTarget(log, t, nodes, undo...)
	}
}
