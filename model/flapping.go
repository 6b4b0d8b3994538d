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
