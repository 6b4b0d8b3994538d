// Package agent is a node: it wakes when its assignments change or an interval
// is over, brings the wakes together, reconciles one manifest at a time and
// reports. What it was told and what it has to say are on disk, so it needs no
// connection to hold its state, and loses nothing.
package agent
