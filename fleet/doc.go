// Package fleet is the operator's side of muster: assigning manifests, the status
// of their rollout, requests to many nodes, and readable reports. It declares what
// it needs of NATS as small interfaces.
package fleet
