// Package tasks has what the loops of an agent share: waits between tries,
// signals that wake a goroutine, and panics turned into errors.
package tasks
