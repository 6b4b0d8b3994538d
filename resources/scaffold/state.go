package scaffold

import (
	"github.com/musterfleet/muster/model"
)

// State is what the machine says of a scaffold.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"What rendering the templates would do"`

	// Due are the files that must be written, with what is to be said of each.
	Due []Difference `json:"-"`
	// Obstacle is why the scaffold cannot be rendered into its target.
	Obstacle error `json:"-"`
}

// Metadata describes a target and the files in it, by their absolute paths in
// order. Of a target that does not exist nothing else is told.
type Metadata struct {
	Name         string   `json:"name" jsonschema_description:"The target"`
	Provider     string   `json:"provider"`
	TargetExists bool     `json:"target_exists" jsonschema_description:"Whether the target is there and a directory"`
	Changed      []string `json:"changed,omitempty" jsonschema_description:"Files that are missing or differ; with absent, those of them that are there"`
	Purged       []string `json:"purged,omitempty" jsonschema_description:"Files that no template gives"`
	Stable       []string `json:"stable,omitempty" jsonschema_description:"Files that are as they must be"`
	Engine       string   `json:"engine" jsonschema_description:"Language of the templates"`
}

// Difference is a file that must be written.
type Difference struct {
	Path string
	// Changes are what differs, each with the words of before and after.
	Changes []model.Change
}
