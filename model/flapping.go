package model

import "time"

// Flapping defines when a resource flaps: it was repaired more than Repairs times within the time Within. If
// Repairs is 0, no resource flaps.
type Flapping struct {
	Repairs int      `json:"repairs" jsonschema:"minimum=1" jsonschema_description:"Number of repairs that is still tolerated"`
	Within  Duration `json:"within" jsonschema_description:"Time in which repairs are counted"`
}

// DefaultFlapping applies if a manifest sets nothing else.
var DefaultFlapping = Flapping{Repairs: 5, Within: Duration(time.Minute)}

// MaxFlapping limits the number of flapping resources in the state of a node, for writers and readers.
const MaxFlapping = 20

// FlappingState is a resource of a node that flaps.
type FlappingState struct {
	Manifest string    `json:"manifest" jsonschema_description:"Key in the bucket"`
	Resource Ref       `json:"resource"`
	Since    time.Time `json:"since"`
	// Writer is a hint: the program that was seen writing, as the machine names it.
	Writer string `json:"writer,omitempty" jsonschema_description:"Program that was seen writing; a hint, because users choose the names of their processes"`
	// Unit is the unit of a service that stopped.
	Unit string `json:"unit,omitempty" jsonschema_description:"Unit of a service that stopped; see its journal"`
}

// By describes in a few words what changes the resource.
func (f FlappingState) By() string {
	switch {
	case f.Writer != "":
		return "probably written by " + f.Writer
	case f.Unit != "":
		return "stopped by a program, or exits: see journalctl --unit=" + f.Unit
	default:
		return "written by an unknown program"
	}
}
