package provision

import (
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Of returns what a node of some groups needs for its job as a user of the account
// NODES, see AccountsOf, from what kvstore.Names.Streams has. The node must connect
// with Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// The subjects of direct gets name what they read, which confines a node to its
// families. The list of streams shows no keys; the info of a stream that nodes list
// shows the names of all its keys, and no value. A node reads all bundles, because
// their parts are asked for by a request body: bundles hold no secrets. That it
// cannot remove the keys of others, by a rollup of its own, is up to the
// configuration of the streams.
func NodePermissions(prefix, node string, groups []string) (Permissions, error) {
	return nodePermissions(kvstore.JoinedAPI, prefix, node, groups)
}

// InOneAccount is Of for a node that is a user of the account with the streams.
// There permissions do not confine where the server delivers what a node asks for:
// the nodes of such an account must trust each other.
func NodePermissionsInOneAccount(prefix, node string, groups []string) (Permissions, error) {
	p, err := nodePermissions(kvstore.OwnAPI, prefix, node, groups)
	if err == nil {
		// A node asks there first, and nothing answers.
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

// use returns the subjects by which a node writes and reads a stream.
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

// expand replaces the placeholders of subjects by the node and its families.
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
