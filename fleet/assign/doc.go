// Package assign signs assignments, and shows the content, differences and history of their revisions.
package assign
