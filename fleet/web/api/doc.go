// Package api serves the fleet to programs: JSON over HTTP below /api/v1, described by OpenAPI
// 3.1, and a feed of server-sent events.
// Operators act on nodes through it.
package api
