// Package actions has what operators do to nodes over HTTP: it finds whom an order is for, bounds how
// much goes on at the same time, and keeps what came of the last orders. It knows no NATS.
package actions
