// Package simulate plays the agents of many nodes in one process, for tests, demos and
// measurements: each follows what is assigned to it and what operators write about it, stores its
// state and its facts, answers requests, and reports runs and drift. What happens to its resources is scripted; no
// machine is looked at, and none is changed.
//
// It is a room of the agent, and not of the fleet or of testing, because it is an agent in all
// that others see: its state, heartbeat, reports and their delivery are those of the rooms
// beside it, so that nobody who reads them can tell it from an agent, also after these
// rooms have changed. Only the outbox is in memory, since thousands on one disk would wait for
// their syncs. Like the agent it declares what it needs of NATS, and cmd joins the two;
// there the command, the demo and the tests use it, and product code imports nothing of
// testing.
package simulate
