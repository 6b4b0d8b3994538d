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

// A node may send so many answers to one request, over so long a time; what
// comes later is in the stream of reports.
const (
	responseMessages = 32
	responseAge      = time.Hour
)

// NodePermissions are all that a node may do with NATS.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// AllowResponses are the answers to what the node was asked, which come on top.
	AllowResponses Responses `json:"allow_responses"`
}

// Responses are how many answers one request may have, and for how long.
type Responses struct {
	Max     int            `json:"max"`
	Expires model.Duration `json:"expires"`
}

// Permissions gives what a node of some groups needs for its job: its own keys,
// subjects and inbox, nothing of other nodes. The node must connect with
// Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// A direct get and a consumer carry what they read in the subject of the
// request, which is what confines a node to its families. The list of streams
// shows no keys; the info of a stream, which would, is not among them. What a
// permission cannot confine is where the server delivers what a node asks for:
// a node can have its own manifests and commands sent to any subject. Serve,
// Commands and Ask therefore take nothing that came out of a stream. One more
// thing is beyond permissions, and secrets belong into no bundle because of it:
// a node can read all bundles, since the parts of one can only be asked for by a
// body. That a node cannot remove what others said of themselves, by a rollup of
// its own key, is up to the buckets and streams as Apply makes them.
func Of(prefix, node string, groups []string) (Permissions, error) {
	n, err := kvstore.NewNames(prefix)
	if err != nil {
		return Permissions{}, err
	}
	if err := model.CheckNode(node, groups); err != nil {
		return Permissions{}, err
	}
	p := Permissions{
		Publish: []string{
			"$JS.API.STREAM.LIST",
			kvstore.DirectGet(kvstore.KVStream(n.Data()), kvstore.KVSubject(n.Data(), ">")),
			kvstore.DirectGet(kvstore.ObjectStream(n.Bundles()), "$O."+n.Bundles()+".M.>"),
			// The parts of a bundle are asked for by a body, of this stream only.
			"$JS.API.DIRECT.GET." + kvstore.ObjectStream(n.Bundles()),
			kvstore.KVSubject(n.Nodes(), node+"."+kvstore.StateKey),
			kvstore.DirectGet(kvstore.KVStream(n.Nodes()), kvstore.KVSubject(n.Nodes(), node+"."+kvstore.StateKey)),
			kvstore.KVSubject(n.Nodes(), node+"."+kvstore.FactsKey),
			n.Report(node, "*", "*"),
			n.Registration("*", "*", "*", node, "*", "*"),
			// Registrations are for all to read.
			"$JS.API.DIRECT.GET." + n.Registrations(),
			n.Reply("*", node),
		},
		Subscribe:      []string{n.InboxPrefix(node) + ".>"},
		AllowResponses: Responses{responseMessages, model.Duration(responseAge)},
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		service := "$SRV." + verb
		p.Subscribe = append(p.Subscribe, service, service+"."+n.Service(), service+"."+n.Service()+".*")
	}
	for _, family := range model.Families(node, groups) {
		p.addFamily(n, node, family)
	}
	p.Publish = append(p.Publish, consumerUse(kvstore.KVStream(n.Manifests()), n.ListConsumer(node))...)
	p.Publish = append(p.Publish, consumerUse(n.Commands(), n.CommandConsumer(node))...)

	return p, nil
}

// addFamily allows reading and hearing what is meant for a family.
func (p *Permissions) addFamily(n kvstore.Names, node, family string) {
	keys := kvstore.KVSubject(n.Manifests(), model.Key(family, ">"))
	p.Publish = append(p.Publish,
		kvstore.DirectGet(kvstore.KVStream(n.Manifests()), keys),
		consumerCreate(kvstore.KVStream(n.Manifests()), n.ListConsumer(node), keys),
		kvstore.DirectGet(n.Commands(), n.Command(family)),
		consumerCreate(n.Commands(), n.CommandConsumer(node), n.Command(family)),
	)
	p.Subscribe = append(p.Subscribe, n.Changed(model.Key(family, ">")), n.Command(family))
	for _, verb := range []string{kvstore.VerbEnsure, kvstore.VerbStatus, kvstore.VerbFacts, kvstore.VerbPing} {
		p.Subscribe = append(p.Subscribe, n.Request(verb, family))
	}
}

func consumerCreate(stream, consumer, filter string) string {
	return "$JS.API.CONSUMER.CREATE." + stream + "." + consumer + "." + filter
}

// consumerUse is what a consumer is read and removed by.
func consumerUse(stream, consumer string) []string {
	return []string{
		"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		"$JS.API.CONSUMER.DELETE." + stream + "." + consumer,
	}
}

// ServerConfig gives the permissions as a block for a user in the configuration
// of nats-server.
func (p Permissions) ServerConfig() string {
	return fmt.Sprintf("permissions: {\n  publish: {allow: [\n%s  ]}\n  subscribe: {allow: [\n%s  ]}\n  allow_responses: {max: %d, expires: %q}\n}\n",
		quoted(p.Publish), quoted(p.Subscribe), p.AllowResponses.Max, p.AllowResponses.Expires)
}

// quoted gives one subject a line.
func quoted(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "    %q\n", s)
	}

	return b.String()
}

// Claims gives the permissions as a user's claims have them.
func (p Permissions) Claims() jwt.Permissions {
	return jwt.Permissions{
		Pub:  jwt.Permission{Allow: p.Publish},
		Sub:  jwt.Permission{Allow: p.Subscribe},
		Resp: &jwt.ResponsePermission{MaxMsgs: p.AllowResponses.Max, Expires: p.AllowResponses.Expires.Std()},
	}
}

// ClaimsJSON gives Claims as the JSON in a JWT.
func (p Permissions) ClaimsJSON() ([]byte, error) {
	return json.MarshalIndent(p.Claims(), "", "  ")
}
