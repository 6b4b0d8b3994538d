package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/manifest"
)

// Facts are the facts of the node.
type Facts struct {
	// Values is nil until the facts are gathered.
	Values model.Facts
	Stable string
	// Gathered is the number of times that the facts were gathered.
	Gathered int
}

// Input is the input of Sync.
type Input struct {
	// Entries are the keys and revisions that the watch knows. Sync describes how completely.
	Entries map[string]model.Entry
	Sync    model.Sync
	// Families are the families of the node, by precedence.
	Families []string
	Facts    Facts
	// Changes is the number of times that this agent changed the machine.
	Changes  int
	MaxDepth int
	// Interval limits the wait between retries of a transient error.
	Interval time.Duration
	Now      time.Time
}

func (in Input) basis() basis { return basis{in.Facts.Gathered, in.Changes, in.Now} }

// Result is the result of Sync or Handle.
type Result struct {
	Activated []Activation
	// Deactivated are the keys whose version is no longer active, Unassigned the keys that the bucket no
	// longer assigns, Refreshed the keys that were resolved again.
	Deactivated, Unassigned, Refreshed []string
	Rejected                           []Rejection
	Postponed                          []Postponement
	// Restored are the keys whose runs need not wait for a damaged bundle any longer.
	Restored []string
	// Changed reports whether the state of a key changed in another way.
	Changed bool
}

// IsEmpty reports whether the result lists nothing.
func (r *Result) IsEmpty() bool {
	return !r.Changed && len(r.Activated)+len(r.Deactivated)+len(r.Unassigned)+len(r.Refreshed)+len(r.Rejected)+len(r.Postponed)+len(r.Restored) == 0
}

// Activation is a newly active version.
type Activation struct {
	Key string
	// Applied means that it already ran before a restart.
	Applied bool
}

// Rejection is an invalid version, reported once.
type Rejection struct {
	Entry model.Entry
	// Digest is the digest of its value, which the entry may lack.
	Digest    string
	Problems  model.Problems
	Remaining string
}

// Postponement is a version with a transient error.
type Postponement struct {
	Entry model.Entry
	Err   error
	Retry time.Time
	// New means that the error was not reported yet.
	New bool
}

// Sync reads the values of changed keys and activates the current version of each name. It waits for NATS and
// for templates. Call RemoveBundles after it.
func (s *Set) Sync(ctx context.Context, in Input) Result {
	t := s.turn(in)
	t.handle(ctx)
	for _, u := range s.units {
		u.untrusted = reason{}
		if !in.Now.Before(u.retry.at) {
			u.retry.at = time.Time{} // this is the retry
		}
	}
	t.assign(ctx)
	t.read(ctx)
	t.activate(ctx)
	for _, u := range s.units {
		u.forget()
	}
	t.conclude()
	s.remember(ctx, in.Sync)
	s.save(ctx)

	return t.result
}

// turn is one call of Sync or Handle, with its input and its result.
type turn struct {
	*Set
	in     Input
	result Result
}

// turn begins a turn that retries transient errors.
func (s *Set) turn(in Input) *turn {
	s.bundles.Forget()

	return &turn{Set: s, in: in}
}

func (t *turn) assign(ctx context.Context) {
	present := map[string]bool{}
	for key, e := range t.in.Entries {
		family, _, ok := model.SplitKey(key)
		if !ok || !slices.Contains(t.in.Families, family) {
			continue
		}
		if t.isLost(key) {
			continue
		}
		present[key] = true
		u := t.unit(key)
		if good := u.record.Good; good != nil && e.Revision < good.Revision && !t.in.Sync.Knows(family) {
			continue // older than the version that ran
		}
		u.assign(e)
	}
	for _, key := range slices.Sorted(maps.Keys(t.units)) {
		u := t.units[key]
		switch {
		case present[key]:
		case !slices.Contains(t.in.Families, u.family), t.in.Sync.Knows(u.family) && t.mayRemove(ctx, u):
			t.unassign(ctx, u)
		}
	}
}

// isLost reports whether the bucket lost a key without an active version. There is nothing to keep, and a
// server may have invented the key.
func (t *turn) isLost(key string) bool {
	u := t.units[key]
	_, kept := slices.BinarySearch(t.in.Sync.Kept, key)

	return kept && (u == nil || u.record.Good == nil)
}

func (t *turn) unassign(ctx context.Context, u *unit) {
	delete(t.units, u.key)
	t.result.Unassigned = append(t.result.Unassigned, u.key)
	if err := t.store.remove(u.key); err != nil {
		t.o.Log.ErrorContext(ctx, "cannot remove stored assignment", "manifest", u.key, "error", err)
	}
}

