package provision

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Serving is what muster fleet serve does beside showing the fleet.
type Serving struct {
	// Pauses is that it pauses and resumes every node and group.
	Pauses bool
	// Requests are the verbs that it asks every node by, of kvstore.RequesterVerbs.
	Requests []string
}

// Dashboard returns what muster fleet serve needs: what Viewer has, without bundles, and what it does
// beside that; it writes nothing but pauses. It is a user of the account OPERATORS, with requests one
// of REQUESTERS. The user must connect with Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// Requests reach all nodes: NATS knows no groups. What is in them it cannot bound: a preview has
// guards, which are commands that nodes run, unless they demand signatures.
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
