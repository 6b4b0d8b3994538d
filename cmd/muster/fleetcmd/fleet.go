// Package fleetcmd holds the operator's commands, muster fleet.
package fleetcmd

import (
	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/accesscmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/assigncmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/controlcmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/ensurecmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/historycmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/pingcmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/reportcmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/runcmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/servecmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/simulatecmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/statuscmd"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/waitcmd"
)

// Add adds the commands to the command line, after those that prepare adds.
func Add(env *cli.Env, app *fisk.Application, prepare func(*cli.Env, *fisk.CmdClause)) {
	assigncmd.AddValidate(env, app)
	cmd := app.Command("fleet", "Manage a fleet: assign manifests to nodes, watch and query them")
	cmd.HelpLong("Nodes run `muster agent run`; everything between them and these commands is in NATS, at --server or --context.\n\n" +
		"  muster fleet init                          create the buckets and streams\n" +
		"  muster fleet push --group web motd.yaml    assign a manifest to a group\n" +
		"  muster fleet wait motd                     wait until every node runs it\n" +
		"  muster fleet status                        see the whole fleet\n" +
		"  muster fleet reports                       follow the reports\n" +
		"  muster fleet exec --all -- uptime          run a command on all nodes")
	prepare(env, cmd)
	assigncmd.AddPush(env, cmd)
	assigncmd.AddPreview(env, cmd)
	assigncmd.AddEdit(env, cmd)
	assigncmd.AddRm(env, cmd)
	addLs(env, cmd)
	addShow(env, cmd)
	addDiff(env, cmd)
	historycmd.Add(env, cmd)
	assigncmd.AddRollback(env, cmd)
	assigncmd.AddSign(env, cmd)
	statuscmd.AddStatus(env, cmd)
	statuscmd.AddDescribe(env, cmd)
	statuscmd.AddFacts(env, cmd)
	servecmd.Add(env, cmd)
	reportcmd.AddNodes(env, cmd)
	reportcmd.AddQuery(env, cmd)
	ensurecmd.Add(env, cmd)
	ensurecmd.AddExec(env, cmd)
	runcmd.Add(env, cmd)
	reportcmd.AddReports(env, cmd)
	waitcmd.Add(env, cmd)
	pingcmd.Add(env, cmd)
	simulatecmd.Add(env, cmd)
	controlcmd.AddPause(env, cmd)
	controlcmd.AddResume(env, cmd)
	controlcmd.AddLabel(env, cmd)
	controlcmd.AddGroup(env, cmd)
	controlcmd.AddForget(env, cmd)
	accesscmd.AddToken(env, cmd)
}
