// Package actions has what operators do to nodes over HTTP: it finds whom an action is for, bounds how
// much goes on at the same time, and keeps what came of the last ones. It knows no NATS.
package actions
