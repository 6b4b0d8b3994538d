// Package fleetcmd holds the operator's commands, muster fleet.
package fleetcmd

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
)

// Add adds muster validate and the muster fleet commands.
func Add(env *cli.Env, app *fisk.Application) {
	addValidate(env, app)
	cmd := app.Command("fleet", "Manage a fleet: assign manifests to nodes, watch and query them")
	cmd.HelpLong("Nodes run `muster agent run`; everything between them and these commands is in NATS, at --server or --context.\n\n" +
		"  muster fleet init                          create the buckets and streams\n" +
		"  muster fleet push --group web motd.yaml    assign a manifest to a group\n" +
		"  muster fleet wait motd                     wait until every node runs it\n" +
		"  muster fleet status                        see the whole fleet\n" +
		"  muster fleet reports                       follow the reports\n" +
		"  muster fleet exec --all -- uptime          run a command on all nodes")
	addProvision(env, cmd)
	addPush(env, cmd)
	addPreview(env, cmd)
	addEdit(env, cmd)
	addRm(env, cmd)
	addLs(env, cmd)
	addShow(env, cmd)
	addDiff(env, cmd)
	addHistory(env, cmd)
	addRollback(env, cmd)
	addSign(env, cmd)
	addStatus(env, cmd)
	addDescribe(env, cmd)
	addFacts(env, cmd)
	AddServe(env, cmd)
	addNodes(env, cmd)
	addQuery(env, cmd)
	addEnsure(env, cmd)
	addExec(env, cmd)
	addRun(env, cmd)
	addReports(env, cmd)
	addWait(env, cmd)
	addPing(env, cmd)
	addSimulate(env, cmd)
	addPause(env, cmd)
	addResume(env, cmd)
	addLabel(env, cmd)
	addGroup(env, cmd)
	addForget(env, cmd)
	addToken(env, cmd)
}
