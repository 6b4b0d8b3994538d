package runner

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Wake is why a manifest runs next, and since when.
type Wake struct {
	Cause model.Cause
	At    time.Time
	// Part are the resources that the run is about; nil is the whole manifest.
	Part []model.Ref
	// Retry is that this is tried again, since it failed.
	Retry bool
}

// over joins two wakes of the same manifest: the weightiest cause, the first time,
// and all that either is about. It is a retry where both are.
func (w Wake) over(other Wake) Wake {
	if other.At.IsZero() {
		return w
	}
	if w.Part != nil && other.Part != nil {
		w.Part = slices.Concat(other.Part, w.Part)
	} else {
		w.Part = nil
	}
	if weight(other.Cause) > weight(w.Cause) {
		w.Cause = other.Cause
	}
	w.Retry = w.Retry && other.Retry
	if other.At.Before(w.At) {
		w.At = other.At
	}

	return w
}

// weight orders causes: a change that somebody asked for is one whatever else
// woke the node meanwhile.
func weight(c model.Cause) int {
	return slices.Index([]model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseRequest, model.CauseCommand, model.CauseManifest}, c)
}
