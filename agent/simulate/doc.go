// Package simulate simulates the agents of many nodes in one process, for tests, demos and
// measurements. Each node follows its assignments and control documents, stores its state and facts,
// answers requests, and reports runs and drift. A script decides what happens to its resources; no
// machine is read or changed.
//
// State, heartbeat, reports, delivery and control documents use the code of the agent, so readers
// cannot distinguish a simulated node. The outbox is in memory, because thousands of outboxes on one
// disk would wait for their syncs.
package simulate
