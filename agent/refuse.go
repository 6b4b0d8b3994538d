package agent

import (
	"context"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
)

// turnDown deals with a version that cannot be run, and gives the reason in
// words: what never becomes valid is reported once, what may pass is tried
// again.
func (r *runner) turnDown(ctx context.Context, u *unit, e Entry, err error) string {
	if ctx.Err() != nil {
		return "" // it was broken off because the agent stops
	}
	if problems, never := neverValid(err); never {
		r.refuse(ctx, u, e, problems)
		return "refused: " + problems.Error()
	}
	r.postpone(ctx, u, e, err)

	return err.Error()
}

// refuse reports a version that is not valid, once for each version and what is
// wrong with it, also across restarts.
func (r *runner) refuse(ctx context.Context, u *unit, e Entry, problems model.Problems) {
	said := refusal{Revision: e.Revision, Sum: model.DigestOf(e.Value), Problems: problems.Error()}
	if slices.Contains(u.record.Refused, said) {
		return
	}
	r.log.ErrorContext(ctx, "manifest refused, the last good version stays in force", "manifest", u.key, "revision", e.Revision, "problems", said.Problems)
	run := r.failedRun(u, e, model.CauseManifest)
	run.Refused = true
	for _, p := range problems.Sorted() {
		run.Errors = append(run.Errors, p.Error())
	}
	r.reportRun(run)
	r.reportNode(model.NodeRefused, cut(u.key+": "+said.Problems))
	r.sync()
	u.acquit(e)
	u.record.Refused = append(u.record.Refused, said)
	r.keep(ctx, u)
}

// acquit forgets what was said about a version, and about those that are no
// candidates any more.
func (u *unit) acquit(e Entry) {
	candidates := u.candidates()
	u.record.Refused = slices.DeleteFunc(u.record.Refused, func(said refusal) bool {
		return (said.Revision == e.Revision && said.Sum == model.DigestOf(e.Value)) || !slices.ContainsFunc(candidates, func(c Entry) bool {
			return said.Revision == c.Revision && said.Sum == model.DigestOf(c.Value)
		})
	})
}

// postpone tries again later what may pass, and reports it when it is new.
func (r *runner) postpone(ctx context.Context, u *unit, e Entry, err error) {
	now := time.Now()
	if u.retryAt.IsZero() || !now.Before(u.retryAt) {
		u.retryAt = now.Add(min(u.wait.next(), spread(r.intervalOf(u), jitter)))
	}
	r.log.WarnContext(ctx, "manifest cannot be made ready, it is tried again", "manifest", u.key, "revision", e.Revision, "error", err, "retry", u.retryAt)
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
func (r *runner) failedRun(u *unit, e Entry, cause model.Cause) *model.Run {
	return &model.Run{
		Protocol: model.ProtocolRun, RunID: ksuid.New().String(), Node: r.Config().Node, Manifest: u.key, Revision: e.Revision,
		Digest: model.DigestOf(e.Value), Cause: cause, Started: time.Now().UTC(), Version: r.opts.Version,
	}
}

// journal gives the journal of a manifest.
func (r *runner) journal(key string) *engine.FileJournal {
	return engine.NewFileJournal(r.opts.Host, r.Config().StateDir, key)
}

// forgive strikes out what the resources of a manifest are owed.
func (r *runner) forgive(ctx context.Context, key string) error {
	return r.journal(key).Reset(ctx)
}
