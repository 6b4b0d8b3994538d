// Package telemetry holds the parts of metrics and logs that the agent, the fleet and the
// NATS store share: Prometheus metrics read from a state, bounded label values, and a
// rate-limited log.
package telemetry
