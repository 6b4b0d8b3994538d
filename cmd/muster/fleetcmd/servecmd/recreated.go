package servecmd

import (
	"context"
	"time"

	"github.com/musterfleet/muster/kvstore"
)

// recreatedError is a stream whose sequences begin anew: what is known of it is over.
type recreatedError struct {
	// what it is, and what of before is gone with it.
	what, gone string
	reports    bool
}

// Error names the stream.
func (e *recreatedError) Error() string { return "the " + e.what + " was created again" }

// kept is a stream of which the view keeps something.
type kept struct {
	stream, subject string
	recreatedError
}

// streams returns those that are looked at, first that of reports.
func (f *feed) streams() []kept {
	n := f.store.Names()
	bucket := func(name, gone string) kept {
		return kept{kvstore.KVStream(name), kvstore.KVSubject(name, ">"), recreatedError{what: "bucket " + name, gone: gone}}
	}

	return []kept{
		{n.Reports(), n.Report("*", "*", "*"), recreatedError{"stream of reports", "what was reported before is gone", true}},
		bucket(n.Nodes(), "nodes are missing until they store their states again"),
		bucket(n.Manifests(), "what was assigned before is gone"),
	}
}

// seen is what is known of the streams: since when there are these ones, and the highest sequence
// of the reports.
type seen struct {
	created map[string]time.Time
	highest uint64
}

// watchStreams returns a *recreatedError, or nil when ctx ends.
func (f *feed) watchStreams(ctx context.Context) (err error) {
	for last := (seen{}); ; {
		if last, err = f.checkStreams(ctx, last); err != nil {
			return err
		}
		if kvstore.Pause(ctx, f.look) != nil {
			return nil
		}
	}
}

// checkStreams returns what is known of the streams now, or a *recreatedError where one is not that
// of before. One of reports that was restored from an older copy may have its time.
func (f *feed) checkStreams(ctx context.Context, last seen) (seen, error) {
	now := seen{map[string]time.Time{}, last.highest}
	streams := f.streams()
	for _, s := range streams {
		before := last.created[s.stream]
		// What reads a stream says why it cannot be read.
		created, err := f.store.Created(ctx, s.stream, s.subject)
		if err != nil {
			created = before
		}
		if now.created[s.stream] = created; !before.IsZero() && !created.Equal(before) {
			return seen{}, &s.recreatedError
		}
	}
	// An empty one is no other.
	if newest, err := f.reports.NewestMessage(ctx); err == nil && newest.Sequence > 0 {
		now.highest = newest.Sequence
	}
	if now.highest < last.highest {
		return seen{}, &streams[0].recreatedError
	}

	return now, nil
}
