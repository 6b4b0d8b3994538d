// Package status holds the state of a node and shows it: in the bucket of node states (Heartbeat),
// on the local socket, and as metrics. It also measures the clock of the node, publishes the package
// inventory, and decides when an agent with a goal ends.
package status
