package watch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// stillDenied is how often the log has that subscriptions are still denied.
const stillDenied = time.Hour

// resubscription plans when the node connects again because the server denied a
// subscription, by permissions that are wrong, perhaps for a moment: once they are right
// the server accepts it on another connection only.
type resubscription struct {
	// at is when it is due; zero is never.
	at time.Time
	// wait is the wait for the next one, last is when the last one was.
	wait time.Duration
	last time.Time
	// since is when a subscription was first denied, zero while all are permitted; logged
	// is when that was last logged.
	since, logged time.Time
	// check is when a new connection has had the time to be denied what it asked for; zero
	// is never.
	check time.Time
}

func (r *resubscription) isDue(now time.Time) bool { return !r.at.IsZero() && !r.at.After(now) }

// plan plans to connect again unless that is planned, later each time, and reports
// whether it did, and for the first time.
func (r *resubscription) plan(now time.Time, o Options) (isPlanned, isFirst bool) {
	if !r.at.IsZero() {
		return false, false
	}
	if isFirst = now.Sub(r.last) > o.Audit; isFirst {
		r.wait = o.Retry
	}
	if r.since.IsZero() {
		r.since = now
	}
	r.check = time.Time{}
	r.at = now.Add(time.Duration((0.5 + o.Rand()/2) * float64(r.wait)))
	r.wait = min(2*r.wait, o.Audit)

	return true, isFirst
}

// reconnected plans to check whether all is permitted, where it was not.
func (r *resubscription) reconnected(now time.Time, o Options) {
	if !r.since.IsZero() {
		r.check = now.Add(o.Retry)
	}
}

// checks reports whether a check is due, which it is once.
func (r *resubscription) checks(now time.Time) bool {
	if r.check.IsZero() || r.check.After(now) {
		return false
	}
	r.check = time.Time{}

	return true
}

// deny plans to connect again where something is denied, and logs that. Only what is new is worth a warning, and the
// denial: the line that says that it lasts must not be left out as a known cause.
func (r *resubscription) deny(ctx context.Context, o Options, denied error) {
	if denied == nil {
		return
	}
	now := time.Now()
	isPlanned, isFirst := r.plan(now, o)
	event, level := "subscription still denied, will reconnect", slog.LevelDebug
	attributes := []any{"node", o.Node, "in", r.at.Sub(now).Round(time.Millisecond), "remedy", "permit it; then restart the agent to have it at once"}
	switch {
	case !isPlanned:
		return
	case isFirst:
		event, level = "subscription denied, will reconnect", slog.LevelWarn
		attributes = append(attributes, "error", denied)
	case now.Sub(r.logged) >= stillDenied:
		level = slog.LevelInfo
	}
	if level > slog.LevelDebug {
		r.logged = now
	}
	o.Log.Log(ctx, level, event, attributes...)
}

// permit logs that nothing is denied any more.
func (r *resubscription) permit(ctx context.Context, o Options) {
	o.Log.InfoContext(ctx, "subscriptions permitted again", "node", o.Node, "after", time.Since(r.since).Round(time.Second))
	r.since = time.Time{}
}

// subscribeAgain reconnects, so that the server accepts all subscriptions, unless that
// was done meanwhile.
func (l *loop) subscribeAgain(ctx context.Context) {
	l.resubscription.at = time.Time{}
	denied := l.denied()
	if denied == nil {
		return
	}
	l.resubscription.last = time.Now()
	l.o.Log.DebugContext(ctx, "reconnecting to subscribe again", "node", l.o.Node, "denied", denied)
	if err := l.store.Conn().ForceReconnect(); err != nil {
		l.o.Log.WarnContext(ctx, "cannot reconnect", "error", err)
	}
}

// denied returns the first denial, by order, of a subscription on this connection that the node
// in its groups has, nil for a watch that does not connect again.
func (l *loop) denied() error {
	if !l.bucket.isMain {
		return nil
	}

	return kvstore.DenialWithRemedy(l.store.Denials().Subscription(l.wants), l.o.Node, l.o.Groups)
}

// wants reports whether a subject is not one of a group that the node is not in: it left it, and
// a denial may arrive later.
func (l *loop) wants(subject string) bool {
	group := l.store.Names().GroupOf(subject)

	return group == "" || group == model.GroupAll || slices.Contains(l.o.Groups, group)
}
