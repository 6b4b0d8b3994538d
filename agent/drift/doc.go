// Package drift detects resources that may have drifted from the manifests of a node. An event only
// requests another look. Events of one resource are merged.
package drift
