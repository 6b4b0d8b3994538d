package kvstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// DefaultPrefix is the prefix of all names unless another is configured.
const DefaultPrefix = "muster"

// Names returns the name of every bucket, stream, key and subject of one fleet.
// NewNames returns one; the zero value is not usable.
type Names struct{ prefix, upper string }

// NewNames returns the names of the fleet with a prefix, one token of lower-case
// letters, digits, - and _; empty is DefaultPrefix. The error wraps
// model.ErrInvalidName.
func NewNames(prefix string) (Names, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if !model.IsToken(prefix) || prefix != strings.ToLower(prefix) {
		return Names{}, fmt.Errorf("%w: prefix %q, use lower-case letters, digits, - and _ only", model.ErrInvalidName, prefix)
	}

	return Names{prefix: prefix, upper: strings.ToUpper(prefix)}, nil
}

// Prefix is the prefix of all of them, in lower case.
func (n Names) Prefix() string { return n.prefix }

// Init is the command that provisions them.
func (n Names) Init() string {
	return n.Run("fleet init")
}

// Run returns a command line of muster, with the prefix of the fleet where it needs one.
func (n Names) Run(command string) string {
	if n.prefix == DefaultPrefix {
		return "muster " + command
	}

	return "muster --prefix " + n.prefix + " " + command
}

// Manifests is the key-value bucket of assignments.
func (n Names) Manifests() string { return n.upper + "_MANIFESTS" }

// Bundles is the object store of bundles.
func (n Names) Bundles() string { return n.upper + "_BUNDLES" }

// Control is the key-value bucket of what operators write about nodes.
func (n Names) Control() string { return n.upper + "_CONTROL" }

// Data is the key-value bucket of hierarchical data.
func (n Names) Data() string { return n.upper + "_DATA" }

// Nodes is the key-value bucket of the states and facts of nodes.
func (n Names) Nodes() string { return n.upper + "_NODES" }

// Reports is the stream of reports.
func (n Names) Reports() string { return n.upper + "_REPORTS" }

// Commands is the stream of queued ensure requests.
func (n Names) Commands() string { return n.upper + "_COMMANDS" }

// Registrations is the stream of registrations.
func (n Names) Registrations() string { return n.upper + "_REGISTRATIONS" }

// Registration is the subject of a registration; each part may be the wildcard *.
// The node is a part of its own, so that permissions can keep one from registering
// as another; dots and colons of the address are written _ and +.
func (n Names) Registration(cluster, protocol, service, node, address, port string) string {
	address = strings.NewReplacer(".", "_", ":", "+").Replace(address)

	return strings.Join([]string{n.prefix, "registration", cluster, protocol, service, node, address, port}, ".")
}

// Changed is the subject on which the server republishes the headers of a
// change of an assignment; key may end in the wildcard >.
func (n Names) Changed(key string) string { return n.prefix + ".changed." + key }

// ChangedKey is the inverse of Changed.
func (n Names) ChangedKey(subject string) (key string, ok bool) {
	return strings.CutPrefix(subject, n.prefix+".changed.")
}

// controlToken is in the subjects of changes of control keys, between the family and the name:
// it begins with _, as the name of no assignment does. So whoever may follow the changes of a
// family follows these too.
const controlToken = "_control"

// ControlChanged is the subject on which the server republishes the headers of a change of a
// control key of a family; name may be the wildcard *.
func (n Names) ControlChanged(family, name string) string {
	return n.Changed(family + "." + controlToken + "." + name)
}

// ControlKey is the inverse of ControlChanged: the control key that a subject is about.
func (n Names) ControlKey(subject string) (key string, ok bool) {
	changed, ok := n.ChangedKey(subject)
	family, name, is := strings.Cut(changed, "."+controlToken+".")

	return model.Key(family, name), ok && is && model.IsToken(name)
}

// GroupOf returns the group that a subject addresses, of those that nodes subscribe to; empty for
// none.
func (n Names) GroupOf(subject string) string {
	rest, _ := strings.CutPrefix(subject, n.prefix+".")
	kind, rest, _ := strings.Cut(rest, ".") // of a verb, or of what changed
	if kind == "changed" {
		rest = strings.TrimPrefix(rest, "command.")
	}
	group, is := strings.CutPrefix(rest, model.GroupFamily(""))
	if !is {
		return ""
	}
	group, _, _ = strings.Cut(group, ".")

	return group
}

// Report is the subject of a report; each part may be the wildcard *.
func (n Names) Report(node, kind, outcome string) string {
	return strings.Join([]string{n.prefix, "report", node, kind, outcome}, ".")
}

// BatchOutcome takes the place of the outcome in the subject of a batch of
// transactions, each of which has its own.
const BatchOutcome = "batch"

