// Package kill holds the tests that kill processes between any two steps of what
// they keep on disk.
package kill
