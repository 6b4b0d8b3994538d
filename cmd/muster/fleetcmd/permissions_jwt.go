package fleetcmd

import (
	"slices"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/provision"
)

// remarkLine says what servers need for users by JWT.
func remarkLine(env *cli.Env) {
	env.Print.Remark("nats-server needs max_control_line: %s in its configuration: the JWT of a node in two groups is longer than the default of 4 KB", provision.ControlLine)
}

// warnOfLong says what servers need for the JWTs of users, which have these sizes: where some may be too long
// by default it is a warning that names the longest.
func (c *permissionsCommand) warnOfLong(users []natsUser, sizes []int) {
	long := 0
	for _, size := range sizes {
		if size > provision.LongJWT {
			long++
		}
	}
	if long == 0 {
		remarkLine(c.Env)
		return
	}
	size := slices.Max(sizes)
	about := []any{"user", users[slices.Index(sizes, size)].name, "bytes", size}
	if long > 1 {
		about = append(about, "others", long-1)
	}
	c.Log.Warn("this JWT may be too long for nats-server by default: set max_control_line: "+provision.ControlLine+" in the configuration of each server", about...)
}
