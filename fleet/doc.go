// Package fleet is the operator's side of muster: assigning manifests, and the status
// of their rollout. It declares what it needs of NATS as small interfaces.
package fleet
