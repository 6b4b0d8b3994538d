package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/journal"
)

// turnDown deals with a version that cannot be run, and gives the reason in
// words: what never becomes valid is reported once, what may pass is tried
// again.
func (r *runner) turnDown(ctx context.Context, u *unit, e model.Entry, err error) string {
	if ctx.Err() != nil {
		return "" // it was broken off because the agent stops
	}
	if problems, never := neverValid(err); never {
		r.refuse(ctx, u, e, problems)
		return refusedPrefix + bounds.Problems(problems)
	}
	r.postpone(ctx, u, e, err)

	return bounds.Text(err.Error())
}

// refuse reports a version that is not valid, once for each version and what is
// wrong with it, also across restarts.
func (r *runner) refuse(ctx context.Context, u *unit, e model.Entry, problems model.Problems) {
	said := refusal{Revision: e.Revision, Sum: model.DigestOf(e.Value), Problems: problems.Error()}
	if slices.Contains(u.record.Refused, said) {
		return
	}
	run := r.failedRun(u, e, model.CauseManifest)
	run.Refused = true
	for _, p := range problems.Sorted() {
		run.Errors = append(run.Errors, p.Error())
	}
	r.refused = append(r.refused, turnedDown{u, run, said, problems})
	u.acquit(e)
	u.record.Refused = append(u.record.Refused, said)
}

// refusedPrefix begins the reason of a version that was not accepted.
const refusedPrefix = "refused: "

// turnedDown is a refusal that is to be told, when it is known what stays.
type turnedDown struct {
	unit     *unit
	run      *model.Run
	said     refusal
	problems model.Problems
}

// tellRefused tells what was refused, and what stays in force.
func (r *runner) tellRefused(ctx context.Context) {
	for _, t := range r.refused {
		stays := r.stays(t.unit)
		r.log.ErrorContext(ctx, "manifest refused, "+stays, "manifest", t.unit.key, "revision", t.said.Revision, "problems", len(t.run.Errors))
		for _, problem := range bounds.Errors(t.run.Errors, r.maxDocument()) {
			r.log.ErrorContext(ctx, problem)
		}
		r.reportRun(t.run)
		r.reportNode(model.NodeRefused, t.unit.key+": "+bounds.Problems(t.problems)+"; "+stays)
		r.keep(ctx, t.unit)
	}
	if len(r.refused) > 0 {
		r.sync()
	}
	r.refused = nil
}

// stays says what of a unit's name is in force.
func (r *runner) stays(u *unit) string {
	for _, other := range r.units {
		if other.name == u.name && other.current != nil {
			return fmt.Sprintf("%s revision %d stays in force", other.key, other.current.entry.Revision)
		}
	}

	return "nothing of " + u.name + " is in force"
}

// acquit forgets what was said about a version, and about those that are no
// candidates any more.
func (u *unit) acquit(e model.Entry) {
	candidates := u.candidates()
	u.record.Refused = slices.DeleteFunc(u.record.Refused, func(said refusal) bool {
		return (said.Revision == e.Revision && said.Sum == model.DigestOf(e.Value)) || !slices.ContainsFunc(candidates, func(c model.Entry) bool {
			return said.Revision == c.Revision && said.Sum == model.DigestOf(c.Value)
		})
	})
}

// postpone tries again later what may pass, and reports it when it is new.
func (r *runner) postpone(ctx context.Context, u *unit, e model.Entry, err error) {
	now := time.Now()
	if u.retryAt.IsZero() || !now.Before(u.retryAt) {
		u.retryAt = now.Add(min(u.wait.Next(), tasks.Spread(r.intervalOf(u), tasks.Jitter)))
	}
	level := slog.LevelWarn
	if u.told == err.Error() {
		level = slog.LevelDebug
	}
	r.log.Log(ctx, level, "manifest cannot be made ready, it is tried again", "manifest", u.key, "revision", e.Revision, "error", err, "in", time.Until(u.retryAt).Round(time.Second))
	if u.told == err.Error() {
		return
	}
	u.told = err.Error()
	run := r.failedRun(u, e, model.CauseManifest)
	run.Errors = []string{err.Error()}
	r.reportRun(run)
	r.sync()
}

// failedRun is the summary of a run that did not come about.
func (r *runner) failedRun(u *unit, e model.Entry, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: r.Config().Node, Manifest: u.key, Revision: e.Revision,
		Digest: model.DigestOf(e.Value), Cause: cause, Started: time.Now().UTC(), Version: r.opts.Version,
	}
}

// journal gives the journal of a manifest.
func (r *runner) journal(key string) *journal.File {
	return journal.NewFile(r.opts.Host, r.Config().StateDir, key)
}

// forgive strikes out what the resources of a manifest are owed.
func (r *runner) forgive(ctx context.Context, key string) error {
	return r.journal(key).Reset(ctx)
}
