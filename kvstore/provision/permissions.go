package provision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Limits for the answers of a node to one request. Later results are only in the stream of reports.
const (
	responseMessages = 32
	responseAge      = time.Hour
)

// Permissions list everything that a user may do with NATS.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// AllowResponses also permits answers to requests.
	AllowResponses *Responses `json:"allow_responses,omitempty"`
}

// Responses limits the number of answers to a request, and their time.
type Responses struct {
	Max     int            `json:"max"`
	Expires model.Duration `json:"expires"`
}

// ServerConfig returns the permissions as settings of a user in the configuration of nats-server. It
// permits only client connections. muster needs no other kind, and the protocols of leaf nodes and
// MQTT could be attacked.
func (p Permissions) ServerConfig() string {
	text := fmt.Sprintf("permissions: {\n  publish: {allow: [\n%s  ]}\n  subscribe: {allow: [\n%s  ]}\n", quotedSubjects(p.Publish), quotedSubjects(p.Subscribe))
	if r := p.AllowResponses; r != nil {
		text += fmt.Sprintf("  allow_responses: {max: %d, expires: %q}\n", r.Max, r.Expires)
	}

	return text + "}\n# Add \"WEBSOCKET\" for a user that connects by ws:// or wss://.\n" +
		fmt.Sprintf("allowed_connection_types: [%q]\n", jwt.ConnectionTypeStandard)
}

func quotedSubjects(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "    %q\n", s)
	}

	return b.String()
}

// Claims returns the permissions, and the kind of connection, as the claims of a user.
func (p Permissions) Claims() jwt.UserPermissionLimits {
	claims := jwt.UserPermissionLimits{Limits: jwt.Limits{NatsLimits: jwt.NatsLimits{Subs: jwt.NoLimit, Data: jwt.NoLimit, Payload: jwt.NoLimit}}}
	claims.Pub.Allow, claims.Sub.Allow = p.Publish, p.Subscribe
	if r := p.AllowResponses; r != nil {
		claims.Resp = &jwt.ResponsePermission{MaxMsgs: r.Max, Expires: r.Expires.Std()}
	}
	claims.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard}

	return claims
}

// ClaimsJSON returns Claims as the JSON in a JWT.
func (p Permissions) ClaimsJSON() ([]byte, error) { return indentedJSON(p.Claims()) }

func discovery(n kvstore.Names) []string {
	var subjects []string
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		service := "$SRV." + verb
		subjects = append(subjects, service, service+"."+n.Prefix, service+"."+n.Prefix+".*")
	}

	return subjects
}

// NodePermissions returns the permissions of a node in some groups. The node is a user of the account NODES, see
// AccountsOf. The permissions derive from kvstore.Names.Streams. The node must connect with
// Names.InboxPrefix. The error wraps model.ErrInvalidName.
//
// The subject of a direct get contains the subject that it reads, so a node can read only its
// families. A list of streams shows no keys. The info of a stream that nodes may list shows the names
// of all its keys, but no values. A node can read all bundles, because their chunks are requested in
// the request body; bundles contain no secrets. The configuration of the streams prevents a node from
// removing the keys of others with a rollup.
//
// With kvstore.OwnAPI the node is a user of the account with the streams. In that account a node can make the server
// deliver answers to any subject, so its nodes must trust each other.
func NodePermissions(api kvstore.APIPrefix, prefix, node string, groups []string) (Permissions, error) {
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
		Subscribe:      append([]string{kvstore.InboxPrefix(node) + ".>"}, discovery(n)...),
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

	if api.IsOwn() {
		// A node first asks there and gets no answer.
		p.Publish = append(p.Publish, kvstore.JoinedAPI.StreamList())
	}

	return p, nil
}

// streamSubjects returns the subjects for reads and writes of a node in a stream.
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
	p := Permissions{Publish: []string{kvstore.JoinedAPI.StreamList()}, Subscribe: []string{kvstore.InboxPrefix(user) + ".>"}}
	unseen := []string{kvstore.KVStream(n.Data), n.Commands}
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
		p.Publish = append(p.Publish, kvstore.KVSubject(n.Manifests, model.Key(family, "*")), n.Command(family, "*"))
		for _, name := range []string{model.ControlPause, model.ControlLabels} {
			if key := model.Key(family, name); model.IsControlKey(key) {
				p.Publish = append(p.Publish, kvstore.KVSubject(n.Control, key))
			}
		}
	}

	return p, err
}

// requesterServices returns the imports for everything that requesters publish: reads, pauses, and the
// check of their account.
func requesterServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Control, model.Key("*.*", model.ControlPause))},
		Import{Service: true, Subject: kvstore.OwnAPI.StreamList(), Local: n.RequestsCheck()},
	)
}

// operatorServices returns the imports for everything that operators publish: reads, assignments,
// commands, and control documents.
func operatorServices(n kvstore.Names) []Import {
	return append(readImports(n),
		Import{Service: true, Subject: kvstore.KVSubject(n.Manifests, ">")},
		Import{Service: true, Subject: n.Command("*.*", "*")},
		Import{Service: true, Subject: kvstore.KVSubject(n.Control, "*.*.*")},
	)
}

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
	bundles := kvstore.ObjectStream(n.Bundles)
	unseen := []string{kvstore.JoinedAPI.DirectGet(bundles, ""), kvstore.JoinedAPI.DirectGet(bundles, ">")}
	p.Publish = slices.DeleteFunc(p.Publish, func(subject string) bool { return slices.Contains(unseen, subject) })
	if does.Pauses {
		p.Publish = append(p.Publish, kvstore.KVSubject(n.Control, model.Key("*.*", model.ControlPause)))
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

// ControlLine is the required max_control_line of nats-server for users with JWTs. A user sends its
// JWT in one line. The JWT of a node in 64 groups has about 45 KB.
const ControlLine = "64KB"

// LongJWT is the size in bytes above which a JWT may exceed the default max_control_line of 4 KB. The
// line also contains a signature and names.
const LongJWT = 3680

// Parts of a JWT with a constant length.
const (
	keyLength       = 56 // a public key
	idLength        = 52
	signatureLength = 64
	anyTime         = 1_800_000_000 // the time of issue
)

// JWTSize returns the size in bytes of the JWT of a user with this name and these permissions, signed
// by a signing key of the account.
func (p Permissions) JWTSize(name string) int {
	key := strings.Repeat("K", keyLength)
	claims := jwt.NewUserClaims(key)
	claims.UserPermissionLimits = p.Claims()
	claims.Name, claims.Issuer, claims.IssuerAccount = name, key, key
	claims.ID, claims.IssuedAt = strings.Repeat("I", idLength), anyTime
	claims.Type, claims.Version = jwt.UserClaim, 2

	return jsonSize(jwt.Header{Type: jwt.TokenTypeJwt, Algorithm: jwt.AlgorithmNkey}) + 1 + jsonSize(claims) + 1 + base64.RawURLEncoding.EncodedLen(signatureLength)
}

func jsonSize(v any) int {
	// These values always encode.
	text, _ := json.Marshal(v)

	return base64.RawURLEncoding.EncodedLen(len(text))
}
