package runner

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
)

// announce reports the result of the assignments.
func (m *Manifests) announce(ctx context.Context, result desired.Result) {
	for _, key := range result.Unassigned {
		m.o.Report.Node(key, model.NodeUnassigned, key+" is not assigned any more; whatever it made is left as it is")
	}
	for _, p := range result.Postponed {
		m.reportPostponed(ctx, p)
	}
	for _, r := range result.Rejected {
		m.reportRejected(ctx, r)
	}
}

func (m *Manifests) reportRejected(ctx context.Context, r desired.Rejection) {
	run := m.o.Runner.Unmade(r.Entry, r.Digest, model.CauseManifest)
	run.Refused = true
	for _, p := range r.Problems.Sorted() {
		run.Errors = append(run.Errors, p.Error())
	}
	logged := m.rejected.Log(ctx, m.o.Log, slog.LevelError, "assignment rejected", "manifest", r.Entry.Key, "revision", r.Entry.Revision, "problems", len(run.Errors), "active", r.Remaining)
	leftOut, ok := m.reported.takes(r.Entry.Key, time.Now())
	if !ok {
		return
	}
	m.o.Report.Run(run) // which bounds its errors
	if logged {
		for _, problem := range run.Errors {
			m.o.Log.ErrorContext(ctx, problem)
		}
	}
	// Most problems begin with the key.
	reason := bounds.Problems(r.Problems)
	if !strings.HasPrefix(reason, r.Entry.Key+":") {
		reason = r.Entry.Key + ": " + reason
	}
	reason += "; " + r.Remaining
	if leftOut > 0 {
		reason += fmt.Sprintf("; %d rejections before it were not reported", leftOut)
	}
	m.o.Report.Node("", model.NodeRefused, reason)
}

func (m *Manifests) reportPostponed(ctx context.Context, p desired.Postponement) {
	const event = "assignment not ready, will retry"
	attributes := []any{"manifest", p.Entry.Key, "revision", p.Entry.Revision, "error", p.Err, "retry", time.Until(p.Retry).Round(time.Second)}
	if !p.New {
		m.o.Log.DebugContext(ctx, event, attributes...)
		return
	}
	m.postponed.Log(ctx, m.o.Log, slog.LevelWarn, event, attributes...)
	if _, ok := m.postponements.takes(p.Entry.Key, time.Now()); !ok {
		return
	}
	run := m.o.Runner.Unmade(p.Entry, model.DigestOf(p.Entry.Value), model.CauseManifest)
	run.Errors = []string{p.Err.Error()}
	m.o.Report.Run(run)
}
