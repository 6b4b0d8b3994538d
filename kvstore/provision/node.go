package provision

import (
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// NodePermissions returns the permissions of a node in some groups. The node is a user of the account NODES, see
// AccountsOf. The permissions derive from kvstore.Names.Streams. The node must connect with
// Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// The subject of a direct get contains the subject that it reads, so a node can read only its
// families. A list of streams shows no keys. The info of a stream that nodes may list shows the names
// of all its keys, but no values. A node can read all bundles, because their chunks are requested in
// the request body; bundles contain no secrets. The configuration of the streams prevents a node from
// removing the keys of others with a rollup.
func NodePermissions(prefix, node string, groups []string) (Permissions, error) {
	return nodePermissions(kvstore.JoinedAPI, prefix, node, groups)
}

// NodePermissionsInOneAccount returns the permissions of a node in the account with the streams. In that account a
// node can make the server deliver answers to any subject, so its nodes must trust each other.
func NodePermissionsInOneAccount(prefix, node string, groups []string) (Permissions, error) {
	p, err := nodePermissions(kvstore.OwnAPI, prefix, node, groups)
	if err == nil {
		// A node asks there first and gets no answer.
		p.Publish = append(p.Publish, kvstore.JoinedAPI.StreamList())
	}

	return p, err
}

func nodePermissions(api kvstore.APIPrefix, prefix, node string, groups []string) (Permissions, error) {
	n, err := kvstore.NewNames(prefix)
	if err != nil {
		return Permissions{}, err
	}
	if err := model.CheckNode(node, groups); err != nil {
		return Permissions{}, err
	}
	families := model.Families(node, groups)
	p := Permissions{
		Publish:        []string{api.StreamList(), n.Reply("*", node)},
		Subscribe:      append([]string{n.InboxPrefix(node) + ".>"}, discovery(n)...),
		AllowResponses: &Responses{responseMessages, model.Duration(responseAge)},
	}
	for _, s := range n.Streams() {
		p.Publish = append(p.Publish, streamSubjects(api, s, node, families)...)
	}
	for _, family := range families {
		p.Subscribe = append(p.Subscribe, n.Changed(model.Key(family, ">")), n.CommandQueued(family, ">"))
		for _, verb := range kvstore.Verbs() {
			p.Subscribe = append(p.Subscribe, n.Request(verb, family))
		}
	}

	return p, nil
}

// streamSubjects returns the subjects by which a node writes and reads a stream.
func streamSubjects(api kvstore.APIPrefix, s kvstore.Stream, node string, families []string) []string {
	name := s.Config.Name
	subjects := expandSubjects(s.Writes, node, families)
	if s.ReadsAll {
		subjects = append(subjects, api.DirectGet(name, ""))
	}
	if s.Lists {
		subjects = append(subjects, api.StreamInfo(name))
	}
	for _, read := range expandSubjects(s.Reads, node, families) {
		subjects = append(subjects, api.DirectGet(name, read))
	}

	return subjects
}

// expand replaces the placeholders in subjects by the node and its families.
func expandSubjects(subjects []string, node string, families []string) []string {
	var out []string
	for _, s := range subjects {
		s = strings.ReplaceAll(s, kvstore.AnyNode, node)
		switch {
		case strings.Contains(s, kvstore.AnyFamily):
			for _, family := range families {
				out = append(out, strings.ReplaceAll(s, kvstore.AnyFamily, family))
			}
		default:
			out = append(out, s)
		}
	}

	return out
}
