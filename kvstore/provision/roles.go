package provision

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Viewer returns what an operator who only looks needs, as a user of the account
// OPERATORS: assignments with their bundles, nodes, reports and registrations. The
// user must connect with Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// A viewer sees all that is assigned, and what is in it. No node is asked: a request
// can name commands, even one for a state.
func ViewerPermissions(prefix, user string) (Permissions, error) {
	n, err := kvstore.NewNames(prefix)
	if err == nil {
		err = model.CheckNode(user, nil)
	}
	if err != nil {
		return Permissions{}, err
	}
	p := Permissions{Publish: []string{kvstore.JoinedAPI.StreamList()}, Subscribe: []string{n.InboxPrefix(user) + ".>"}}
	unseen := []string{kvstore.KVStream(n.Data()), n.Commands()}
	for _, s := range n.Streams() {
		if name := s.Config.Name; !slices.Contains(unseen, name) {
			p.Publish = append(p.Publish, kvstore.JoinedAPI.DirectGet(name, ""), kvstore.JoinedAPI.DirectGet(name, ">"))
			if s.Lists {
				p.Publish = append(p.Publish, kvstore.JoinedAPI.StreamInfo(name))
			}
		}
	}

	return p, nil
}

// Operator returns what an operator of some groups and nodes needs beyond Viewer: to
// assign to them, to queue requests for them, and to pause them. That is root on these nodes. The
// group of all nodes is an administrator's; so are bundles, of which an operator
// could damage those of others, and live requests, which the server does not pass on
// from one account by way of a second to a third.
func OperatorPermissions(prefix, user string, groups, nodes []string) (Permissions, error) {
	p, err := ViewerPermissions(prefix, user)
	if err != nil {
		return p, err
	}
	if len(groups)+len(nodes) == 0 || slices.Contains(groups, model.GroupAll) {
		return p, fmt.Errorf("%w: an operator is one of some groups or nodes, and not of the group %s", model.ErrInvalidName, model.GroupAll)
	}
	var families []string
	for _, g := range groups {
		if err := model.CheckName(g); err != nil {
			return p, err
		}
		families = append(families, model.GroupFamily(g))
	}
	for _, node := range nodes {
		if err := model.CheckNode(node, nil); err != nil {
			return p, err
		}
		families = append(families, model.NodeFamily(node))
	}
	n, err := kvstore.NewNames(prefix)
	for _, family := range families {
		p.Publish = append(p.Publish, kvstore.KVSubject(n.Manifests(), model.Key(family, "*")), n.Command(family, "*"))
		for _, name := range []string{model.ControlPause, model.ControlLabels} {
			if key := model.Key(family, name); model.IsControlKey(key) {
				p.Publish = append(p.Publish, kvstore.KVSubject(n.Control(), key))
			}
		}
	}

	return p, err
}

// requesterServices returns what requesters publish: reads, pauses, and the check of their account.
func requesterServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Control(), model.Key("*.*", model.ControlPause))},
		Import{Service: true, Subject: kvstore.OwnAPI.StreamList(), Local: n.RequestsCheck()},
	)
}

// operatorServices returns what operators publish: reads, assignments, commands, and what they
// write about nodes.
func operatorServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Manifests(), ">")},
		Import{Service: true, Subject: n.Command("*.*", "*")},
		Import{Service: true, Subject: kvstore.KVSubject(n.Control(), "*.*.*")},
	)
}
