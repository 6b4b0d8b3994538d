package scaffold

import "github.com/musterfleet/muster/model"

// State is the observed state of a scaffold.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"Result of rendering the templates"`

	// Due are the changes of each file to write.
	Due [][]model.Change `json:"-"`
	// Attributes maps an effect on extended attributes, such as "preserved the capabilities of", to the
	// paths of the files.
	Attributes map[string][]string `json:"-"`
	// Obstacle is why muster cannot render into the target.
	Obstacle error `json:"-"`
}

// Metadata describes a target and its files, by absolute path in order. It has no files for a missing
// target.
type Metadata struct {
	Name         string   `json:"name" jsonschema_description:"The target"`
	Provider     string   `json:"provider"`
	TargetExists bool     `json:"target_exists" jsonschema_description:"Whether the target is a directory"`
	Changed      []string `json:"changed,omitempty" jsonschema_description:"Files that are missing or differ; with absent, those that exist"`
	Purged       []string `json:"purged,omitempty" jsonschema_description:"Files that no template creates"`
	Stable       []string `json:"stable,omitempty" jsonschema_description:"Files that are up to date"`
	Engine       string   `json:"engine" jsonschema_description:"Language of the templates"`
}
