package fleetcmd

import (
	"slices"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore/provision"
)

// remarkLine prints the server setting that JWT users need.
func remarkLine(env *cli.Env) {
	env.Print.Remark("nats-server needs max_control_line: %s in its configuration: the JWT of a node in two groups is longer than the default of 4 KB", provision.ControlLine)
}

// warnOfLong warns if a JWT may exceed the default limit of nats-server, and names the longest. Otherwise it
// prints a remark about the setting. sizes are the sizes of the users' JWTs.
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
