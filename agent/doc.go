// Package agent runs a node. It wakes when assignments change or an interval ends, runs manifests and
// reports. Assignments and reports are on disk, so it needs no connection to enforce the desired state, and
// loses no report.
package agent
