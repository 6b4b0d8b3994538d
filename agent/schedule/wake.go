package schedule

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Wake is why a manifest runs next, and since when.
type Wake struct {
	Cause model.Cause
	At    time.Time
}

// over joins two wakes of the same manifest: the weightiest cause, the first time.
func (w Wake) over(other Wake) Wake {
	if weight(other.Cause) > weight(w.Cause) {
		w.Cause = other.Cause
	}
	if !other.At.IsZero() && other.At.Before(w.At) {
		w.At = other.At
	}

	return w
}

// weight orders causes: a change that somebody asked for is one whatever else
// woke the node meanwhile.
func weight(c model.Cause) int {
	return slices.Index([]model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseCommand, model.CauseManifest}, c)
}
