// Package provision is how every bucket and stream of a fleet is configured:
// what creates, changes and checks them.
package provision
