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

// seen is what is known of the streams, by name.
type seen map[string]age

// age is since when there is a stream, and its last sequence. Back is set where it was lower the last
// time: the server that leads it since just now may not know all of it yet.
type age struct {
	created time.Time
	last    uint64
	back    bool
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
// of before: by its time, or since it was restored from an older copy.
func (f *feed) checkStreams(ctx context.Context, last seen) (seen, error) {
	now := seen{}
	for _, s := range f.streams() {
		before := last[s.stream]
		created, sequence, err := f.store.StreamAge(ctx, s.stream, s.subject)
		switch {
		case err != nil:
			now[s.stream] = before // what reads the stream says why it cannot be read
		case before.created.IsZero() || created.Equal(before.created) && sequence >= before.last:
			now[s.stream] = age{created: created, last: sequence}
		case created.Equal(before.created) && !before.back:
			before.back = true
			now[s.stream] = before
		default:
			return nil, &s.recreatedError
		}
	}

	return now, nil
}
