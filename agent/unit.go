package agent

import (
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// unit is one key of the bucket as this node stands with it. Only the runner
// touches it.
type unit struct {
	key, name string
	record    record
	// newest is what the bucket holds now; nil while that is not known.
	newest *model.Entry
	// versions are the newest and the last good one, by their sums and revisions.
	versions map[version]*loaded
	// current is what is in force; nil means nothing.
	current *loaded
	// next is when the interval is over.
	next time.Time
	runs int
	// again spreads the tries of runs that fail before they come to any resource.
	again tasks.Backoff
	// retryAt is when what may pass is tried again; zero means that nothing is.
	retryAt time.Time
	wait    tasks.Backoff
	// asked says that a change that somebody asked for has not been made yet.
	asked bool
	// told is the error that may pass and was reported already.
	told   string
	health health
	// late says why the newest version is not in force, stale why the one in force
	// is what it came to before and not what it comes to now.
	late, stale string
}

// version tells entries of a key apart.
type version struct {
	revision uint64
	sum      string
}

// loaded is an entry that was read, and what it came to.
type loaded struct {
	*assignment
	dir string
	// resolved and graph are nil until it was resolved.
	resolved *manifest.Resolved
	graph    *graph.Graph
	// warned is what was logged of warnings.
	warned string
	// refused is what is wrong with it, found with facts of this digest.
	refused   error
	refusedBy string
	// interval is how often it is looked at; zero leaves that to the configuration.
	interval time.Duration
}

func (l *loaded) version() version { return version{l.entry.Revision, l.sum} }

// sameAs says that two versions are one.
func (l *loaded) sameAs(other *loaded) bool {
	return l != nil && other != nil && l.version() == other.version()
}

// candidates gives the versions of a unit that may be put in force: the newest,
// and behind it the last good one.
func (u *unit) candidates() []model.Entry {
	var out []model.Entry
	if u.newest != nil {
		out = append(out, *u.newest)
	}
	if good := u.record.Good; good != nil && (u.newest == nil || good.Revision != u.newest.Revision || model.DigestOf(good.Value) != model.DigestOf(u.newest.Value)) {
		out = append(out, *good)
	}

	return out
}

// isNewest says that an entry is what the bucket holds now.
func (u *unit) isNewest(e model.Entry) bool {
	return u.newest != nil && u.newest.Revision == e.Revision
}

// forget drops the versions that are no candidates any more.
func (u *unit) forget(candidates []model.Entry) {
	for v := range u.versions {
		keep := u.current != nil && u.current.version() == v
		for _, e := range candidates {
			keep = keep || (e.Revision == v.revision && model.DigestOf(e.Value) == v.sum)
		}
		if !keep {
			delete(u.versions, v)
		}
	}
}

// shortest gives an interval, zero for none, or the smallest poll of resources,
// whichever is less.
func shortest(out time.Duration, resources []*resource.Resource) time.Duration {
	for _, r := range resources {
		if poll := r.Meta().Poll.Std(); poll > 0 && (out == 0 || poll < out) {
			out = poll
		}
	}
	if out > 0 {
		out = max(out, time.Second)
	}

	return out
}
