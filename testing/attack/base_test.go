package attack

import (
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
)

// basePermissions are former permissions of a node in one account: they let the node choose where the server
// delivers answers. The controls attack with them.
func basePermissions(node string, groups []string) provision.Permissions {
	p := provision.Permissions{
		Publish: []string{
			"$JS.API.STREAM.LIST", "muster.reply.*." + node,
			"$JS.API.CONSUMER.MSG.NEXT.KV_MUSTER_MANIFESTS.muster-list-" + node, "$JS.API.CONSUMER.DELETE.KV_MUSTER_MANIFESTS.muster-list-" + node,
			"$JS.API.DIRECT.GET.KV_MUSTER_DATA.$KV.MUSTER_DATA.>",
			"$KV.MUSTER_NODES." + node + ".state", "$KV.MUSTER_NODES." + node + ".facts", "$KV.MUSTER_NODES." + node + ".inventory",
			"$JS.API.DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES." + node + ".state",
			"$JS.API.DIRECT.GET.OBJ_MUSTER_BUNDLES", "$JS.API.DIRECT.GET.OBJ_MUSTER_BUNDLES.$O.MUSTER_BUNDLES.M.>",
			"muster.report." + node + ".*.*",
			"$JS.API.CONSUMER.MSG.NEXT.MUSTER_COMMANDS.muster-commands-" + node, "$JS.API.CONSUMER.DELETE.MUSTER_COMMANDS.muster-commands-" + node,
			"muster.registration.*.*.*." + node + ".*.*", "$JS.API.DIRECT.GET.MUSTER_REGISTRATIONS",
		},
		Subscribe: []string{
			"_INBOX_" + node + ".>",
			"$SRV.PING", "$SRV.PING.muster", "$SRV.PING.muster.*", "$SRV.INFO", "$SRV.INFO.muster", "$SRV.INFO.muster.*", "$SRV.STATS", "$SRV.STATS.muster", "$SRV.STATS.muster.*",
		},
		AllowResponses: &provision.Responses{Max: 32, Expires: model.Duration(time.Hour)},
	}
	for _, family := range model.Families(node, groups) {
		p.Publish = append(p.Publish,
			"$JS.API.CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-"+node+".$KV.MUSTER_MANIFESTS."+family+".>",
			"$JS.API.DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS."+family+".>",
			"$JS.API.CONSUMER.CREATE.MUSTER_COMMANDS.muster-commands-"+node+".muster.command."+family,
			"$JS.API.DIRECT.GET.MUSTER_COMMANDS.muster.command."+family,
		)
		p.Subscribe = append(p.Subscribe, "muster.changed."+family+".>", "muster.command."+family)
		for _, verb := range []string{"ensure", "preview", "status", "facts", "ping"} {
			p.Subscribe = append(p.Subscribe, "muster."+verb+"."+strings.TrimPrefix(family, allOf(family)))
		}
	}

	return p
}

// allOf returns what the subject of a request to all nodes lacks.
func allOf(family string) string {
	if family == model.GroupFamily(model.GroupAll) {
		return "group."
	}

	return ""
}
