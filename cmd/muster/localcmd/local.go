// Package localcmd holds the commands about this machine: apply, ensure, status,
// graph, facts, data, session and schema.
package localcmd

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// Add adds the commands to the command line.
func Add(env *cli.Env, app *fisk.Application) {
	addApply(env, app)
	addGraph(env, app)
	addEnsure(env, app)
	addStatus(env, app)
	addFacts(env, app)
	addData(env, app)
	addSchema(env, app)
	addSession(env, app)
}
