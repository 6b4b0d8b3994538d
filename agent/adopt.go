package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// recall reads what is on disk.
func (r *runner) recall() error {
	records, err := r.store.all()
	if err != nil {
		return err
	}
	for _, rec := range records {
		u := r.unit(rec.Key)
		u.record = rec
		r.showLate(u)
	}

	return nil
}

// unit gives the unit of a key, made where there is none.
func (r *runner) unit(key string) *unit {
	u, ok := r.units[key]
	if !ok {
		_, name, _ := model.SplitKey(key)
		u = &unit{key: key, name: name, record: record{Key: key}, versions: map[version]*loaded{}}
		r.units[key] = u
	}

	return u
}

// adopt looks at the assignments again and puts in force what holds now.
func (r *runner) adopt(ctx context.Context, woken time.Time) {
	entries, sync := r.opts.Assignments.Entries()
	r.noteSync(ctx, sync)
	for _, u := range r.units {
		if !woken.Before(u.retryAt) {
			u.retryAt = time.Time{} // this is the try
		}
	}
	r.admit(ctx, entries, sync)
	chosen := r.choose(ctx)
	taken := claims{}
	r.order = r.order[:0]
	inForce := map[*unit]bool{}
	for len(chosen) > 0 {
		c := chosen[0]
		chosen = chosen[1:]
		l := r.withoutConflict(ctx, taken, c)
		if l == nil {
			if next, ok := r.pick(ctx, c.rest); ok && c.unit.record.Good == nil {
				chosen = append(chosen, next)
				slices.SortFunc(chosen, choice.compare)
			}
			continue
		}
		taken.add(l)
		inForce[c.unit] = true
		r.order = append(r.order, c.unit)
		r.force(ctx, c.unit, l, woken)
		r.freshen(ctx, c.unit, woken)
		// An interval that became shorter holds at once.
		if next := r.nextTurn(c.unit); next.Before(c.unit.next) {
			c.unit.next = next
		}
		c.unit.health.next = tasks.Earliest(c.unit.health.next, woken.Add(r.Config().HealthInterval.Std()))
	}
	for _, u := range r.units {
		if !inForce[u] && u.current != nil {
			r.log.InfoContext(ctx, "manifest is not in force any more", "manifest", u.key)
			u.current = nil
			u.breakOff()
			u.health = health{}
			r.setHealth(u.key, u.health.counts())
		}
		u.forget(u.candidates())
	}
	for _, u := range r.units {
		r.showLate(u)
	}
	r.tellRefused(ctx)
	r.keepRegistered()
	r.dropBundles(ctx)
}

// noteSync reports, once, that what the bucket says cannot be trusted.
func (r *runner) noteSync(ctx context.Context, s model.Sync) {
	problem, away := "", ""
	if len(s.Kept) > 0 {
		problem = "the bucket was made anew or lost its content, the last known manifests stay in force: " + strings.Join(s.Kept, ", ")
	}
	if s.Err != nil {
		away = s.Err.Error()
	}
	r.setMessage(bounds.Text(cmp.Or(problem, away, invalidKeys(s.Invalid))))
	for _, key := range s.Invalid {
		if !slices.Contains(r.invalid, key) {
			r.log.ErrorContext(ctx, "an assignment is refused: "+invalidKeys([]string{key}))
			r.reportNode(model.NodeRefused, invalidKeys([]string{key}))
			r.sync()
		}
	}
	r.invalid = s.Invalid
	if problem == r.problem {
		return
	}
	r.problem = problem
	if problem == "" {
		r.log.InfoContext(ctx, "the bucket of assignments is in order again")
		return
	}
	r.log.ErrorContext(ctx, "the bucket of assignments cannot be trusted, what was assigned stays in force", "problem", problem)
	r.reportNode(model.NodeRefused, "the last good manifests stay in force: "+bounds.Text(problem))
	r.sync()
}

// invalidKeys says what is wrong with keys, nothing where there are none.
func invalidKeys(keys []string) string {
	if len(keys) == 0 {
		return ""
	}

	return bounds.Text("not a key of an assignment: " + strings.Join(keys, ", ") + " (write node.<node>.<name> or group.<group>.<name>; muster fleet rm removes it)")
}

