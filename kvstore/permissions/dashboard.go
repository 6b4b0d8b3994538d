package permissions

import (
	"slices"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/jsapi"
	"github.com/musterfleet/muster/model"
)

// Dashboard returns what muster fleet serve needs, as a user of the account OPERATORS: what
// Viewer has, without bundles. With actions it also pauses and resumes every node and group, and
// writes nothing else. The user must connect with Names.InboxPrefix. The error wraps
// model.ErrInvalidName.
func Dashboard(prefix, user string, actions bool) (Permissions, error) {
	p, err := Viewer(prefix, user)
	if err != nil {
		return p, err
	}
	n, err := kvstore.NewNames(prefix)
	bundles := kvstore.ObjectStream(n.Bundles())
	unseen := []string{jsapi.Joined.DirectGet(bundles, ""), jsapi.Joined.DirectGet(bundles, ">")}
	p.Publish = slices.DeleteFunc(p.Publish, func(subject string) bool { return slices.Contains(unseen, subject) })
	if actions {
		p.Publish = append(p.Publish, kvstore.KVSubject(n.Control(), model.Key("*.*", model.ControlPause)))
	}

	return p, err
}
