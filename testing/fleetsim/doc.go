// Package fleetsim measures a fleet that is larger than its tests: a nats-server in
// a process of its own, so that its memory and CPU are not those of the nodes, and
// as many nodes as wanted, each with a user of its own and the subscriptions and
// reads of an agent. Only the reconciling is left out. Simulate plays whole agents, of
// which many share a connection.
package fleetsim