// admit takes over what the bucket holds, and what it does not hold any more.
func (r *runner) admit(ctx context.Context, entries map[string]model.Entry, sync model.Sync) {
	families := r.families()
	present, gone := map[string]bool{}, false
	for _, e := range entries {
		family, _, ok := model.SplitKey(e.Key)
		if !ok || !slices.Contains(families, family) {
			continue
		}
		present[e.Key] = true
		u := r.unit(e.Key)
		if good := u.record.Good; good != nil && e.Revision < good.Revision && !sync.Knows(family) {
			continue // it is what was remembered, and a later one ran since
		}
		if u.newest == nil || u.newest.Revision != e.Revision {
			u.retryAt, u.told, u.late, u.stale = time.Time{}, "", "", ""
			u.wait.Reset()
		}
		u.newest = &e
	}
	for key, u := range r.units {
		family, _, _ := model.SplitKey(key)
		if !present[key] && (sync.Knows(family) || !slices.Contains(families, family)) {
			r.unassign(ctx, u)
			gone = true
		}
	}
	if gone {
		r.sync()
	}
}

// unassign forgets a manifest that the node is not told to run any more.
func (r *runner) unassign(ctx context.Context, u *unit) {
	r.log.InfoContext(ctx, "manifest is unassigned", "manifest", u.key)
	delete(r.units, u.key)
	u.breakOff()
	r.setManifest(u.key, nil)
	if err := r.store.remove(u.key); err != nil {
		r.log.ErrorContext(ctx, "a stored assignment cannot be removed", "manifest", u.key, "error", err)
	}
	if err := r.forgive(ctx, u.key); err != nil {
		r.log.ErrorContext(ctx, "the refreshes it still owed cannot be struck out", "manifest", u.key, "error", err)
	}
	r.reportNodeOn(u.key, model.NodeUnassigned, u.key+" is not assigned any more, what it made is left as it is")
}

// choice is a version that may be put in force.
type choice struct {
	unit    *unit
	family  int
	version *loaded
	// rest are the units of the name that come behind it.
	rest []*unit
}

// compare orders choices as they run.
func (c choice) compare(other choice) int {
	return cmp.Or(cmp.Compare(c.family, other.family), cmp.Compare(c.version.Priority, other.version.Priority), cmp.Compare(c.unit.name, other.unit.name))
}

// choose gives, for each name, the version of the family that wins, in the
// order in which they run.
func (r *runner) choose(ctx context.Context) []choice {
	byName := map[string][]*unit{}
	for _, u := range r.units {
		byName[u.name] = append(byName[u.name], u)
	}
	var out []choice
	for _, same := range byName {
		slices.SortFunc(same, func(a, b *unit) int { return cmp.Compare(r.rank(a), r.rank(b)) })
		if c, ok := r.pick(ctx, same); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, choice.compare)

	return out
}

// rank is the place of a unit's family: the lowest wins.
func (r *runner) rank(u *unit) int {
	family, _, _ := model.SplitKey(u.key)

	return slices.Index(r.families(), family)
}

// families gives the families of the node, those that win first.
func (r *runner) families() []string {
	c := r.Config()

	return model.Families(c.Node, c.Groups)
}

// pick gives the first of the units of a name that has a version to run. One
// that never had a good one takes nothing out of force.
func (r *runner) pick(ctx context.Context, same []*unit) (choice, bool) {
	for i, u := range same {
		l, assigned := r.stand(ctx, u)
		switch {
		case assigned && l != nil:
			return choice{u, r.rank(u), l, same[i+1:]}, true
		case assigned && u.record.Good != nil:
			return choice{}, false
		}
	}

	return choice{}, false
}

// stand finds the version of a unit that holds: the newest, or the last good
// one when something is wrong with that. assigned is false when the unit does
// not concern this node.
func (r *runner) stand(ctx context.Context, u *unit) (l *loaded, assigned bool) {
	late := ""
	for _, e := range u.candidates() {
		l, holds, err := r.try(ctx, u, e)
		if err != nil {
			why := r.turnDown(ctx, u, e, err)
			if u.isNewest(e) {
				late = why
			}
			continue
		}
		u.late = late
		if late == "" && u.stale == "" {
			u.retryAt, u.told = time.Time{}, ""
			u.wait.Reset()
		}
		return l, holds
	}
	u.late = late

	return nil, true
}

