// Package serve keeps a view of a fleet current from NATS, and serves it over HTTP: the dashboard, the API, metrics and
// webhooks.
package serve
