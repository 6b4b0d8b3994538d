// Package previews answers what an assignment would change on a node, which is not assigned
// by that. It makes noop runs beside those of the agent, one at a time, of which nothing
// stays: no report, no counter, no watch, no file.
package previews
