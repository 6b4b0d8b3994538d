package runner

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Wake is the reason for the next run of a manifest, and its time.
type Wake struct {
	Cause model.Cause
	At    time.Time
	// Part lists the resources to run; nil is the whole manifest.
	Part []model.Ref
	// Retry reports whether the run repeats a failed one.
	Retry bool
}

// over joins two wakes of a manifest: the most important cause, the earliest time and all resources of
// both. The result is a retry if both are.
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

// weight orders causes by importance. A requested change precedes other events.
func weight(c model.Cause) int {
	return slices.Index([]model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseRequest, model.CauseCommand, model.CauseManifest}, c)
}