// try reads, judges and resolves one version.
func (r *runner) try(ctx context.Context, u *unit, e model.Entry) (l *loaded, holds bool, err error) {
	err = tasks.Guard(r.log, "reading "+u.key, func() error {
		if l, err = u.read(e); err != nil {
			return err
		}
		if holds, err = r.applies(ctx, l); err != nil || !holds || l.graph != nil {
			return err
		}
		return r.resolveOnce(ctx, l)
	})

	return l, holds, err
}

// withoutConflict gives the version of a choice that agrees with the manifests
// before it, nil when there is none.
func (r *runner) withoutConflict(ctx context.Context, taken claims, c choice) *loaded {
	problems := taken.conflicts(c.version.resolved.Resources)
	if len(problems) == 0 {
		return c.version
	}
	why := r.turnDown(ctx, c.unit, c.version.entry, problems)
	if c.unit.isNewest(c.version.entry) {
		c.unit.late = why
	}
	good := c.unit.record.Good
	if good == nil || (good.Revision == c.version.entry.Revision && model.DigestOf(good.Value) == c.version.sum) {
		return nil
	}
	l, holds, err := r.try(ctx, c.unit, *good)
	if err != nil || !holds || len(taken.conflicts(l.resolved.Resources)) > 0 {
		return nil
	}

	return l
}

// force puts a version in force, and asks for its run when it is another one.
func (r *runner) force(ctx context.Context, u *unit, l *loaded, woken time.Time) {
	known := u.current.sameAs(l)
	u.current = l
	if known {
		return
	}
	cause := model.CauseManifest
	if u.record.Applied == l.sum && u.record.Good != nil && u.record.Good.Revision == l.entry.Revision {
		// It ran before a restart: what differs now is drift.
		cause = model.CauseSchedule
	}
	if u.record.Good == nil || u.record.Good.Revision != l.entry.Revision || model.DigestOf(u.record.Good.Value) != l.sum {
		e := l.entry
		u.record.Good = &e
		u.acquit(e)
		r.keep(ctx, u)
	}
	u.breakOff()
	u.forgetChecks(l)
	r.log.InfoContext(ctx, "manifest in force", "manifest", u.key, "revision", l.entry.Revision, "digest", l.digest, "resources", l.graph.Len())
	r.due[u.key] = wake{cause, woken}.over(r.due[u.key])
}

// freshen tries again what a manifest in force comes to now, when that failed
// before.
func (r *runner) freshen(ctx context.Context, u *unit, woken time.Time) {
	if u.stale == "" || !u.retryAt.IsZero() {
		return
	}
	r.step("reading "+u.key, func() { r.refreshGraph(ctx, u) })
	if u.stale == "" {
		r.due[u.key] = wake{model.CauseSchedule, woken}.over(r.due[u.key])
	}
}

// keep writes the record of a unit. A disk that takes nothing is logged: the
// node works on with what it has in memory.
func (r *runner) keep(ctx context.Context, u *unit) {
	if err := r.store.write(ctx, u.record); err != nil {
		r.log.ErrorContext(ctx, "an assignment cannot be stored, it would be missing after a restart without NATS", "manifest", u.key, "error", err)
	}
}

// showLate tells which version of a unit is in force, and why not the newest.
func (r *runner) showLate(u *unit) {
	if r.units[u.key] != u {
		return
	}
	r.setManifest(u.key, func(s *model.ManifestState) {
		s.Seen, s.Late = 0, u.stale
		if u.current == nil {
			*s = model.ManifestState{}
		} else if s.Revision != u.current.entry.Revision {
			// Who waits for this revision must not take what came of an earlier one for its own.
			*s = model.ManifestState{Revision: u.current.entry.Revision, Digest: u.current.digest, Late: u.stale}
		}
		if u.newest != nil && (u.current == nil || u.current.entry.Revision != u.newest.Revision) {
			s.Seen, s.Late = u.newest.Revision, u.late
			if strings.HasPrefix(u.late, refusedPrefix) {
				s.Late += "; " + r.stays(u)
			}
		}
	})
}

// dropBundles removes the bundles that nothing refers to.
func (r *runner) dropBundles(ctx context.Context) {
	used := map[string]bool{}
	for _, u := range r.units {
		for _, l := range u.versions {
			used[l.Bundle] = true
		}
		if good := u.record.Good; good != nil {
			if l, err := u.read(*good); err == nil {
				used[l.Bundle] = true
			}
		}
	}
	if err := r.bundles.keep(used); err != nil {
		r.log.WarnContext(ctx, "bundles that are not used cannot be removed", "error", err)
	}
}