// Request is the subject of requests to the nodes of a family; that of
// model.GroupAll is all nodes.
func (n Names) Request(verb, family string) string {
	if family == model.GroupFamily(model.GroupAll) {
		family = model.GroupAll
	}

	return n.prefix + "." + verb + "." + family
}

// AskedReply ends the reply subject of a request; a node replaces it by its id,
// which it cannot be.
const AskedReply = "="

// Reply is the subject on which a node answers the request with an id; each may be
// the wildcard *. A node may publish on its own only, which proves who answers.
func (n Names) Reply(question, node string) string {
	return strings.Join([]string{n.prefix, "reply", question, node}, ".")
}

// questionLength is how long the unique part of the id of a question is, that of a nuid.
const questionLength = 22

// Question returns the id of the question that a requester asks, of its unique part.
func Question(requester, unique string) string { return requester + unique }

// Answer is the subject on which a requester gets the answer of a node to its question; unique and
// node may be the wildcard *. A requester may subscribe to its own only.
func (n Names) Answer(requester, unique, node string) string {
	return strings.Join([]string{n.prefix, "answer", requester, unique, node}, ".")
}

// AnswerMapping maps, in the account of requesters, the replies of nodes to answers: what the id
// of a question has before its unique part becomes a token of its own, which permissions can name.
func (n Names) AnswerMapping() (from, to string) {
	return n.Reply("*", "*"), fmt.Sprintf("%s.answer.{{splitfromright(1,%d)}}.{{wildcard(2)}}", n.prefix, questionLength)
}

// RequestsCheck is the subject by which a user finds out whether it is one of the account of
// requesters: there the server answers with the list of streams, elsewhere nobody does.
func (n Names) RequestsCheck() string { return n.prefix + ".requests" }

// VerbCheck is the subject by which a user finds out whether it may send requests of a verb: no
// node can have that name, so nobody listens.
func (n Names) VerbCheck(verb string) string { return n.Request(verb, model.NodeFamily(AskedReply)) }

// IsCheck reports whether a subject is one by which a user only finds out what it may.
func (n Names) IsCheck(subject string) bool {
	return subject == n.RequestsCheck() || slices.ContainsFunc(Verbs(), func(verb string) bool { return subject == n.VerbCheck(verb) })
}

// VerbOf returns the verb of the subject of a request.
func (n Names) VerbOf(subject string) string {
	verb, _, _ := strings.Cut(strings.TrimPrefix(subject, n.prefix+"."), ".")

	return verb
}

// MayAnswer reports whether a node answers where a reply subject says: on a subject of its own, on the
// inbox of a client, or where the server passes it on. The server has a node publish wherever whoever asks
// wants it answered, which could be where it, or another, stores its state.
func (n Names) MayAnswer(reply string) bool {
	question, ok := strings.CutPrefix(reply, n.prefix+".reply.")
	if question, is := strings.CutSuffix(question, "."+AskedReply); ok && is {
		return model.IsToken(question)
	}

	return reply == "" || strings.HasPrefix(reply, "_INBOX") || strings.HasPrefix(reply, "_R_.")
}

// AnswerSubject is where a node answers a request with a reply subject. That of
// other clients of NATS is not changed.
func (n Names) AnswerSubject(reply, node string) string {
	question, ok := strings.CutSuffix(reply, "."+AskedReply)
	if ok && strings.HasPrefix(question, n.prefix+".reply.") {
		return question + "." + node
	}

	return reply
}

// Command is the subject of a command for a family, which may be the wildcard >.
func (n Names) Command(family, token string) string {
	return n.prefix + ".command." + model.Key(family, token)
}

// CommandQueued is the subject on which the server republishes the headers of a
// command.
func (n Names) CommandQueued(family, token string) string {
	return n.Changed("command." + model.Key(family, token))
}

// Service is the name under which nodes are discovered as a micro service.
func (n Names) Service() string { return n.prefix }

// InboxPrefix is the prefix of a node's own inboxes; with a common one nodes could
// read each other's answers.
func (Names) InboxPrefix(node string) string { return "_INBOX_" + node }

// nameOf returns the name that an inbox prefix has, empty for the common one.
func nameOf(inbox string) string {
	name, _ := strings.CutPrefix(inbox, Names{}.InboxPrefix(""))
	if !model.IsToken(name) || name == inbox {
		return ""
	}

	return name
}

// KVStream is the stream behind a key-value bucket.
func KVStream(bucket string) string { return "KV_" + bucket }

// KVSubject is the subject of a key, which may be a wildcard.
func KVSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// ObjectStream is the stream behind an object store.
func ObjectStream(bucket string) string { return "OBJ_" + bucket }
