package provision

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

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
		{Subject: n.Prefix + ".>", To: to[:1]},
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
	if n.Prefix == kvstore.DefaultPrefix {
		return name
	}

	return strings.ToUpper(n.Prefix) + "_" + name
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

// Signer has the account keys of a NATS operator that issues JWTs.
type Signer struct {
	// Keys are the public keys of the accounts by name.
	Keys map[string]string
	// Activate signs an activation with the key of the exporting account. It permits another account
	// one import.
	Activate func(account string, c *jwt.ActivationClaims) (string, error)
}

// Claims returns the claims of the accounts by name. Each export requires an activation. Otherwise
// every account of the NATS operator could import it.
func (a Accounts) Claims(s Signer) (map[string]*jwt.AccountClaims, error) {
	all := map[string]*jwt.AccountClaims{}
	for _, account := range a.All() {
		claims := jwt.NewAccountClaims(s.Keys[account.Name])
		claims.Name = account.Name
		if account.JetStream {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		}
		if account.DenyByDefault {
			nothing := jwt.Permission{Deny: jwt.StringList{">"}}
			claims.DefaultPermissions = jwt.Permissions{Pub: nothing, Sub: nothing}
		}
		if l := account.Limits; l != (AccountLimits{}) {
			claims.Limits.Conn, claims.Limits.Subs = int64(l.Connections), int64(l.Subscriptions)
			claims.Limits.LeafNodeConn = 0
		}
		for _, e := range account.Exports {
			claims.Exports.Add(e.claims())
		}
		for _, i := range account.Imports {
			imported, err := i.claims(s, i.from(a.Fleet), s.Keys[account.Name])
			if err != nil {
				return nil, fmt.Errorf("import %s of %s: %w", i.Subject, account.Name, err)
			}
			claims.Imports.Add(imported)
		}
		for _, m := range account.Mappings {
			claims.AddMapping(jwt.Subject(m.From), jwt.WeightedMapping{Subject: jwt.Subject(m.To)})
		}
		all[account.Name] = claims
	}

	return all, nil
}

func (e Export) claims() *jwt.Export {
	out := &jwt.Export{Name: kindOf(e.Service).String() + " " + e.Subject, Subject: jwt.Subject(e.Subject), Type: kindOf(e.Service), TokenReq: true}
	if e.Service {
		out.ResponseType, out.ResponseThreshold = jwt.ResponseTypeStream, answerThreshold
	}

	return out
}

func (i Import) claims(s Signer, from, to string) (*jwt.Import, error) {
	activation := jwt.NewActivationClaims(to)
	activation.ImportSubject, activation.ImportType = jwt.Subject(i.Subject), kindOf(i.Service)
	token, err := s.Activate(from, activation)
	if err != nil {
		return nil, err
	}
	local := i.Local
	if local == "" {
		local = i.Subject
	}

	return &jwt.Import{
		Name: i.Subject, Subject: jwt.Subject(i.Subject), LocalSubject: jwt.RenamingSubject(local),
		Account: s.Keys[from], Token: token, Type: kindOf(i.Service), Share: i.Share,
	}, nil
}

// ClaimsJSON returns the claims by account name as JSON. The owner of the keys fills in the public
// keys and activations.
func (a Accounts) ClaimsJSON() ([]byte, error) {
	keys, names := map[string]string{}, map[string]string{}
	for _, account := range a.All() {
		keys[account.Name] = "<public key of " + account.Name + ">"
		names[keys[account.Name]] = account.Name
	}
	claims, err := a.Claims(Signer{Keys: keys, Activate: func(account string, c *jwt.ActivationClaims) (string, error) {
		return fmt.Sprintf("<activation for %s of %s %s, signed by %s>", names[c.Subject], c.ImportType, c.ImportSubject, account), nil
	}})
	if err != nil {
		return nil, err
	}
	parts := map[string]jwt.Account{}
	for name, claim := range claims {
		parts[name] = claim.Account
	}

	return indentedJSON(parts)
}

// indentedJSON returns a value as indented JSON with readable wildcards.
func indentedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)

	return b.Bytes(), err
}

func kindOf(service bool) jwt.ExportType {
	if service {
		return jwt.Service
	}

	return jwt.Stream
}

// Users maps the name of an account to its users. Each user is the text of one list entry in the
// configuration of nats-server.
type Users map[string][]string

