package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// recreatedError is a stream whose sequences begin anew: what is known of it is over.
type recreatedError struct {
	// what names the streams, and gone describes the lost data.
	what, gone string
	// reports is set if the stream of reports is one of them.
	reports bool
}

// Error names the stream.
func (e *recreatedError) Error() string { return "the " + e.what + " was created again or restored" }

// kept is a stream of which the view keeps something.
type kept struct {
	stream Stream
	recreatedError
}

// streams returns those that are looked at, first that of reports.
func (f *feed) streams() []kept {
	one := func(s Stream, gone string, reports bool) kept {
		return kept{s, recreatedError{s.Name(), gone, reports}}
	}

	return []kept{
		one(f.Reports, "requests and reports that were not restored are lost", true),
		one(f.Nodes, "nodes are missing until they store their states again", false),
		one(f.Assignments, "pushes and removals that were not restored are lost, and nodes may run manifests that are no longer assigned", false),
	}
}

// seen is what is known of the streams, by name.
type seen map[string]age

// age is since when there is a stream, its last sequence, and when the message of that was stored, zero
// where it is not known. Back is set where the sequence was lower the last time: the server that leads
// it since just now may not know all of it yet.
type age struct {
	created time.Time
	last    uint64
	stored  time.Time
	back    bool
	// unanswered counts the checks without an answer since answered, the time of the last answer.
	unanswered int
	answered   time.Time
}

// leaderless returns which streams no leader answered for twice.
func (s seen) leaderless(of []kept) (out []string) {
	for _, k := range of {
		if s[k.stream.Name()].unanswered > 1 {
			out = append(out, k.what)
		}
	}

	return out
}

// watchStreams returns a *recreatedError, or nil when ctx ends. It says which streams no leader answers for, once that
// is no election: a server that is cut off from the others goes on to answer with what it has.
func (f *feed) watchStreams(ctx context.Context) (err error) {
	const about = "leaders"
	checked := sync.OnceFunc(func() { close(f.checked) })
	for last := (seen{}); ; {
		reconnected := f.Connection.Reconnected()
		if last, err = f.checkStreams(ctx, last); err != nil {
			return err
		}
		checked()
		f.judgeBlind(last[f.Nodes.Name()])
		f.judgeStored(ctx)
		f.judgeLost(ctx)
		if leaderless := last.leaderless(f.streams()); len(leaderless) > 0 && f.Connection.Away() == nil {
			f.to.Problem(about, fmt.Sprintf("NATS does not say how current this is: no server that is in charge of the %s answers", strings.Join(leaderless, ", the ")))
		} else {
			f.to.Clear(about)
		}
		if f.awaitCheck(ctx, last, reconnected) != nil {
			return nil
		}
	}
}

// judgeBlind marks the fleet as blind while the stream of node states has no leader, because then no node can store its
// state.
func (f *feed) judgeBlind(nodes age) {
	const reason = "leader"
	switch {
	case nodes.unanswered == 0:
		f.to.Sees(reason)
	case nodes.unanswered > 1 && !nodes.answered.IsZero():
		f.to.Blind(reason, nodes.answered)
	}
}

// awaitCheck waits until the next check of the streams. The check is due at once after NATS was away, because the server
// may have another store now, and after recheckPause if an answer was missing, a sequence went back, or the server did not
// store messages.
func (f *feed) awaitCheck(ctx context.Context, last seen, reconnected time.Time) error {
	wait := f.look
	if len(f.unstored.Lines()) > 0 {
		wait = min(wait, recheckPause)
	}
	for _, a := range last {
		if a.back || a.unanswered > 0 {
			wait = min(wait, recheckPause)
		}
	}
	for end := time.Now().Add(wait); time.Now().Before(end) && f.Connection.Reconnected().Equal(reconnected); {
		if err := pause(ctx, min(awayPause, time.Until(end))); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// checkStreams returns the age of each stream, or a *recreatedError with all streams that were replaced. A backup restores
// several streams at once, so if one stream was replaced, streams with a lower sequence than before count as replaced too.
func (f *feed) checkStreams(ctx context.Context, last seen) (seen, error) {
	now := seen{}
	var replaced, back []*recreatedError
	for _, s := range f.streams() {
		a, err := f.checkStream(ctx, &s, last[s.stream.Name()])
		var again *recreatedError
		switch {
		case errors.As(err, &again):
			replaced = append(replaced, again)
		case err != nil:
			return nil, err
		case a.back:
			back = append(back, &s.recreatedError)
		}
		now[s.stream.Name()] = a
	}
	if len(replaced) == 0 {
		return now, nil
	}

	return nil, joinRecreated(append(replaced, back...))
}

// joinRecreated returns one error for several streams.
func joinRecreated(all []*recreatedError) error {
	joined := &recreatedError{}
	var what, gone []string
	for _, one := range all {
		what, gone = append(what, one.what), append(gone, one.gone)
		joined.reports = joined.reports || one.reports
	}
	joined.what, joined.gone = strings.Join(what, ", the "), strings.Join(gone, "; ")

	return joined
}

// checkStream returns what is known of a stream now, or a *recreatedError where it is not that of before:
// by its time, by the message that the last sequence had, or since it goes back. A restore keeps the time,
// and what is published then may have overtaken the sequence before anybody looks.
func (f *feed) checkStream(ctx context.Context, s *kept, before age) (age, error) {
	created, sequence, err := s.stream.Age(ctx)
	switch {
	case err != nil:
		// What reads the stream says of any other error why it cannot be read.
		if before.unanswered++; !f.Connection.IsOutage(err) {
			before.unanswered = 0
		}
		return before, nil
	case before.created.IsZero():
	case !created.Equal(before.created) || f.isOther(ctx, s, before):
		return age{}, &s.recreatedError
	case sequence < before.last && before.back:
		return age{}, &s.recreatedError
	case sequence < before.last:
		before.back, before.unanswered, before.answered = true, 0, time.Now()
		return before, nil
	}
	now := age{created: created, last: sequence, answered: time.Now()}
	if sequence > 0 {
		if now.stored, err = s.stream.StoredAt(ctx, sequence); err != nil {
			now.stored = time.Time{} // another one has taken its place
		}
	}

	return now, nil
}

// isOther reports whether another message has the last sequence of before. One that is not there is
// none: a later one of its subject has taken its place.
func (f *feed) isOther(ctx context.Context, s *kept, before age) bool {
	if before.stored.IsZero() {
		return false
	}
	stored, err := s.stream.StoredAt(ctx, before.last)

	return err == nil && !stored.Equal(before.stored)
}
