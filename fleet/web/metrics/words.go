package metrics

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// word returns a known word, or "other" for an unknown one.
func word(text string, known []string) string {
	if slices.Contains(known, text) {
		return text
	}

	return telemetry.OtherLabel
}

func kinds() []string {
	return []string{model.KindRun, model.KindTransaction, model.KindHealth, model.KindEnsure, model.KindNode}
}

// outcomes are the outcomes of reports of all kinds.
func outcomes() []string {
	return []string{
		string(model.OutcomeStable), string(model.OutcomeChanged), string(model.OutcomeRefreshed), string(model.OutcomeFailed), string(model.OutcomeSkipped),
		string(model.OutcomeNoop), string(model.OutcomeUnmet), string(model.OutcomeRefused), string(model.OutcomeNotRun),
		string(model.HealthOK), string(model.HealthWarning), string(model.HealthCritical), string(model.HealthUnknown),
		string(model.NodeStarted), string(model.NodeStopped), string(model.NodeDropped), string(model.NodeUnassigned), string(model.NodeFlapping), string(model.NodeDuplicate),
	}
}
