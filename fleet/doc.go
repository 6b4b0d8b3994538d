// Package fleet is the operator's side of muster: assigning manifests, the status
// of their rollout, and requests to many nodes. It declares what it needs of NATS
// as small interfaces.
package fleet
