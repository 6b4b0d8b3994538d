package model

import "time"

// Flapping says from when on a resource flaps: it was repaired more than Repairs times
// Within a time. No Repairs means that none ever does.
type Flapping struct {
	Repairs int      `json:"repairs" jsonschema:"minimum=1" jsonschema_description:"Repairs of a resource from which on it does not flap yet"`
	Within  Duration `json:"within" jsonschema_description:"The time that counts them"`
}

// DefaultFlapping is what holds where a manifest says nothing.
var DefaultFlapping = Flapping{Repairs: 5, Within: Duration(time.Minute)}

// MaxFlapping is how many resources that flap the state of a node has: agents write no more, and nobody reads
// more.
const MaxFlapping = 20

// FlappingState is a resource of a node that flaps.
type FlappingState struct {
	Manifest string    `json:"manifest" jsonschema_description:"Key in the bucket"`
	Resource Ref       `json:"resource"`
	Since    time.Time `json:"since"`
	// Writer is a hint: who was seen to write it, in the words that the machine has for it.
	Writer string `json:"writer,omitempty" jsonschema_description:"Who was seen to write it: a hint, since users choose the names of their processes"`
	// Unit is that of a service, which may have been stopped, or have ended by itself.
	Unit string `json:"unit,omitempty" jsonschema_description:"The unit of a service, which somebody stops or which ends by itself: its journal tells"`
}

// By describes who writes it, in a few words.
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
