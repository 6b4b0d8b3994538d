package model

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Assignment is the document around a manifest in the bucket
// (io.muster.v1.assignment). One of Manifest and Bundle is set.
type Assignment struct {
	Protocol string         `json:"protocol"`
	Name     string         `json:"name,omitempty"`
	Manifest string         `json:"manifest,omitempty" jsonschema_description:"The manifest's text"`
	Bundle   string         `json:"bundle,omitempty" jsonschema_description:"sha256-… of a bundle in MUSTER_BUNDLES"`
	Digest   string         `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest's text or the bundle's bytes, checked before use"`
	Data     map[string]any `json:"data,omitempty" jsonschema_description:"External data; overrides the manifest's own"`
	Noop     bool           `json:"noop,omitempty"`
	Drift    Drift          `json:"drift,omitempty" jsonschema:"enum=repair,enum=report,enum=ignore"`
	Interval Duration       `json:"interval,omitempty" jsonschema_description:"Time between two scheduled runs"`
	When     string         `json:"when,omitempty" jsonschema_description:"An expression evaluated on the node; false means not assigned"`
	Priority int            `json:"priority,omitempty" jsonschema_description:"Lower runs first within its family"`
	Expires  time.Time      `json:"expires,omitzero" jsonschema_description:"Time after which it counts as unassigned"`
	Issued   time.Time      `json:"issued,omitzero"`
}

// BundleManifest is the name of the manifest at the root of a bundle.
const BundleManifest = "manifest.yaml"

// MaxBundle is how many bytes a packed bundle has at most.
const MaxBundle = 1 << 30

// ContentDigest returns the digest of what runs: of the bundle, else of the
// manifest's text.
func (a *Assignment) ContentDigest() string {
	if a.Bundle != "" {
		return a.Bundle
	}

	return DigestOf([]byte(a.Manifest))
}

// Validate returns every problem of the document under a key with this name; each
// names its property.
func (a *Assignment) Validate(name string) Problems {
	var out Problems
	if a.Name != "" && a.Name != name {
		out.Property("name", "", "the name is %q, but the key names %q", a.Name, name)
	}
	if !slices.Contains([]Drift{"", DriftRepair, DriftReport, DriftIgnore}, a.Drift) {
		out.Property("drift", "one of repair, report, ignore", "`drift` cannot be %q", a.Drift)
	}
	if a.Interval != 0 && a.Interval.Std() < time.Second {
		out.Property("interval", "", "`interval` must be at least 1s, not %s", a.Interval)
	}
	if (a.Manifest == "") == (a.Bundle == "") {
		out.Property("manifest", "", "an assignment has either a `manifest` or a `bundle`")
		return out
	}
	if a.Bundle != "" && !isDigest(a.Bundle) {
		out.Property("bundle", "write sha256- and 64 hexadecimal digits", "invalid bundle digest %q", a.Bundle)
	}
	if content := a.ContentDigest(); a.Digest != "" && a.Digest != content {
		out.Property("digest", "push it again", "the digest does not match: it is %s, the content has %s", a.Digest, content)
	}

	return out
}

func isDigest(s string) bool {
	digits, ok := strings.CutPrefix(s, DigestPrefix)
	_, err := hex.DecodeString(digits)

	return ok && err == nil && len(digits) == 2*sha256.Size
}