// maxValues limits the bytes of assignments on a node, because an operator must not fill its memory and disk.
const maxValues = 64 << 20

// errTooLarge ends when an assignment is removed.
var errTooLarge = fmt.Errorf("the assignments of this node are larger than %d MiB together, it reads no more of them", maxValues>>20)

// read reads the unknown values, the node's own first. If the bucket does not answer, it skips the others
// this time.
func (t *turn) read(ctx context.Context) {
	var away error
	held := 0
	for _, u := range t.units {
		held += u.size()
	}
	byFamily := func(a, b *unit) int {
		return cmp.Or(cmp.Compare(slices.Index(t.in.Families, a.family), slices.Index(t.in.Families, b.family)), cmp.Compare(a.key, b.key))
	}
	for _, u := range slices.SortedFunc(maps.Values(t.units), byFamily) {
		if u.newest == nil || u.newest.Value != nil || u.never != nil && !u.rejudge {
			continue
		}
		if away != nil {
			u.unread = away
			continue
		}
		if held >= maxValues {
			u.unread = errTooLarge
			continue
		}
		e, err := t.o.Source.Read(ctx, u.key, u.newest.Revision)
		u.unread = err
		switch {
		case err == nil:
			e.Value = append([]byte{}, e.Value...) // never nil: an empty value counts as read
			held -= u.size()
			t.accept(ctx, u, e)
			held += u.size()
		case !errors.Is(err, model.ErrNotFound):
			away = err
		}
	}
}

// accept sets the read value as the newest version of a unit. It stores only the digest of a permanently
// rejected value, because its author must not fill memory and disk.
func (t *turn) accept(ctx context.Context, u *unit, e model.Entry) {
	u.never, u.rejudge = nil, false
	if good := u.record.Good; good == nil || !sameEntry(*good, e) {
		u.never = t.rejects(ctx, u, e)
	}
	if u.never != nil {
		e = unused(e)
	}
	u.newest = &e
	u.forget() // also the read value
}

// rejects returns the permanent reason why a read value is rejected, independent of time, facts and other
// assignments; nil if there is none.
func (t *turn) rejects(ctx context.Context, u *unit, e model.Entry) (never error) {
	var err error
	if e.Refused == "" && t.o.Gate.Demands() {
		err = t.o.Gate.Never(ctx, e) // signed values may be parsed and stored
	} else {
		err = t.parses(u, e)
	}
	if _, invalid := model.FindProblems(err); !invalid || ctx.Err() != nil {
		return nil
	}

	return err
}

// parses returns the reason why a value, or the manifest in it, cannot be parsed at any time.
func (t *turn) parses(u *unit, e model.Entry) error {
	return tasks.Guard(t.o.Log, "reading "+u.key, func() error {
		v, err := u.read(e)
		if err == nil && v.Bundle == "" && v.When == "" && v.Expires.IsZero() {
			_, err = manifest.Parse(e.Key, []byte(v.Manifest))
		}
		return err
	})
}

// selectOf returns the winning version of a name.
func (t *turn) selectOf(ctx context.Context, same []*unit) (candidate, bool) {
	u, v, rest := selectAssignment(same, func(u *unit) (*Version, bool) { return t.resolveCandidate(ctx, u) })
	if u == nil {
		return candidate{}, false
	}

	return candidate{u, slices.Index(t.in.Families, u.family), v, rest}, true
}

// activate activates the winning version of each name.
func (t *turn) activate(ctx context.Context) {
	var candidates []candidate
	for _, same := range byPrecedence(t.units, t.in.Families) {
		if c, ok := t.selectOf(ctx, same); ok {
			candidates = append(candidates, c)
		}
	}
	was, admitted := t.order, t.admit(ctx, candidates)
	t.order = nil
	for _, c := range admitted {
		u, v := c.unit, c.version
		t.order = append(t.order, u)
		applied := u.record.Applied == v.sum && u.record.Good != nil && u.record.Good.Revision == v.Entry.Revision
		if u.setActive(v) {
			t.result.Activated = append(t.result.Activated, Activation{u.key, applied})
			u.warn(ctx, t.o.Log, nil)
		}
	}
	for _, u := range was {
		if !slices.Contains(t.order, u) {
			u.active = nil
			if t.units[u.key] == u {
				t.result.Deactivated = append(t.result.Deactivated, u.key)
			}
		}
	}
	for _, u := range t.order {
		if !u.stale.isZero() && u.retry.at.IsZero() && t.refresh(ctx, u) {
			t.result.Refreshed = append(t.result.Refreshed, u.key)
			if u.active.Damaged() { // the download failed
				t.result.Restored = append(t.result.Restored, u.key)
			}
		}
	}
}

