package provision

import "fmt"

// DefaultNodes is how many nodes the limits are made for by default.
const DefaultNodes = 10_000

// The limits of users and of the server.
const (
	// operatorConnections are those of all operators who are no administrators.
	operatorConnections = 500
	// requesterConnections are those of all that send requests, which are programs.
	requesterConnections = 50
	// fleetConnections is the room that is left for administrators.
	fleetConnections = 500
	// maxSubscriptions are those of one connection: a node has seven for each group, and
	// some twenty.
	maxSubscriptions = 1000
	// maxPending is what the server keeps for one connection that does not read. An
	// administrator reads 256 reports of 64 KiB at once, others pages of 4 MiB.
	maxPending = "32MB"
)

// Limits bound what the users of an account take from those of the others.
type AccountLimits struct {
	// Connections are those of all its users together, Subscriptions those of each
	// connection; zero is no bound.
	Connections, Subscriptions int
}

func (l AccountLimits) config() string {
	return fmt.Sprintf("limits: {max_connections: %d, max_subscriptions: %d}", l.Connections, l.Subscriptions)
}

// For returns the accounts with limits for a number of nodes: each may be connected
// twice, once by a connection that the server still takes for alive.
func (a Accounts) For(nodes int) Accounts {
	a.Nodes.Limits = AccountLimits{Connections: 2*nodes + 10, Subscriptions: maxSubscriptions}
	a.Operators.Limits = AccountLimits{Connections: operatorConnections, Subscriptions: maxSubscriptions}
	a.Requesters.Limits = AccountLimits{Connections: requesterConnections, Subscriptions: maxSubscriptions}

	return a
}

// ServerLimits returns settings of nats-server for all fleets together, beside the
// accounts: administrators can connect when all others have what they may.
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
