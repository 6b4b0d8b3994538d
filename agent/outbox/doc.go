// Package outbox keeps the reports of a node on disk until the stream has them:
// in append-only segments, bounded in bytes, handed over oldest first and at
// least once. What had to be dropped is itself reported.
package outbox
