// Package hierarchy resolves the data of a document: base data, overrides in the order of
// its hierarchy, external data over all, and the checks in comments.
package hierarchy
