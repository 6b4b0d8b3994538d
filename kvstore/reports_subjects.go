package kvstore

import "github.com/musterfleet/muster/model"

// ReportSubjects returns the subjects of the reports of a node, which may be the wildcard *: one per
// existing kind and outcome. The stream accepts no others and limits the messages of each, which
// limits the reports of a node.
func (n Names) ReportSubjects(node string) []string {
	transaction := []model.Outcome{
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeNoop, model.OutcomeFailed, model.OutcomeUnmet, model.OutcomeSkipped, model.OutcomeNotRun,
	}
	var all []string
	all = appendReports(all, n, node, model.KindRun,
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeNoop, model.OutcomeFailed, model.OutcomeNotRun, model.OutcomeRefused)
	all = appendReports(all, n, node, model.KindTransaction, append(transaction, BatchOutcome)...)
	all = appendReports(all, n, node, model.KindHealth, model.HealthOK, model.HealthWarning, model.HealthCritical, model.HealthUnknown)
	all = appendReports(all, n, node, model.KindEnsure, transaction...)
	all = appendReports(all, n, node, model.KindNode,
		model.NodeStarted, model.NodeStopped, model.NodeRefused, model.NodeDropped, model.NodeUnassigned, model.NodeDuplicate, model.NodeFlapping)

	return all
}

// appendReports appends the subjects of a kind of report.
func appendReports[T ~string](all []string, n Names, node, kind string, outcomes ...T) []string {
	for _, outcome := range outcomes {
		all = append(all, n.Report(node, kind, string(outcome)))
	}

	return all
}
