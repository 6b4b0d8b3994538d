package serve

import (
	"cmp"
	"context"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// judgeStored shows whether the server stores the states and reports of nodes. Without states the view is blind.
func (f *feed) judgeStored(ctx context.Context) {
	const states, reports = "unstored states", "unstored reports"
	if f.Connection.Away() != nil {
		return
	}
	found, err := fleet.FindUnstored(ctx, f.Storage, f.to.All())
	f.judgeServers(found.Silent, f.unstored.Silent)
	if err != nil {
		f.unstored.Silent = found.Silent
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

// judgeServers shows the servers that did not answer at this check and the last one: a new leader has heard of none yet.
func (f *feed) judgeServers(now, before map[string]time.Time) {
	const about = "silent server "
	for name := range before {
		if _, still := now[name]; !still {
			f.to.Clear(about + name)
		}
	}
	for name := range now {
		if since, is := before[name]; is {
			now[name] = since // the text stays
			f.to.Problem(about+name, fleet.SilentServer(name, since))
		}
	}
}

// judgeLost shows the manifests that nodes run although the bucket lost their keys. After an error, it keeps the last
// result: the listing of the assignments shows the error.
func (f *feed) judgeLost(ctx context.Context) {
	if f.Connection.Away() != nil || !f.to.Progress().Nodes {
		return
	}
	if lost, err := f.Assignments.Lost(ctx, f.to.Unassigned()); err == nil {
		f.to.SetLost(lost)
	}
}
