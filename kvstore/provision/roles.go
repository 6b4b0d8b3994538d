package provision

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// ViewerPermissions returns the permissions of an operator who only reads: assignments with their bundles, nodes,
// reports and registrations. The user belongs to the account OPERATORS and must connect with
// Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// A viewer can read every assignment. A viewer cannot send requests, because even a request for a
// state can contain commands.
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

// OperatorPermissions returns the permissions of an operator of some groups and nodes: those of Viewer, and to
// assign to them, queue requests for them, and pause them. This makes the operator root on these
// nodes. Only administrators may write to the group of all nodes, store bundles, or send live
// requests. An operator could damage the bundles of others, and the server does not forward requests
// from a joined account through the fleet's account to a third account.
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

// requesterServices returns the imports for everything that requesters publish: reads, pauses, and the
// check of their account.
func requesterServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Control(), model.Key("*.*", model.ControlPause))},
		Import{Service: true, Subject: kvstore.OwnAPI.StreamList(), Local: n.RequestsCheck()},
	)
}

// operatorServices returns the imports for everything that operators publish: reads, assignments,
// commands, and control documents.
func operatorServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Manifests(), ">")},
		Import{Service: true, Subject: n.Command("*.*", "*")},
		Import{Service: true, Subject: kvstore.KVSubject(n.Control(), "*.*.*")},
	)
}
