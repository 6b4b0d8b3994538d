package model

import "time"

// Assignment is the document around a manifest in the bucket
// (io.muster.v1.assignment). One of Manifest and Bundle is set.
type Assignment struct {
	Protocol string         `json:"protocol" yaml:"protocol"`
	Name     string         `json:"name,omitempty" yaml:"name,omitempty"`
	Manifest string         `json:"manifest,omitempty" yaml:"manifest,omitempty" jsonschema_description:"The manifest's text"`
	Bundle   string         `json:"bundle,omitempty" yaml:"bundle,omitempty" jsonschema_description:"sha256-… of a bundle in MUSTER_BUNDLES"`
	Digest   string         `json:"digest,omitempty" yaml:"digest,omitempty" jsonschema_description:"sha256-… of the manifest's text or the bundle's bytes, checked before use"`
	Data     map[string]any `json:"data,omitempty" yaml:"data,omitempty" jsonschema_description:"External data, over the manifest's own"`
	Noop     bool           `json:"noop,omitempty" yaml:"noop,omitempty"`
	Drift    Drift          `json:"drift,omitempty" yaml:"drift,omitempty" jsonschema:"enum=repair,enum=report,enum=ignore"`
	Interval Duration       `json:"interval,omitempty" yaml:"interval,omitempty" jsonschema_description:"How often it is looked at"`
	When     string         `json:"when,omitempty" yaml:"when,omitempty" jsonschema_description:"An expression evaluated on the node; false means not assigned"`
	Priority int            `json:"priority,omitempty" yaml:"priority,omitempty" jsonschema_description:"Lower runs first within its family"`
	Expires  time.Time      `json:"expires,omitzero" yaml:"expires,omitempty" jsonschema_description:"Unassigned after this"`
	Issued   time.Time      `json:"issued,omitzero" yaml:"issued,omitempty"`
}

// Index lists the names of one family of assignments, under its _index key
// (io.muster.v1.index).
type Index struct {
	Protocol string                `json:"protocol"`
	Names    map[string]IndexEntry `json:"names"`
}

// IndexEntry is what the index knows of one name.
type IndexEntry struct {
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest,omitempty"`
}
