package provision

import "fmt"

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
