// Package health keeps the results of the health checks of the manifests of a
// node, makes them between runs, and decides when a repairing run is due.
package runner
