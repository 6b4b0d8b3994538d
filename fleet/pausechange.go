package fleet

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// PauseChange is a pause that was written under a key, or the end of one.
type PauseChange struct {
	Key string
	// Pause is what was written, nil for the end of a pause.
	Pause *model.Pause
}

// IsObeyed reports whether a node does what was written.
func (c PauseChange) IsObeyed(n model.Node) bool {
	switch {
	case c.Pause == nil:
		return n.Paused == nil || n.Paused.From != c.Key
	case n.Paused == nil:
		return false
	case n.Paused.From == c.Key:
		return n.Paused.At.Equal(c.Pause.At)
	}

	// Another pause that ends later holds instead; one that ends sooner tells nothing of this one.
	return n.Paused.Until.IsZero() || !c.Pause.Until.IsZero() && !n.Paused.Until.Before(c.Pause.Until)
}

// Refusal returns why a node says that it rejects what is under the key, empty where it does not
// say so. It may still mean what was there before.
func (c PauseChange) Refusal(n model.Node) string {
	if len(n.RejectedControl) > 0 {
		return n.RejectedControl[c.Key]
	}
	// Older agents have it in the message alone.
	_, why, _ := strings.Cut(n.Message, "rejected: "+c.Key+": ")

	return why
}
