// Package fleetsim measures large fleets: a nats-server in a separate process, so its memory and CPU count
// alone, and any number of nodes, each with a user and the subscriptions and reads of an agent, without
// reconciling. Simulate plays whole agents, many on one connection.
package fleetsim
