package servecmd

import (
	"cmp"
	"context"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
)

// judgeStored shows whether the server stores the states and reports of nodes. Without states the view is blind.
func (f *feed) judgeStored(ctx context.Context) {
	const states, reports = "unstored states", "unstored reports"
	if f.store.Away() != nil {
		return
	}
	found, err := fleetcli.FindUnstored(ctx, f.store, f.to.All())
	if err != nil {
		return // the missing leader is shown
	}
	if found.LastReport.Equal(f.unstored.LastReport) {
		// A heartbeat does not end it.
		found.Reports = cmp.Or(found.Reports, f.unstored.Reports)
	}
	f.unstored = found
	for about, text := range map[string]string{states: found.States, reports: found.Reports} {
		if text == "" {
			f.to.Clear(about)
		} else {
			f.to.Problem(about, text)
		}
	}
	if found.Since.IsZero() {
		f.to.Sees(states)
	} else {
		f.to.Blind(states, found.Since)
	}
}
