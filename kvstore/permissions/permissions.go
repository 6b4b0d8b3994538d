// Package permissions returns what a node may do with NATS: its own keys, subjects
// and inbox, nothing of other nodes.
package permissions

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// A node may send this many answers to one request, for this long; later ones are
// in the stream of reports only.
const (
	responseMessages = 32
	responseAge      = time.Hour
)

// Permissions are all that a node may do with NATS.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// AllowResponses are the answers to requests, in addition.
	AllowResponses Responses `json:"allow_responses"`
}

// Responses are how many answers one request may have, and for how long.
type Responses struct {
	Max     int            `json:"max"`
	Expires model.Duration `json:"expires"`
}

// Of returns what a node of some groups needs for its job, as
// kvstore.Names.Streams describes it. The node must connect with
// Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// The subjects of direct gets and of consumers name what they read, which confines
// a node to its families. The list of streams shows no keys; the info of one
// stream, which would, is not permitted. Permissions do not confine where the
// server delivers what a node asks for, so a node can have its own manifests and
// commands sent to any subject: Serve, Commands and Ask accept nothing that comes
// out of a stream. Nor do they confine which bundles a node reads, because their
// parts are asked for by a request body: bundles hold no secrets. That a node
// cannot remove the keys of others, by a rollup of its own, is up to the
// configuration of the streams.
func Of(prefix, node string, groups []string) (Permissions, error) {
	n, err := kvstore.NewNames(prefix)
	if err != nil {
		return Permissions{}, err
	}
	if err := model.CheckNode(node, groups); err != nil {
		return Permissions{}, err
	}
	families := model.Families(node, groups)
	p := Permissions{
		Publish:        []string{"$JS.API.STREAM.LIST", n.Reply("*", node)},
		Subscribe:      []string{n.InboxPrefix(node) + ".>"},
		AllowResponses: Responses{responseMessages, model.Duration(responseAge)},
	}
	for _, s := range n.Streams() {
		p.Publish = append(p.Publish, use(s, node, families)...)
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		service := "$SRV." + verb
		p.Subscribe = append(p.Subscribe, service, service+"."+n.Service(), service+"."+n.Service()+".*")
	}
	for _, family := range families {
		p.Subscribe = append(p.Subscribe, n.Changed(model.Key(family, ">")), n.Command(family))
		for _, verb := range kvstore.Verbs() {
			p.Subscribe = append(p.Subscribe, n.Request(verb, family))
		}
	}

	return p, nil
}

// use returns the subjects by which a node writes and reads a stream.
func use(s kvstore.Stream, node string, families []string) []string {
	name := s.Config.Name
	subjects := expand(s.Writes, node, families)
	if s.ReadsAll {
		subjects = append(subjects, kvstore.DirectGet(name, ""))
	}
	for _, consumer := range expand([]string{s.Consumer}, node, nil) {
		subjects = append(subjects, "$JS.API.CONSUMER.MSG.NEXT."+name+"."+consumer, "$JS.API.CONSUMER.DELETE."+name+"."+consumer)
		for _, read := range expand(s.Reads, node, families) {
			subjects = append(subjects, "$JS.API.CONSUMER.CREATE."+name+"."+consumer+"."+read)
		}
	}
	for _, read := range expand(s.Reads, node, families) {
		subjects = append(subjects, kvstore.DirectGet(name, read))
	}

	return subjects
}

// expand replaces the placeholders of subjects by the node and its families.
func expand(subjects []string, node string, families []string) []string {
	var out []string
	for _, s := range subjects {
		s = strings.ReplaceAll(s, kvstore.AnyNode, node)
		switch {
		case s == "":
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

// ServerConfig returns the permissions as a block for a user in the configuration
// of nats-server.
func (p Permissions) ServerConfig() string {
	return fmt.Sprintf("permissions: {\n  publish: {allow: [\n%s  ]}\n  subscribe: {allow: [\n%s  ]}\n  allow_responses: {max: %d, expires: %q}\n}\n",
		quoted(p.Publish), quoted(p.Subscribe), p.AllowResponses.Max, p.AllowResponses.Expires)
}

// quoted returns the subjects, one a line.
func quoted(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "    %q\n", s)
	}

	return b.String()
}

// Claims returns the permissions as the claims of a user.
func (p Permissions) Claims() jwt.Permissions {
	return jwt.Permissions{
		Pub:  jwt.Permission{Allow: p.Publish},
		Sub:  jwt.Permission{Allow: p.Subscribe},
		Resp: &jwt.ResponsePermission{MaxMsgs: p.AllowResponses.Max, Expires: p.AllowResponses.Expires.Std()},
	}
}

// ClaimsJSON returns Claims as the JSON in a JWT.
func (p Permissions) ClaimsJSON() ([]byte, error) {
	return json.MarshalIndent(p.Claims(), "", "  ")
}
