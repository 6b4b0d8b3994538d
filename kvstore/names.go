package kvstore

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// DefaultPrefix is the default prefix of all names.
const DefaultPrefix = "muster"

// Names holds the names of the buckets and streams of a fleet. Its methods return the keys and subjects. Use
// NewNames; the zero value is not usable.
type Names struct {
	// Prefix is the prefix in lower case. It also names the nodes in NATS service discovery.
	Prefix string
	// Manifests, Control, Data and Nodes are the key-value buckets of assignments, of control documents, of
	// hierarchical data, and of states and facts. Bundles is the object store of bundles.
	Manifests, Control, Data, Nodes, Bundles string
	// Reports, Commands and Registrations are the streams of reports, of queued requests, and of registrations.
	Reports, Commands, Registrations string
}

// NewNames returns the names of the fleet with a prefix. The prefix consists of lower-case letters,
// digits, - and _. An empty prefix means DefaultPrefix. The error wraps model.ErrInvalidName.
func NewNames(prefix string) (Names, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if !model.IsToken(prefix) || prefix != strings.ToLower(prefix) {
		return Names{}, fmt.Errorf("%w: prefix %q, use lower-case letters, digits, - and _ only", model.ErrInvalidName, prefix)
	}

	upper := strings.ToUpper(prefix)

	return Names{
		Prefix:    prefix,
		Manifests: upper + "_MANIFESTS", Control: upper + "_CONTROL", Data: upper + "_DATA", Nodes: upper + "_NODES", Bundles: upper + "_BUNDLES",
		Reports: upper + "_REPORTS", Commands: upper + "_COMMANDS", Registrations: upper + "_REGISTRATIONS",
	}, nil
}

// Run returns a muster command line with the prefix of the fleet.
func (n Names) Run(command string) string {
	if n.Prefix == DefaultPrefix {
		return "muster " + command
	}

	return "muster --prefix " + n.Prefix + " " + command
}

// Registration returns the subject of a registration. Each part may be the wildcard *. The node is a
// separate token, so that permissions can prevent a node from registering as another. Dots and colons
// of the address become _ and +.
func (n Names) Registration(cluster, protocol, service, node, address, port string) string {
	address = strings.NewReplacer(".", "_", ":", "+").Replace(address)

	return strings.Join([]string{n.Prefix, "registration", cluster, protocol, service, node, address, port}, ".")
}

// Changed returns the subject on which the server republishes the headers of a changed assignment. key
// may end in the wildcard >.
func (n Names) Changed(key string) string { return n.Prefix + ".changed." + key }

// ChangedKey is the inverse of Changed.
func (n Names) ChangedKey(subject string) (key string, ok bool) {
	return strings.CutPrefix(subject, n.Prefix+".changed.")
}

// controlToken separates the family and the name in the subjects of changed control keys. It starts
// with _, unlike the names of assignments. A user who may follow the assignments of a family also
// follows its control keys.
const controlToken = "_control"

// ControlChanged returns the subject on which the server republishes the headers of a changed control
// key. name may be the wildcard *.
func (n Names) ControlChanged(family, name string) string {
	return n.Changed(family + "." + controlToken + "." + name)
}

// ControlKey is the inverse of ControlChanged.
func (n Names) ControlKey(subject string) (key string, ok bool) {
	changed, ok := n.ChangedKey(subject)
	family, name, is := strings.Cut(changed, "."+controlToken+".")

	return model.Key(family, name), ok && is && model.IsToken(name)
}

