// Package permissions is what a node may do with NATS: its own keys, subjects and
// inbox, nothing of other nodes.
package permissions
