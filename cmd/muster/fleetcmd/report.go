package fleetcmd

import (
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// ReportLine formats a report as a line of text.
func ReportLine(p print.Printer, r model.Report) string {
	subject, summary := view.DescribeReport(r)
	if by := view.SenderOf(r); by != "" {
		summary = strings.TrimPrefix(summary+", by "+by, ", ")
	}
	if subject != "" && summary != "" {
		subject += ": "
	}
	word := string(r.Outcome)
	if r.Outcome == model.OutcomeRefused {
		word = string(fleet.StatusRejected) // as in muster fleet nodes
	}
	outcome := p.Word(word) + strings.Repeat(" ", max(9-len(word), 0))

	return fmt.Sprintf("%s  %s  %-11s  %s  %s", print.Time(r.Time), r.Node, r.Kind, outcome, print.Text(subject+print.OneLine(summary)))
}
