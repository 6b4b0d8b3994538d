// Package web serves a fleet over HTTP: a dashboard for people, live, and the same queries for
// programs as JSON. It knows the read model (fleet/view) and a few sources that are asked when a
// page needs them, and no NATS.
package web
