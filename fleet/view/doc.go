// Package view is the read model of a fleet: nodes, assignments and reports in limited memory, for many
// concurrent readers. It is independent of NATS and of pages: a feed adds the data, possibly repeated, late
// or out of order. Adding all data to a new view gives the same view.
package view
