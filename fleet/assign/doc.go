// Package assign validates, bundles, signs and stores assignments, waits for nodes to apply them, and shows the content,
// differences and history of their revisions.
package assign