// ServerConfig returns the accounts as a block of the configuration of nats-server.
func (a Accounts) ServerConfig(users Users) string {
	var b strings.Builder
	b.WriteString("# a reload that adds accounts does not connect them with each other: reload nats-server a second time\naccounts: {\n")
	for _, account := range a.All() {
		fmt.Fprintf(&b, "  %s: {\n", account.Name)
		if account.JetStream {
			b.WriteString("    jetstream: enabled\n")
		}
		if account.DenyByDefault {
			b.WriteString("    # a user without permissions, whose include is missing, may do nothing\n")
			b.WriteString("    default_permissions: {publish: {deny: \">\"}, subscribe: {deny: \">\"}}\n")
		}
		if account.Limits != (AccountLimits{}) {
			b.WriteString("    " + account.Limits.config() + "\n")
		}
		writeList(&b, "users", users[account.Name])
		writeList(&b, "exports", textLines(account.Exports, Export.config))
		writeList(&b, "imports", textLines(account.Imports, func(i Import) string { return i.config(i.from(a.Fleet)) }))
		if len(account.Mappings) > 0 {
			b.WriteString("    mappings: {\n")
			for _, m := range account.Mappings {
				fmt.Fprintf(&b, "      %q: %q\n", m.From, m.To)
			}
			b.WriteString("    }\n")
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")

	return b.String()
}

func writeList(b *strings.Builder, name string, entries []string) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s: [\n", name)
	for _, entry := range entries {
		fmt.Fprintf(b, "      %s\n", strings.ReplaceAll(strings.TrimSuffix(entry, "\n"), "\n", "\n      "))
	}
	b.WriteString("    ]\n")
}

func textLines[T any](all []T, line func(T) string) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = line(one)
	}

	return out
}

func (e Export) config() string {
	to := strings.Join(e.To, ", ")
	if !e.Service {
		return fmt.Sprintf("{stream: %q, accounts: [%s]}", e.Subject, to)
	}

	return fmt.Sprintf("{service: %q, accounts: [%s], response_type: stream, threshold: %q}", e.Subject, to, answerThreshold)
}

func (i Import) config(from string) string {
	kind, more := "stream", ""
	if i.Service {
		kind = "service"
	}
	if i.Local != "" {
		more = fmt.Sprintf(", to: %q", i.Local)
	}
	if i.Share {
		more += ", share: true"
	}

	return fmt.Sprintf("{%s: {account: %s, subject: %q}%s}", kind, from, i.Subject, more)
}

func (i Import) from(fleet Account) string { return cmp.Or(i.From, fleet.Name) }

// DefaultNodes is the default number of nodes for the limits.
const DefaultNodes = 10_000

// Limits of users and of the server.
const (
	// operatorConnections limits all operators without administrator rights together.
	operatorConnections = 500
	// requesterConnections limits all programs that send requests together.
	requesterConnections = 50
	// fleetConnections is reserved for administrators.
	fleetConnections = 500
	// maxSubscriptions limits a connection. A node has seven subscriptions per group and about twenty
	// others.
	maxSubscriptions = 1000
	// maxPending limits the data that the server buffers for a slow connection. An administrator reads
	// 256 reports of 64 KiB at once, other users pages of 4 MiB.
	maxPending = "32MB"
)

// Limits protect accounts from each other.
type AccountLimits struct {
	// Connections limits all users of the account together, Subscriptions each connection. Zero means
	// no limit.
	Connections, Subscriptions int
}

func (l AccountLimits) config() string {
	return fmt.Sprintf("limits: {max_connections: %d, max_subscriptions: %d}", l.Connections, l.Subscriptions)
}

// For returns the accounts with limits for a number of nodes. Each node may have two connections,
// because the server may not have noticed the loss of one.
func (a Accounts) For(nodes int) Accounts {
	a.Nodes.Limits = AccountLimits{Connections: 2*nodes + 10, Subscriptions: maxSubscriptions}
	a.Operators.Limits = AccountLimits{Connections: operatorConnections, Subscriptions: maxSubscriptions}
	a.Requesters.Limits = AccountLimits{Connections: requesterConnections, Subscriptions: maxSubscriptions}

	return a
}

// ServerLimits returns settings of nats-server for all fleets together, outside the accounts. They
// leave room for administrators when all other users have reached their limits.
func ServerLimits(fleets ...Accounts) string {
	connections := 0
	for _, a := range fleets {
		connections += fleetConnections
		for _, account := range a.All() {
			connections += account.Limits.Connections
		}
	}

	return fmt.Sprintf("# above the limits of all accounts together, so that administrators can always connect\nmax_connections: %d\n"+
		"# how much the server buffers for a connection that does not read; administrators read up to 16 MB at once. It cannot be changed by a reload: set it before the server starts\n#max_pending: %s\n", connections, maxPending)
}

// ExampleUsers returns example users for each account.
func (a Accounts) ExampleUsers() Users {
	return Users{
		a.Fleet.Name: {"# administrators with all permissions", `{user: admin, password: "change me"}`},
		a.Nodes.Name: {
			"# one for each node: muster fleet permissions web01 --groups web >web01.conf",
			`{user: web01, password: "change me too", include "web01.conf"}`,
		},
		a.Operators.Name: {
			"# muster fleet permissions alice --viewer >alice.conf",
			`# {user: alice, password: "…", include "alice.conf"}`,
			"# muster fleet permissions wall --serve >wall.conf",
			`# {user: wall, password: "…", include "wall.conf"}`,
			"# muster fleet permissions bob --operator --groups web >bob.conf",
			`# {user: bob, password: "…", include "bob.conf"}`,
		},
		a.Requesters.Name: {
			"# muster fleet permissions board --serve --actions --requests run,preview >board.conf",
			`# {user: board, password: "…", include "board.conf"}`,
		},
	}
}
