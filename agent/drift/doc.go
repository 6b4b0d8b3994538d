// Package drift notices when the machine may have drifted from the manifests of a
// node. What it hears only says "look again": it is brought together by resource,
// and never lost.
package drift
