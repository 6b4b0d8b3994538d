package fleetcmd

import (
	"fmt"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// missingReports returns a remark about nodes whose older reports may be missing.
func missingReports(shares *view.Shares, b model.ReportBounds) []string {
	var full []string
	for _, share := range shares.Full(b) {
		full = append(full, share.Name)
	}
	if len(full) == 0 {
		return nil
	}

	return []string{fmt.Sprintf("only the newest %d reports of each are retained: %s", b.PerSubject, print.Some(full, "and others"))}
}
