// Package outbox keeps the reports of a node on disk until the stream has them:
// in append-only segments, bounded in bytes, published oldest first and at least
// once. What is dropped is itself reported.
//
// The summaries of stable runs have segments of their own, so that dropping them
// first is removing files. Reports are dropped once the notice about them is in
// place, one rename, whether their segment is still there or not.
package reporting
