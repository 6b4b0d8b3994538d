package watch

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// stillDenied is the interval of log messages about subscriptions that stay denied.
const stillDenied = time.Hour

// resubscription plans reconnects after a denied subscription. The server accepts a subscription that
// has become permitted only on a new connection.
type resubscription struct {
	store *kvstore.Store
	o     Options
	// isMain reports whether this is the main watch of the connection. Other watches do nothing.
	isMain bool
	// at is the time of the next reconnect, or zero.
	at time.Time
	// wait is the pause before the next reconnect. last is the time of the last reconnect.
	wait time.Duration
	last time.Time
	// since is the time of the first denial, or zero without denials. logged is the time of the
	// last log message.
	since, logged time.Time
	// check is the time of the next check, or zero. By then the server has denied the subscriptions of a new connection.
	check time.Time
}

func (r *resubscription) isDue(now time.Time) bool { return !r.at.IsZero() && !r.at.After(now) }

// plan schedules a reconnect with a growing pause, unless one is scheduled. isPlanned reports whether
// it did, isFirst whether this is the first denial for a while.
func (r *resubscription) plan(now time.Time) (isPlanned, isFirst bool) {
	if !r.at.IsZero() {
		return false, false
	}
	if isFirst = now.Sub(r.last) > r.o.Audit; isFirst {
		r.wait = r.o.Retry
	}
	if r.since.IsZero() {
		r.since = now
	}
	r.check = time.Time{}
	r.at = now.Add(time.Duration((0.5 + r.o.Rand()/2) * float64(r.wait)))
	r.wait = min(2*r.wait, r.o.Audit)

	return true, isFirst
}

// reconnected schedules a check of the subscriptions if one was denied.
func (r *resubscription) reconnected(now time.Time) {
	if !r.since.IsZero() {
		r.check = now.Add(r.o.Retry)
	}
}

// checks reports once whether the check is due.
func (r *resubscription) checks(now time.Time) bool {
	if r.check.IsZero() || r.check.After(now) {
		return false
	}
	r.check = time.Time{}

	return true
}

// deny schedules a reconnect if a subscription is denied, and logs it. Only a new denial is a warning
// with the error. Later messages leave the error out, because a limited log drops known errors.
func (r *resubscription) deny(ctx context.Context) {
	denied := r.denied()
	if denied == nil {
		return
	}
	now := time.Now()
	isPlanned, isFirst := r.plan(now)
	event, level := "subscription still denied, will reconnect", slog.LevelDebug
	attributes := []any{"node", r.o.Node, "in", r.at.Sub(now).Round(time.Millisecond), "remedy", "permit it; then restart the agent to have it at once"}
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
	r.o.Log.Log(ctx, level, event, attributes...)
}

// permit logs that all subscriptions are permitted again.
func (r *resubscription) permit(ctx context.Context) {
	r.o.Log.InfoContext(ctx, "subscriptions permitted again", "node", r.o.Node, "after", time.Since(r.since).Round(time.Second))
	r.since = time.Time{}
}

// reconnect reconnects if a subscription is still denied.
func (r *resubscription) reconnect(ctx context.Context) {
	r.at = time.Time{}
	denied := r.denied()
	if denied == nil {
		return
	}
	r.last = time.Now()
	r.o.Log.DebugContext(ctx, "reconnecting to subscribe again", "node", r.o.Node, "denied", denied)
	if err := r.store.Conn.ForceReconnect(); err != nil {
		r.o.Log.WarnContext(ctx, "cannot reconnect", "error", err)
	}
}

// denied returns the first denied subscription of this connection that the node still needs.
func (r *resubscription) denied() error {
	if !r.isMain {
		return nil
	}

	return kvstore.DenialWithRemedy(r.store.Denials.Subscription(r.wants), r.o.Node, r.o.Groups)
}

// wants reports whether the node still needs a subject. A denial may arrive after the node left the
// group.
func (r *resubscription) wants(subject string) bool {
	group := r.store.Names.GroupOf(subject)

	return group == "" || group == model.GroupAll || slices.Contains(r.o.Groups, group)
}
