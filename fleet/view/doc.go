// Package view is the read model of a fleet: what its nodes, assignments and reports say, kept
// in bounded memory, for many readers at the same time. It knows no NATS and no page: whoever
// follows the buckets and the stream tells it, and may tell it the same again, late or out of
// order. A new one to which everything is added again is the same.
package view
