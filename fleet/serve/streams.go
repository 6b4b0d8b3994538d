package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// recreatedError reports streams whose sequences start again. The view of their data is obsolete.
type recreatedError struct {
	// what names the streams, and gone describes the lost data.
	what, gone string
	// reports is set if the stream of reports is one of them, several if there is more than one.
	reports, several bool
}

// Error names the streams.
func (e *recreatedError) Error() string {
	if e.several {
		return "the " + e.what + " were created again or restored"
	}

	return "the " + e.what + " was created again or restored"
}

// notice returns the notice for the pages.
func (e *recreatedError) notice(at time.Time) string {
	return fmt.Sprintf("%v, as seen at %s: %s", e, clock(at), e.gone)
}

type watchedStream struct {
	stream Stream
	recreatedError
}

func (f *feed) streams() []watchedStream {
	return []watchedStream{
		{f.Reports, recreatedError{f.Reports.Name(), "requests and reports that were not restored are lost", true, false}},
		{f.Nodes, recreatedError{f.Nodes.Name(), "nodes are missing until they store their states again", false, false}},
		{f.Assignments, recreatedError{f.Assignments.Name(), "pushes and removals that were not restored are lost, and nodes may run manifests that are no longer assigned", false, false}},
	}
}

// seen has the last known age of each stream, by name.
type seen map[string]age

// age has the creation time of a stream, its last sequence, and the time at which that message was stored, zero if
// unknown. back is set if the last check found a lower sequence: a new leader may not know all messages yet.
type age struct {
	created time.Time
	last    uint64
	stored  time.Time
	back    bool
	// unanswered is the number of checks without an answer since answered, the time of the last answer.
	unanswered int
	answered   time.Time
}

// leaderless returns the streams whose leader did not answer twice in a row.
func (s seen) leaderless(of []watchedStream) (out []string) {
	for _, k := range of {
		if s[k.stream.Name()].unanswered > 1 {
			out = append(out, k.what)
		}
	}

	return out
}

// watchStreams returns a *recreatedError, or nil when ctx ends. It shows the streams without a leader for longer than
// an election takes, because a server that is cut off from the others answers with old data.
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
		again, is := errors.AsType[*recreatedError](err)
		switch {
		case is:
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

func joinRecreated(all []*recreatedError) error {
	joined := &recreatedError{several: len(all) > 1}
	var what, gone []string
	for _, one := range all {
		what, gone = append(what, one.what), append(gone, one.gone)
		joined.reports = joined.reports || one.reports
	}
	joined.gone = strings.Join(gone, "; ")
	if joined.what = what[len(what)-1]; joined.several {
		joined.what = strings.Join(what[:len(what)-1], ", the ") + " and the " + joined.what
	}

	return joined
}

// checkStream returns the current age of a stream, or a *recreatedError if the stream was created again or restored. It
// compares the creation time, the time of the last known message, and the sequence. The message is compared because a
// restore keeps the creation time, and new messages may pass the last known sequence before the next check.
func (f *feed) checkStream(ctx context.Context, s *watchedStream, before age) (age, error) {
	created, sequence, err := s.stream.Age(ctx)
	switch {
	case err != nil:
		// The reader of the stream shows other errors.
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
			now.stored = time.Time{} // a newer message has replaced it
		}
	}

	return now, nil
}

// isOther reports whether the last known sequence now has another message. A missing message does not count: a later
// one of its subject has replaced it.
func (f *feed) isOther(ctx context.Context, s *watchedStream, before age) bool {
	if before.stored.IsZero() {
		return false
	}
	stored, err := s.stream.StoredAt(ctx, before.last)

	return err == nil && !stored.Equal(before.stored)
}

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
