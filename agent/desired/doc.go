// Package desired contains the desired state of a node. Set owns the assignments: it reads the values of the
// keys that the watch names, resolves them, selects the active version of each name, and stores the last good
// copy of each on disk. Bundles downloads and unpacks bundles. Gate verifies signatures. Control contains the
// pauses, labels and groups from operators.
package desired