// conclude adds the remaining active version to rejections, and updates the record of each unit.
func (t *turn) conclude() {
	for i, r := range t.result.Rejected {
		if u, ok := t.units[r.Entry.Key]; ok {
			t.result.Rejected[i].Remaining = t.remaining(u)
		}
	}
	for _, u := range t.units {
		newest := u.newest
		if newest != nil && (newest.Value == nil && newest.Digest == "" || u.record.Good != nil && sameEntry(*newest, *u.record.Good)) {
			newest = nil
		}
		if kept := u.record.Newest; u.newest != nil && (newest == nil) != (kept == nil) || newest != nil && kept != nil && !sameEntry(*newest, *kept) {
			u.record.Newest, u.unsaved = newest, true
		}
	}
}

func (s *Set) remaining(u *unit) string {
	for _, other := range s.order {
		if other.name == u.name {
			return fmt.Sprintf("%s revision %d stays in force", other.key, other.active.Entry.Revision)
		}
	}

	return "nothing of " + u.name + " is in force"
}

func (s *Set) remember(ctx context.Context, sync model.Sync) {
	if sync.Stream.IsZero() || s.bucket.Stream.Equal(sync.Stream) && slices.Equal(s.bucket.Kept, sync.Kept) {
		return
	}
	s.bucket = bucketRecord{sync.Stream, slices.Clone(sync.Kept)}
	if err := s.store.writeBucket(ctx, s.bucket); err != nil {
		s.o.Log.ErrorContext(ctx, "cannot store state of the bucket", "error", err)
	}
}

// RemoveBundles removes the bundles that no version and no run uses.
func (s *Set) RemoveBundles(ctx context.Context) {
	used := map[string]bool{"": true}
	for _, u := range s.units {
		for _, e := range u.candidates() {
			if v, err := u.read(e); err == nil {
				used[v.Bundle] = true
			}
		}
		if u.active != nil {
			used[u.active.Bundle] = true
		}
	}
	s.held.mu.Lock()
	s.held.leftover = false
	for digest := range s.held.runs {
		s.held.leftover = s.held.leftover || !used[digest]
		used[digest] = true
	}
	s.held.mu.Unlock()
	if err := s.bundles.Keep(ctx, used); err != nil {
		s.o.Log.WarnContext(ctx, "cannot remove unused bundles", "error", err)
	}
}

// handleInvalid handles a version that cannot run, and returns the reason. It rejects an invalid version and
// retries a transient error.
func (t *turn) handleInvalid(ctx context.Context, u *unit, e model.Entry, err error) reason {
	if ctx.Err() != nil {
		return reason{} // the agent stops
	}
	if errors.Is(err, ErrFetching) {
		return reasonOf(err) // not an error: Arrived ends the wait
	}
	if problems, invalid := model.FindProblems(err); invalid {
		t.reject(u, e, problems)
	} else {
		t.postpone(u, e, err)
	}

	return reasonOf(err)
}

// reject records an invalid version, once for each version and its problems, also across restarts.
func (t *turn) reject(u *unit, e model.Entry, problems model.Problems) {
	r := rejection{Revision: e.Revision, Sum: sumOf(e), Problems: reported(problems)}
	if slices.Contains(u.record.Refused, r) {
		return
	}
	u.clearRejection(e)
	u.record.Refused, u.unsaved = append(u.record.Refused, r), true
	t.result.Rejected = append(t.result.Rejected, Rejection{Entry: e, Digest: r.Sum, Problems: problems})
}

// postpone schedules a retry of a transient error.
func (t *turn) postpone(u *unit, e model.Entry, err error) {
	interval := t.in.Interval
	if u.active != nil && u.active.Resolution.Interval > 0 {
		interval = u.active.Resolution.Interval
	}
	u.retry.plan(interval)
	reason := reported(err)
	t.result.Postponed = append(t.result.Postponed, Postponement{Entry: e, Err: err, Retry: u.retry.at, New: u.retry.reported != reason})
	u.retry.reported = reason
}

// reported returns the identity of a reported error: its text, except for an error that contains the time.
func reported(err error) string {
	for _, reason := range []error{signed.ErrExpired, signed.ErrFuture} {
		if errors.Is(err, reason) {
			return reason.Error()
		}
	}

	return err.Error()
}
