package assigncmd

import (
	"log/slog"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// confirmUnknown asks on a terminal before a push to groups that no known node is in, where the fleet has nodes:
// they may come later, or the name is mistyped. A preview asks anyway.
func (c *pushCommand) confirmUnknown(targets []fleet.Target, nodes []model.Node) error {
	if c.yes || c.preview || len(nodes) == 0 || !c.CanAsk() {
		return nil
	}
	var why []string
	for _, t := range fleetcli.Unknown(targets, nodes) {
		if t.Group != "" {
			why = append(why, fleetcli.NoSuchGroup(t, nodes).Error())
		}
	}
	if len(why) == 0 {
		return nil
	}

	return c.Confirm("nothing was pushed", strings.Join(why, ", "))
}

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