// GroupOf returns the group in a subject that nodes subscribe to, or "".
func (n Names) GroupOf(subject string) string {
	rest, _ := strings.CutPrefix(subject, n.Prefix+".")
	kind, rest, _ := strings.Cut(rest, ".") // kind is a verb or "changed"
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

// Report returns the subject of a report. Each part may be the wildcard *.
func (n Names) Report(node, kind, outcome string) string {
	return strings.Join([]string{n.Prefix, "report", node, kind, outcome}, ".")
}

// BatchOutcome replaces the outcome in the subject of a batch: its transactions have different outcomes.
const BatchOutcome = "batch"

// Request returns the subject of requests to the nodes of a family. The group model.GroupAll includes
// all nodes.
func (n Names) Request(verb, family string) string {
	if family == model.GroupFamily(model.GroupAll) {
		family = model.GroupAll
	}

	return n.Prefix + "." + verb + "." + family
}

// AskedReply is the last token of the reply subject of a request. A node replaces it by its id. No
// node has the id "=".
const AskedReply = "="

// Reply returns the subject of the answer of a node to a question. Both may be the wildcard *. A node
// may publish only on subjects with its own id, which proves who answers.
func (n Names) Reply(question, node string) string {
	return strings.Join([]string{n.Prefix, "reply", question, node}, ".")
}

const questionLength = 22

// Answer returns the subject on which a requester receives the answer of a node to its question.
// unique and node may be the wildcard *. A requester may subscribe only to its own subjects.
func (n Names) Answer(requester, unique, node string) string {
	return strings.Join([]string{n.Prefix, "answer", requester, unique, node}, ".")
}

// AnswerMapping returns the mapping of node replies to answers in the account of requesters. It splits
// the question id, so that the requester becomes a token that permissions can name.
func (n Names) AnswerMapping() (from, to string) {
	return n.Reply("*", "*"), fmt.Sprintf("%s.answer.{{splitfromright(1,%d)}}.{{wildcard(2)}}", n.Prefix, questionLength)
}

// RequestsCheck returns a subject that identifies the account of requesters: only there the server answers,
// with the list of streams.
func (n Names) RequestsCheck() string { return n.Prefix + ".requests" }

// VerbCheck returns a subject that tells whether a user may send requests of a verb. No node can have
// that name, so there is no subscriber.
func (n Names) VerbCheck(verb string) string { return n.Request(verb, model.NodeFamily(AskedReply)) }

// isCheck reports whether a subject is a RequestsCheck or a VerbCheck.
func (n Names) isCheck(subject string) bool {
	return subject == n.RequestsCheck() || slices.ContainsFunc(Verbs(), func(verb string) bool { return subject == n.VerbCheck(verb) })
}

// VerbOf returns the verb in the subject of a request.
func (n Names) VerbOf(subject string) string {
	verb, _, _ := strings.Cut(strings.TrimPrefix(subject, n.Prefix+"."), ".")

	return verb
}

// MayAnswer reports whether a node may publish its answer on a reply subject: a subject of muster with the node's
// id, the inbox of a client, or a gateway subject. The sender of a request chooses the reply subject.
// Without this check it could name the subject of a node's state.
func (n Names) MayAnswer(reply string) bool {
	question, ok := strings.CutPrefix(reply, n.Prefix+".reply.")
	if question, is := strings.CutSuffix(question, "."+AskedReply); ok && is {
		return model.IsToken(question)
	}

	return reply == "" || strings.HasPrefix(reply, "_INBOX") || strings.HasPrefix(reply, "_R_.")
}

// AnswerSubject returns the subject of the answer of a node to a request. The reply subjects of other
// NATS clients do not change.
func (n Names) AnswerSubject(reply, node string) string {
	question, ok := strings.CutSuffix(reply, "."+AskedReply)
	if ok && strings.HasPrefix(question, n.Prefix+".reply.") {
		return question + "." + node
	}

	return reply
}

// Command returns the subject of a command for a family. The token may be the wildcard >.
func (n Names) Command(family, token string) string {
	return n.Prefix + ".command." + model.Key(family, token)
}

// CommandQueued returns the subject on which the server republishes the headers of a command.
func (n Names) CommandQueued(family, token string) string {
	return n.Changed("command." + model.Key(family, token))
}

// InboxPrefix returns the inbox prefix of a node. With a shared prefix, nodes could read each other's
// answers.
func InboxPrefix(node string) string { return "_INBOX_" + node }

// nameOf returns the name in an inbox prefix, or "" for the default prefix.
func nameOf(inbox string) string {
	name, _ := strings.CutPrefix(inbox, InboxPrefix(""))
	if !model.IsToken(name) || name == inbox {
		return ""
	}

	return name
}

// KVStream returns the stream of a key-value bucket.
func KVStream(bucket string) string { return "KV_" + bucket }

// KVSubject returns the subject of a key, which may be a wildcard.
func KVSubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// ObjectStream returns the stream of an object store.
func ObjectStream(bucket string) string { return "OBJ_" + bucket }

// Verbs of requests to nodes. A verb is the token after the prefix in the subject.
const (
	VerbEnsure  = "ensure"
	VerbRun     = "run"
	VerbPreview = "preview"
	VerbStatus  = "status"
	VerbFacts   = "facts"
	VerbPing    = "ping"
)

// Verbs returns every verb.
func Verbs() []string {
	return []string{VerbEnsure, VerbRun, VerbPreview, VerbStatus, VerbFacts, VerbPing}
}

// RequesterVerbs returns the verbs that users other than administrators may be permitted to use. The
// account of requesters forwards no other verb.
func RequesterVerbs() []string { return []string{VerbRun, VerbPreview} }

// NodeState returns the subject of a node's state.
func (n Names) NodeState(node string) string { return KVSubject(n.Nodes, node+".state") }

// NodeFacts returns the subject of a node's facts.
func (n Names) NodeFacts(node string) string { return KVSubject(n.Nodes, node+".facts") }

// NodeInventory returns the subject of a node's inventory.
func (n Names) NodeInventory(node string) string { return KVSubject(n.Nodes, node+".inventory") }

const encodedToken = "="

// Token returns an id as a single subject token.
func Token(id string) string {
	if model.IsToken(id) {
		return id
	}

	return encodedToken + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// TokenID is the inverse of Token. ok is false for a token that Token never returns.
func TokenID(token string) (id string, ok bool) {
	encoded, is := strings.CutPrefix(token, encodedToken)
	if !is {
		return token, model.IsToken(token)
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)

	return string(data), err == nil && Token(string(data)) == token
}

// AssignmentKey splits the key of an assignment. ok is false for any other key.
func AssignmentKey(key string) (family, name string, ok bool) {
	family, name, ok = model.SplitKey(key)

	return family, name, ok && model.CheckName(name) == nil
}

// IsInvalidKey reports whether a key is not the key of an assignment. Nodes ignore an invalid key.
func IsInvalidKey(key string) bool {
	_, _, ok := AssignmentKey(key)

	return !ok
}

// ReportSubjects returns the subjects of the reports of a node, which may be the wildcard *: one per
// existing kind and outcome. The stream accepts no others and limits the messages of each, which
// limits the reports of a node.
func (n Names) ReportSubjects(node string) []string {
	transaction := []model.Outcome{
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeNoop, model.OutcomeFailed, model.OutcomeUnmet, model.OutcomeSkipped, model.OutcomeNotRun,
	}
	var all []string
	all = appendReports(all, n, node, model.KindRun,
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeNoop, model.OutcomeFailed, model.OutcomeNotRun, model.OutcomeRefused)
	all = appendReports(all, n, node, model.KindTransaction, append(transaction, BatchOutcome)...)
	all = appendReports(all, n, node, model.KindHealth, model.HealthOK, model.HealthWarning, model.HealthCritical, model.HealthUnknown)
	all = appendReports(all, n, node, model.KindEnsure, transaction...)
	all = appendReports(all, n, node, model.KindNode,
		model.NodeStarted, model.NodeStopped, model.NodeRefused, model.NodeDropped, model.NodeUnassigned, model.NodeDuplicate, model.NodeFlapping)

	return all
}

func appendReports[T ~string](all []string, n Names, node, kind string, outcomes ...T) []string {
	for _, outcome := range outcomes {
		all = append(all, n.Report(node, kind, string(outcome)))
	}

	return all
}
