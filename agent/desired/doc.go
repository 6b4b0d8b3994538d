// Package assignments is the one owner of what is assigned to a node: it reads
// the values of the keys that the watch names, resolves them, selects the
// version of each name that is active, and keeps on disk the last good copy,
// what was rejected and what was applied.
package desired
