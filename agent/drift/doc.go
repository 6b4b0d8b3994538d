// Package drift notices when the machine may have drifted from the manifests of a node. An event only
// means "look again"; events of one resource are merged. Repairs decides what is repaired and
// remembers which resources failed.
package drift
