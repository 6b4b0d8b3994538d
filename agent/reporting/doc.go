// Package reporting reports the results of a node. Reporter turns results into reports and omits
// unchanged ones. Outbox stores reports in segments on disk, up to a limit in bytes. Delivery
// publishes them, oldest first and at least once.
//
// The outbox stores summaries of stable runs in separate segments, and drops these first when it is
// full. It reports the dropped reports.
package reporting
