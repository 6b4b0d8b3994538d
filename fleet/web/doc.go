// Package web serves the dashboard of a fleet, with live updates. It gets data from the read model (fleet/view), and
// from sources that it reads when a page needs them. It does not use NATS.
package web
