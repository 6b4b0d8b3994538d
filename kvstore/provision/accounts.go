package provision

import (
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// answerThreshold is how long the server waits for a further answer over the export.
const answerThreshold = 5 * time.Second

// Accounts are those of a fleet. The server does not check the reply subject of a
// request against the permissions of who asks: whatever answer it has is published
// there. So nodes are users of an account without streams, which is joined with
// that of the fleet in such a way that an answer cannot get out of it again.
type Accounts struct {
	// Fleet has the streams, and administrators as users.
	Fleet Account
	// Nodes has a user for each node, Operators one for each operator who is no
	// administrator, and Requesters one for each of those who also ask nodes at once.
	Nodes, Operators, Requesters Account
}

// Account is one of them.
type Account struct {
	Name      string
	JetStream bool
	// DenyByDefault has a user without permissions do nothing, where that of another
	// account may do everything.
	DenyByDefault bool
	Limits        AccountLimits
	Exports       []Export
	Imports       []Import
	// Mappings have what is published in the account, an answer included, come out on another
	// subject. Those of nodes are what only the fleet may send a message on: it vanishes.
	Mappings []Mapping
}

// Export is what an account offers to others.
type Export struct {
	Service bool
	Subject string
	// To are the accounts that may import it, and no others.
	To []string
}

// Import is what an account takes from the fleet's.
type Import struct {
	Service bool
	// From is the account it is taken from, if it is another.
	From    string
	Subject string
	// Local is the subject in this account, if it is another.
	Local string
	// Share tells the fleet who asks.
	Share bool
}

// Mapping is one mapping of subjects.
type Mapping struct{ From, To string }

// AccountsOf returns the accounts of the fleet with a prefix, with the limits of For
// and DefaultNodes. The error wraps model.ErrInvalidName.
//
// There is one export of services, for everything: an answer that came over an
// export cannot enter another import of the same one, but it can enter an import of
// another. Tests hold the server to that.
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

// joinRequesters has requests of the verbs of requesters reach nodes, and answers come back. A
// message that came over an import of services enters no import of streams, so requests of another
// account than the fleet's get to nodes from there only. Answers take the way of all others, over
// the one export of services, and the fleet passes them on: so the server's own answers to a node
// do not enter that way.
//
// It is an account of its own, because in a cluster what the server answers does enter an import of streams: in
// that of operators, a viewer could have it sent to nodes.
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

// All returns the accounts, that of the fleet first.
func (a Accounts) All() []Account { return []Account{a.Fleet, a.Nodes, a.Operators, a.Requesters} }

// accountName is the name of an account; that of a fleet with a prefix of its own
// begins with it.
func accountName(n kvstore.Names, name string) string {
	if n.Prefix() == kvstore.DefaultPrefix {
		return name
	}

	return strings.ToUpper(n.Prefix()) + "_" + name
}

// joined returns an account that may publish on some subjects of the fleet and
// hears others.
func joinedAccount(name string, services []Import, heard []string) Account {
	a := Account{Name: name, DenyByDefault: true, Imports: services}
	for _, subject := range heard {
		a.Imports = append(a.Imports, Import{Subject: subject})
		a.Mappings = append(a.Mappings, Mapping{From: subject, To: "void." + strings.ToLower(strings.TrimPrefix(subject, "$"))})
	}

	return a
}

// api returns the imports by which a joined account reads.
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

// nodeServices returns what nodes publish: reads, what streams take from them, and
// answers, the last of these for plain clients of NATS.
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

// heardByNodes returns what nodes listen to, as patterns that end in >: the server
// takes no other mapping.
func heardByNodes(n kvstore.Names) []string {
	subjects := []string{n.Changed(">")}
	for _, verb := range kvstore.Verbs() {
		subjects = append(subjects, n.Request(verb, ">"))
	}

	return append(subjects, "$SRV.>")
}
