package provision

import (
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// answerThreshold is how long the server waits for a further answer over the export.
const answerThreshold = 5 * time.Second

// Accounts are the accounts of a fleet. The server does not check the reply subject of a request
// against the permissions of its sender: it publishes its answer on any subject. Nodes are therefore
// users of an account without streams. That account imports from the fleet's account in a way that
// keeps answers inside it.
type Accounts struct {
	// Fleet has the streams. Its users are administrators.
	Fleet Account
	// Nodes has a user per node, Operators a user per operator without administrator rights.
	// Requesters has a user per operator who also sends live requests.
	Nodes, Operators, Requesters Account
}

// Account is one account.
type Account struct {
	Name      string
	JetStream bool
	// DenyByDefault denies everything to a user without permissions. Otherwise such a user may do
	// everything.
	DenyByDefault bool
	Limits        AccountLimits
	Exports       []Export
	Imports       []Import
	// Mappings publish messages of the account, including answers, on another subject. The account of
	// nodes maps subjects on which only the fleet may send to a subject without subscribers.
	Mappings []Mapping
}

// Export is a service or stream that an account offers to other accounts.
type Export struct {
	Service bool
	Subject string
	// To lists the accounts that may import it.
	To []string
}

// Import is a service or stream that an account imports.
type Import struct {
	Service bool
	// From is the exporting account, or "" for the fleet's account.
	From    string
	Subject string
	// Local is the subject in this account, or "" for the same subject.
	Local string
	// Share sends the identity of the requester to the fleet.
	Share bool
}

// Mapping maps one subject to another.
type Mapping struct{ From, To string }

// AccountsOf returns the accounts of the fleet with a prefix, with limits for DefaultNodes nodes. The
// error wraps model.ErrInvalidName.
//
// A single export covers all services. An answer that crossed an export cannot enter another import of
// the same export, but it can enter an import of another one. Tests verify this behavior of the
// server.
func AccountsOf(prefix string) (Accounts, error) {
	n, err := kvstore.NewNames(prefix)
	if err != nil {
		return Accounts{}, err
	}
	a := Accounts{Fleet: Account{Name: accountName(n, "FLEET"), JetStream: true}}
	a.Nodes = joinedAccount(accountName(n, "NODES"), nodeServices(n), heardByNodes(n))
	a.Operators = joinedAccount(accountName(n, "OPERATORS"), operatorServices(n), nil)
	a.Requesters = joinedAccount(accountName(n, "REQUESTERS"), requesterServices(n), nil)
	to := []string{a.Nodes.Name, a.Operators.Name, a.Requesters.Name}
	a.Fleet.Exports = []Export{
		{Service: true, Subject: ">", To: to},
		{Subject: n.Prefix() + ".>", To: to[:1]},
		{Subject: "$SRV.>", To: to[:1]},
	}
	a.joinRequesters(n)

	return a.For(DefaultNodes), nil
}

// joinRequesters lets requests of requesters reach nodes, and answers return. A message that crossed a
// service import cannot enter a stream import, so the fleet's account cannot forward the requests:
// nodes receive them directly from this account. Answers use the single service export and the fleet
// forwards them, so the server's own answers to a node cannot use that path.
//
// Requesters need a separate account: in a cluster, answers of the server can enter a stream import.
// From the account of operators, a viewer could make the server send such answers to nodes.
func (a *Accounts) joinRequesters(n kvstore.Names) {
	for _, verb := range kvstore.RequesterVerbs() {
		a.Requesters.Exports = append(a.Requesters.Exports, Export{Subject: n.Request(verb, ">"), To: []string{a.Nodes.Name}})
		a.Nodes.Imports = append(a.Nodes.Imports, Import{From: a.Requesters.Name, Subject: n.Request(verb, ">")})
	}
	from, to := n.AnswerMapping()
	a.Requesters.Exports = append(a.Requesters.Exports, Export{Service: true, Subject: from, To: []string{a.Fleet.Name}})
	a.Requesters.Mappings = append(a.Requesters.Mappings, Mapping{From: from, To: to})
	a.Fleet.Imports = []Import{{Service: true, From: a.Requesters.Name, Subject: from}}
}

// All returns the accounts, the fleet's first.
func (a Accounts) All() []Account { return []Account{a.Fleet, a.Nodes, a.Operators, a.Requesters} }

// accountName returns the name of an account. It starts with the prefix of the fleet unless that is
// the default.
func accountName(n kvstore.Names, name string) string {
	if n.Prefix() == kvstore.DefaultPrefix {
		return name
	}

	return strings.ToUpper(n.Prefix()) + "_" + name
}

// joinedAccount returns an account that may publish on the given services of the fleet and receives the given
// subjects.
func joinedAccount(name string, services []Import, heard []string) Account {
	a := Account{Name: name, DenyByDefault: true, Imports: services}
	for _, subject := range heard {
		a.Imports = append(a.Imports, Import{Subject: subject})
		a.Mappings = append(a.Mappings, Mapping{From: subject, To: "void." + strings.ToLower(strings.TrimPrefix(subject, "$"))})
	}

	return a
}

// readImports returns the imports for reads.
func readImports(n kvstore.Names) []Import {
	all := []Import{
		{Service: true, Subject: kvstore.OwnAPI.StreamList(), Local: kvstore.JoinedAPI.StreamList()},
		{Service: true, Subject: kvstore.OwnAPI.Subject("DIRECT.GET.>"), Local: kvstore.JoinedAPI.Subject("DIRECT.GET.>")},
	}
	for _, s := range n.Streams() {
		if s.Lists {
			all = append(all, Import{Service: true, Subject: kvstore.OwnAPI.StreamInfo(s.Config.Name), Local: kvstore.JoinedAPI.StreamInfo(s.Config.Name)})
		}
	}

	return all
}

// nodeServices returns the imports for everything that nodes publish: reads, messages for streams, and
// answers. The last import is for answers to plain NATS clients.
func nodeServices(n kvstore.Names) []Import {
	all := readImports(n)
	for _, s := range n.Streams() {
		for _, subject := range s.Writes {
			all = append(all, Import{Service: true, Subject: strings.ReplaceAll(subject, kvstore.AnyNode, "*")})
		}
	}

	return append(all,
		Import{Service: true, Subject: n.Reply("*", "*"), Share: true},
		Import{Service: true, Subject: "_INBOX.>"},
	)
}

// heardByNodes returns the subjects that nodes subscribe to, as patterns that end in >, the only form
// that the server maps.
func heardByNodes(n kvstore.Names) []string {
	subjects := []string{n.Changed(">")}
	for _, verb := range kvstore.Verbs() {
		subjects = append(subjects, n.Request(verb, ">"))
	}

	return append(subjects, "$SRV.>")
}
