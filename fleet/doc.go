// Package fleet defines the targets of assignments and requests, selects nodes, and computes the status of each
// assignment on each node.
package fleet
