package kvstore

import "time"

// The keys of a node in the bucket of nodes.
const (
	StateKey = "state"
	FactsKey = "facts"
)

// What a node can be asked, the token of the subject after the prefix.
const (
	VerbEnsure = "ensure"
	VerbStatus = "status"
	VerbFacts  = "facts"
	VerbPing   = "ping"
)

// MaxCommandTTL is how long a command can wait for a node at most: for so long a
// node remembers which it has executed.
const MaxCommandTTL = 24 * time.Hour

// MaxRegistrationTTL is the longest time for which a registration holds.
const MaxRegistrationTTL = 24 * time.Hour

// directGet is the request for the newest message of a subject.
func DirectGet(stream, subject string) string { return "$JS.API.DIRECT.GET." + stream + "." + subject }
