package fleetcmd

import (
	"fmt"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// missingReports returns a line about the nodes of which older reports may be missing, none if there is no such node.
func missingReports(shares *view.Shares, b model.ReportBounds) []string {
	var full []string
	for _, share := range shares.Full(b) {
		full = append(full, share.Name)
	}
	if len(full) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("the newest %d of each are stored, older ones are not: %s", b.PerSubject, print.Some(full, "and others"))}
}
