// Package agent is a node: it wakes when its assignments change or an interval
// is over, runs its manifests and reports. Its assignments and reports
// are on disk, so it needs no connection to hold its state, and loses nothing.
package agent
