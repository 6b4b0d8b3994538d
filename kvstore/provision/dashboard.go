package provision

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Serving describes what muster fleet serve may do besides reading.
type Serving struct {
	// Pauses permits it to pause and resume every node and group.
	Pauses bool
	// Requests are the verbs of its requests to nodes, from kvstore.RequesterVerbs.
	Requests []string
}

// DashboardPermissions returns the permissions for muster fleet serve: those of Viewer without bundles, and the
// given ones. It writes nothing but pauses. The user belongs to the account OPERATORS, or with
// requests to REQUESTERS. The user must connect with Names.InboxPrefix. The error wraps
// model.ErrInvalidName.
//
// Requests reach all nodes, because NATS does not know the groups. Permissions cannot limit their
// content: a preview may have guards, which are commands. Nodes run them unless they require
// signatures.
func DashboardPermissions(prefix, user string, does Serving) (Permissions, error) {
	p, err := ViewerPermissions(prefix, user)
	if err != nil {
		return p, err
	}
	n, err := kvstore.NewNames(prefix)
	bundles := kvstore.ObjectStream(n.Bundles())
	unseen := []string{kvstore.JoinedAPI.DirectGet(bundles, ""), kvstore.JoinedAPI.DirectGet(bundles, ">")}
	p.Publish = slices.DeleteFunc(p.Publish, func(subject string) bool { return slices.Contains(unseen, subject) })
	if does.Pauses {
		p.Publish = append(p.Publish, kvstore.KVSubject(n.Control(), model.Key("*.*", model.ControlPause)))
	}
	for _, verb := range does.Requests {
		if !slices.Contains(kvstore.RequesterVerbs(), verb) {
			return p, fmt.Errorf("%w: requests of %q, only %q can be permitted", model.ErrInvalidName, verb, kvstore.RequesterVerbs())
		}
		p.Publish = append(p.Publish, n.Request(verb, ">"))
	}
	if len(does.Requests) > 0 {
		p.Publish = append(p.Publish, n.RequestsCheck())
		p.Subscribe = append(p.Subscribe, n.Answer(user, "*", "*"))
	}

	return p, err
}
