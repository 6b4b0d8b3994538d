// Package reporting reports the results of a node. Reporter turns results into reports and leaves
// out unchanged ones. Outbox stores reports in segments on disk, with a bound in bytes. Delivery
// publishes them, oldest first and at least once.
//
// The outbox stores summaries of stable runs in segments of their own, and removes these first when
// it is full. It reports what it removed.
package reporting
